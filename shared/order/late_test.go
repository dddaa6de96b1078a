package order_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// late is a store in which the newest items of a partition become visible to reads later than others: the first reads do not see them.
type late struct {
	shared
	partition string // what its name begins with

	mu    sync.Mutex
	reads int // that do not see them yet
}

func (l *late) hides(partition string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reads == 0 || !strings.HasPrefix(partition, l.partition) {
		return false
	}
	l.reads--
	return true
}

func (l *late) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	items, err := l.shared.Get(ctx, keys...)
	for i := range items {
		if l.hides(keys[i].Partition) {
			items[i] = nil
		}
	}
	return items, err
}

func (l *late) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if l.hides(r.Partition) {
		return store.Page{}, nil
	}
	return l.shared.Query(ctx, r)
}

// Another process sees what lists an order later than that it came to wait, and than the event that the order waits for.
func TestAFollowerSeesAListLate(t *testing.T) {
	for _, partition := range []string{"waits/", "wait-shapes", "order//c,1"} {
		t.Run(partition, func(t *testing.T) {
			s := shared{memory.New(memory.Options{})}
			a := open(t, s, waiting(definition.Wait{Event: "Paid"}))
			a.add(nil)
			a.emit("Paid", "/p", "")
			b := open(t, &late{shared: s, partition: partition, reads: 3}, a.declared.set)
			if err := b.Match(t.Context()); err != nil {
				t.Fatal(err)
			}
			a.is(projection.Due, "B")
		})
	}
}

// Another process sees the alarm of an order before the order.
func TestAnAlarmIsSeenBeforeItsOrder(t *testing.T) {
	for reads := range 8 {
		s := shared{memory.New(memory.Options{})}
		a := open(t, s, chains(timed("/c")))
		a.add(nil)
		b := open(t, &late{shared: s, partition: "order//c,1", reads: reads}, a.declared.set)
		b.now = a.now.Add(time.Minute)
		if err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.at("/c", "1", "B")
	}
}
