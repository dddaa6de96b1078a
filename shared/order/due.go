package order

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// dueKey is where an alarm lies: something is to be done with an order, or a chain, at a time. It is a hint: what is to be done then
// follows from what the order is, and one that comes in vain changes nothing.
func dueKey(at int64, path string) store.Key {
	return work(partitionDue, stamp(at)+store.Fit(path))
}

const partitionDue = "orders-due"

const stampLen = 16

func stamp(at int64) string { return fmt.Sprintf("%016x", max(at, 0)) }

// unstamp returns the time that the sort key of an alarm begins with.
func unstamp(sort string) int64 {
	at, _ := strconv.ParseInt(sort[:min(stampLen, len(sort))], 16, 64)
	return at
}

// The pauses after which an alarm is tried again that could not be done: the first, and the longest. Each is twice the one before.
const (
	firstPause = time.Second
	mostPause  = 10 * time.Minute
)

// later returns the key of an alarm that could not be done, for its next try. Behind the time stands how often it was put off; what
// follows begins with no digit.
func later(key store.Key, now int64) store.Key {
	rest := key.Sort[min(stampLen, len(key.Sort)):]
	text := strings.TrimLeft(rest, "0123456789")
	times, _ := strconv.Atoi(rest[:len(rest)-len(text)])
	pause := min(firstPause<<min(times, 20), mostPause)
	return work(partitionDue, stamp(now+pause.Microseconds())+strconv.Itoa(times+1)+text)
}

// alarm has the order looked at again at a time.
func (m *move) alarm(at int64) {
	key := dueKey(at, m.order.Path())
	for i := range m.follow.Ops {
		if m.follow.Ops[i].Item.Key == key {
			return
		}
	}
	m.follow.Ops = append(m.follow.Ops, store.Put(store.Item{Key: key, Value: []byte(m.order.Path())}, store.Always))
	m.wakeBy(at)
}

// wakeBy has this process look at an alarm at its time, once it is written.
func (m *move) wakeBy(at int64) {
	if at != 0 && (m.wakeAt == 0 || at < m.wakeAt) {
		m.wakeAt = at
	}
}
