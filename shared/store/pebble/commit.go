package pebble

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/shared/store"
)

// Write applies w together with whatever else waits, with one sync for all.
func (s *Store) Write(ctx context.Context, w store.Write) error {
	if err := w.Validate(); err != nil {
		return err
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if !w.NotAfter.IsZero() && time.Now().After(w.NotAfter) {
		return store.ErrTooLate
	}
	p := waiting.Get().(*pending)
	p.write = w
	err = s.commit(p)
	if s.failure.get() == nil { // otherwise a leader that stands still may hold it
		*p = pending{ready: p.ready}
		waiting.Put(p)
	}
	return err
}

// Remove deletes a range of one partition.
func (s *Store) Remove(ctx context.Context, r store.Range) error {
	if err := (store.Key{Table: r.Table, Partition: r.Partition, Sort: "0"}).Validate(); err != nil {
		return err
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return s.commit(&pending{remove: &r})
}

// pending is a write that waits for its group, or for its turn to lead one.
type pending struct {
	write  store.Write
	remove *store.Range
	err    error
	ready  chan turn // with room for one
}

type turn bool

const (
	done turn = false // err is the answer
	lead turn = true  // the queue is yours
)

var waiting = sync.Pool{New: func() any { return &pending{ready: make(chan turn, 1)} }}

// queue holds the writes that wait while a leader commits the group before them.
type queue struct {
	mu      sync.Mutex
	waiting []*pending
	spare   []*pending // the group before last, to be used again
	leading bool

	group group // the leader's
}

// commit has p committed: by whoever leads now, or by leading itself. Leaders commit one group, their own, and pass
// the rest on, so that no writer works for the others for long.
func (s *Store) commit(p *pending) error {
	if p.ready == nil {
		p.ready = make(chan turn, 1)
	}
	q := &s.queue
	q.mu.Lock()
	q.waiting = append(q.waiting, p)
	if q.leading {
		q.mu.Unlock()
		select {
		case t := <-p.ready:
			if t == done {
				return p.err
			}
		case <-s.failure.dead:
			return s.lost()
		}
	} else {
		q.leading = true
		q.mu.Unlock()
	}
	return s.lead(p)
}

// lost is the answer of a write under way when the store failed.
func (s *Store) lost() error { return fmt.Errorf("%w: %w", store.ErrUnknown, s.failure.get()) }

func (s *Store) lead(own *pending) error {
	q := &s.queue
	q.mu.Lock()
	group := q.waiting
	q.waiting = q.spare[:0]
	q.mu.Unlock()

	s.apply(group)
	err := own.err
	for _, p := range group {
		if p != own {
			p.ready <- done
		}
	}
	clear(group)

	q.mu.Lock()
	defer q.mu.Unlock()
	q.spare = group
	if len(q.waiting) > 0 {
		q.waiting[0].ready <- lead
	} else {
		q.leading = false
	}
	return err
}

// apply commits a group and gives each of its writes its answer.
func (s *Store) apply(group []*pending) {
	if err := s.room(); err != nil {
		for _, p := range group {
			p.err = err
		}
		return
	}
	g := &s.queue.group
	g.begin(s.db)
	for _, p := range group {
		p.err = s.add(g, p)
	}
	err := s.save(g.batch)
	if err == nil && g.batch.Count() > 0 {
		if err = commitBatch(g.batch); err == nil {
			s.publish()
		}
	}
	if err != nil {
		s.failure.set(err.Error())
		for _, p := range group { // refusals too: they may rest on what is lost
			p.err = s.lost()
		}
		return // the batch is still Pebble's
	}
	g.end()
}

// add checks one write's conditions, against what the group has changed before it, and adds it to the batch.
func (s *Store) add(g *group, p *pending) error {
	if p.remove != nil {
		lower, upper := bounds(*p.remove)
		return g.batch.DeleteRange(lower, upper, nil)
	}
	first := len(g.keys)
	var conflict *store.Conflict
	for i := range p.write.Ops {
		op := &p.write.Ops[i]
		key := g.key(op.Item.Key)
		if op.Cond.IsAlways() {
			continue
		}
		found, err := g.find(s, key, op)
		if err != nil {
			return err
		}
		if !op.Cond.Holds(found) {
			if conflict == nil {
				conflict = &store.Conflict{}
			}
			conflict.Failed = append(conflict.Failed, store.Failure{Op: i, Found: found})
		}
	}
	if conflict != nil {
		if p.write.Mine(conflict) {
			return nil
		}
		return conflict
	}
	return g.put(first, p.write)
}

// group is a batch under construction, and what it changes: writes later in the group rest on it.
type group struct {
	batch *pebble.Batch
	bytes []byte           // of all keys
	keys  []span           // of the group's operations, in order
	index map[uint64]int32 // hash of a changed key → its newest change
	item  []change
	seed  maphash.Seed
	value []byte
}

type span struct{ from, to int }

// change is what the group does to a key.
type change struct {
	key     span
	item    *store.Item // nil: deleted
	earlier int32       // another key of the same hash, or an older change; -1 for none
}

func (g *group) begin(db *pebble.DB) {
	if g.batch == nil {
		g.index = map[uint64]int32{}
		g.seed = maphash.MakeSeed()
	}
	g.batch = db.NewBatch()
}

func (g *group) end() {
	_ = g.batch.Close() // releases memory only
	g.bytes, g.keys = g.bytes[:0], g.keys[:0]
	clear(g.index)
	clear(g.item)
	g.item = g.item[:0]
}

// key encodes a key and answers it.
func (g *group) key(k store.Key) span {
	from := len(g.bytes)
	g.bytes = appendKey(g.bytes, kindOf(k.Table), k)
	g.keys = append(g.keys, span{from, len(g.bytes)})
	return span{from, len(g.bytes)}
}

func (g *group) text(s span) []byte { return g.bytes[s.from:s.to:s.to] }

// find answers the item of an operation's key, nil if there is none.
func (g *group) find(s *Store, key span, op *store.Op) (*store.Item, error) {
	if c := g.changed(key); c != nil {
		if c.item == nil {
			return nil, nil
		}
		copied := *c.item
		return &copied, nil
	}
	return s.get(s.db, g.text(key), op.Item.Key)
}

// changed answers what the group has done to a key so far, nil for nothing.
func (g *group) changed(key span) *change {
	at, ok := g.index[maphash.Bytes(g.seed, g.text(key))]
	for ok && at >= 0 {
		c := &g.item[at]
		if string(g.text(c.key)) == string(g.text(key)) {
			return c
		}
		at = c.earlier
	}
	return nil
}

// put adds the operations of a write, whose keys are at first and after, to the batch.
func (g *group) put(first int, w store.Write) error {
	for i := range w.Ops {
		op, key := &w.Ops[i], g.keys[first+i]
		switch op.Kind {
		case store.OpPut:
			item := op.Item
			item.Token = w.Token
			g.value = appendItem(g.value[:0], &item)
			if err := g.batch.Set(g.text(key), g.value, nil); err != nil {
				return err
			}
			g.note(key, &item)
		case store.OpDelete:
			if err := g.batch.Delete(g.text(key), nil); err != nil {
				return err
			}
			g.note(key, nil)
		}
	}
	return nil
}

func (g *group) note(key span, item *store.Item) {
	hash := maphash.Bytes(g.seed, g.text(key))
	earlier, ok := g.index[hash]
	if !ok {
		earlier = -1
	}
	g.item = append(g.item, change{key: key, item: item, earlier: earlier})
	g.index[hash] = int32(len(g.item) - 1)
}
