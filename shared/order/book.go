package order

import (
	"maps"
	"slices"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// book is what one write keeps for all orders in it. No write has two operations on one item: so what several of its orders may change
// is read once, changed here, and written once; and no order is changed twice.
type book struct {
	locks  map[string]*lock
	places map[string]*places        // by chain
	lists  map[store.Key]queue.Stamp // changes of items that list orders, or what they wait for
	alarms map[store.Key][]byte      // their values
	wakeAt int64                     // the earliest of the alarms; 0: none
	moved  map[string]bool           // the orders in the write, by their paths
}

// What a write has by its book at about most before it leaves what others are waiting for to an alarm, and what each order takes of
// that: its item, and its task.
const (
	bookOps  = 30
	orderOps = 5
)

// book returns what the write keeps.
func (m *move) book() *book {
	if m.books == nil {
		m.books = &book{
			locks: map[string]*lock{}, places: map[string]*places{}, lists: map[store.Key]queue.Stamp{},
			alarms: map[store.Key][]byte{}, moved: map[string]bool{m.order.Path(): true},
		}
	}
	return m.books
}

// full reports whether the write moves no further orders that wait for what others give back.
func (b *book) full() bool { return b.size()+orderOps*len(b.moved) > bookOps }

// size returns how many operations the book makes at most.
func (b *book) size() int { return len(b.locks) + len(b.places) + len(b.lists) + len(b.alarms) }

// alarm has something done after the write, at a time.
func (b *book) alarm(at int64, key store.Key, value []byte) {
	if b.alarms[key] = value; b.wakeAt == 0 || at < b.wakeAt {
		b.wakeAt = at
	}
}

// clone returns a copy that changes by itself.
func (b *book) clone() *book {
	c := *b
	c.lists, c.alarms, c.moved = maps.Clone(b.lists), maps.Clone(b.alarms), maps.Clone(b.moved)
	c.locks, c.places = map[string]*lock{}, map[string]*places{}
	for name, l := range b.locks {
		copied := *l
		c.locks[name] = &copied
	}
	for chain, p := range b.places {
		copied := *p
		c.places[chain] = &copied
	}
	return &c
}

// ops returns the operations on what the write has read.
func (b *book) ops() (ops []store.Op) {
	for _, name := range slices.Sorted(maps.Keys(b.locks)) {
		if l := b.locks[name]; l.changed {
			ops = append(ops, store.Put(store.Item{Key: lockKey(name), Value: encode(l)}, l.cond))
		}
	}
	for _, chain := range slices.Sorted(maps.Keys(b.places)) {
		if p := b.places[chain]; p.changed {
			ops = append(ops, store.Put(store.Item{Key: placesKey(chain), Value: encode(p)}, p.cond))
		}
	}
	for key, value := range b.alarms {
		ops = append(ops, store.Put(store.Item{Key: key, Value: value}, store.Always))
	}
	return ops
}
