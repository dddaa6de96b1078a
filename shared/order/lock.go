package order

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// An order takes the locks of its node before the task of its step is added, and gives them back in the write that ends the step: also
// if it is set back, or if the task is withdrawn. It takes them one by one in the order of their names, so that no two orders wait for each
// other. Where one is not free, or others wait for it, it waits in that lock's line, first come first served: so shared holders
// do not starve an exclusive one. Who gives a lock back hands it on to the first in line, in the same write.

// lock is the state of a lock: how many orders hold it and wait for it. A lock that is not declared any more goes on by its name, with
// any number of shared holders.
type lock struct {
	Alone   bool  `json:"a,omitempty"` // one order holds it exclusively
	Shared  int   `json:"s,omitempty"` // so many hold it together
	Waiting int   `json:"w,omitempty"` // so many are in line
	Newest  int64 `json:"n,omitempty"` // number of the last one that came to the line

	name    string
	cond    store.Condition
	changed bool
	unread  int // so many in line cannot be read, whoever tries
}

// contender is an order that holds a lock, or is in line for it.
type contender struct {
	Path   string `json:"p"`
	Shared bool   `json:"s,omitempty"`
}

// inLine is an order's place in a lock's line.
type inLine struct {
	definition.NodeLock
	Sort string `json:"sort"`
}

const lockAlarm = "lock:" // begins the value of a lock's alarm; the name follows

func lockKey(name string) store.Key { return work("lock/"+store.Fit(name), only) }

func holderKey(name, path string) store.Key {
	return work("lock-holders/"+store.Fit(name), store.Fit(path))
}

func lockLine(name string) string { return "lock-line/" + store.Fit(name) }

// lock returns a lock as this write changes it.
func (m *move) lock(ctx context.Context, name string) (*lock, error) {
	book := m.book()
	if l := book.locks[name]; l != nil {
		return l, nil
	}
	key := lockKey(name)
	items, err := m.e.get(ctx, key)
	if err != nil {
		return nil, err
	}
	l := &lock{name: name, cond: store.Absent}
	if items[0] != nil {
		l.cond = store.VersionIs(items[0].Version)
		err = decode(items[0], l)
	}
	book.locks[name] = l
	m.follow.Names = append(m.follow.Names, key.Partition)
	return l, err
}

// fits reports whether the lock can be taken.
func (l *lock) fits(set *definition.Set, shared bool) bool {
	if l.Alone || !shared {
		return !l.Alone && l.Shared == 0
	}
	most := 0
	if at := slices.IndexFunc(set.Locks, func(d definition.Lock) bool { return d.Name == l.name }); at >= 0 {
		most = set.Locks[at].MaxShared
	}
	return most == 0 || l.Shared < most
}

// takeLocks takes the locks of a node that the order does not hold yet, and reports whether it holds all: otherwise it waits in line for
// the first that it lacks.
func (m *move) takeLocks(ctx context.Context, n *definition.GraphNode) (all bool, err error) {
	o := m.order
	wanted := slices.SortedFunc(slices.Values(n.Locks), func(a, b definition.NodeLock) int { return cmp.Compare(a.Name, b.Name) })
	for _, w := range wanted {
		if slices.ContainsFunc(o.Locks, func(held definition.NodeLock) bool { return held.Name == w.Name }) {
			continue
		}
		l, err := m.lock(ctx, w.Name)
		if err != nil {
			return false, err
		}
		if l.Waiting > 0 || !l.fits(m.set, w.Shared) {
			m.standInLine(l, w)
			if !l.Alone && l.Shared == 0 { // those before it may be damaged, and nobody holds the lock who would hand it on
				m.alarmLock(l.name, m.now)
			}
			return false, nil
		}
		m.hold(l, w)
	}
	return true, nil
}

func (m *move) hold(l *lock, w definition.NodeLock) {
	if l.changed = true; w.Shared {
		l.Shared++
	} else {
		l.Alone = true
	}
	m.order.Locks = append(m.order.Locks, w)
	m.put(holderKey(w.Name, m.order.Path()), contender{m.order.Path(), w.Shared})
}

// standInLine lets the order wait for a lock.
func (m *move) standInLine(l *lock, w definition.NodeLock) {
	o := m.order
	l.Waiting, l.Newest, l.changed = l.Waiting+1, l.Newest+1, true
	o.Line = &inLine{w, fmt.Sprintf("%016x", l.Newest)}
	o.Waiting, o.SetBack = typed.ForLock, false
	m.put(work(lockLine(w.Name), o.Line.Sort), contender{o.Path(), w.Shared})
	m.say(event.OrderWaiting, typed.OrderWaiting{NodeID: o.Node, For: typed.ForLock, Name: w.Name})
}

func (m *move) put(key store.Key, c contender) {
	m.list(key, func(journal.Receipt) store.Op { return store.Put(store.Item{Key: key, Value: encode(c)}, store.Always) })
}

func (m *move) delete(key store.Key) {
	m.list(key, func(journal.Receipt) store.Op { return store.Delete(key, store.Always) })
}

// leaveLine takes the order out of the line of a lock, if it is in one.
func (m *move) leaveLine(ctx context.Context) error {
	at := m.order.Line
	if at == nil {
		return nil
	}
	l, err := m.lock(ctx, at.Name)
	if err != nil {
		return err
	}
	l.Waiting, l.changed = l.Waiting-1, true
	m.delete(work(lockLine(at.Name), at.Sort))
	m.order.Line = nil
	return m.handOn(ctx, l) // who was behind it may go on
}

// giveBack gives back all locks that the order holds, to those in line.
func (m *move) giveBack(ctx context.Context) error {
	held := m.order.Locks
	m.order.Locks = nil
	for _, h := range held {
		l, err := m.lock(ctx, h.Name)
		if err != nil {
			return err
		}
		if l.changed = true; h.Shared {
			l.Shared--
		} else {
			l.Alone = false
		}
		m.delete(holderKey(h.Name, m.order.Path()))
	}
	for _, h := range held {
		if err := m.handOn(ctx, m.books.locks[h.Name]); err != nil {
			return err
		}
	}
	return nil
}

// includeOthers lets this move write the orders to which it has handed on locks.
func (m *move) includeOthers() {
	others := m.others
	m.others = nil
	for _, other := range others {
		m.include(other)
	}
}

// withBook adds the events and the alarms of all orders in the write, and what it keeps for them, to what is written.
func (m *move) withBook(f queue.Follow) queue.Follow {
	if b := m.books; b != nil {
		f.Ops = append(f.Ops, b.ops()...)
		for _, op := range b.lists {
			f.Stamped = append(f.Stamped, op)
		}
		m.wakeBy(b.wakeAt)
	}
	f.Before, f.Written = m.events, m.wakes()
	return f
}

// whyLock sets the reason of an order that waits for a lock.
func (e *Engine) whyLock(ctx context.Context, o *Order, r *Reason) error {
	page, err := e.store.Query(ctx, store.Range{Table: store.Work, Partition: holderKey(o.Line.Name, "").Partition, Limit: lineBatch})
	if err != nil {
		return journal.Failure("read who holds a lock", err)
	}
	holders := []string{}
	for i := range page.Items {
		var c contender
		if err := decode(&page.Items[i], &c); err != nil {
			return err
		}
		holders = append(holders, c.Path)
	}
	r.Code = ReasonLock
	r.Reason = fmt.Sprintf("It waits at the node %s for the lock %s", o.Node, o.Line.Name)
	if len(holders) > 0 {
		r.Reason += ", which is held by " + strings.Join(holders, ", ")
	}
	r.Reason += "."
	r.Details["lock"], r.Details["shared"], r.Details["holders"] = o.Line.Name, o.Line.Shared, holders
	return nil
}
