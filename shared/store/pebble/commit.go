package pebble

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/shared/store"
)

// Write applies w together with whatever else waits, with one sync for all.
func (s *Store) Write(ctx context.Context, w store.Write) (err error) {
	if err := w.Validate(); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave(&err)
	p := waiting.Get().(*pending)
	p.write, p.size = w, sizeOf(w)
	err = s.commit(ctx, p)
	if !p.gone && s.failure.get() == nil { // otherwise a leader may still hold it
		*p = pending{ready: p.ready}
		waiting.Put(p)
	}
	return err
}

func sizeOf(w store.Write) (bytes int) {
	for i := range w.Ops {
		bytes += len(w.Ops[i].Item.Value)
	}
	return bytes
}

// Remove deletes a range of one partition.
func (s *Store) Remove(ctx context.Context, r store.Range) (err error) {
	if err := (store.Key{Table: r.Table, Partition: r.Partition, Sort: "0"}).Validate(); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave(&err)
	return s.commit(ctx, newPending(&r))
}

// pending is a write that waits for its group, or for its turn to lead one.
type pending struct {
	write  store.Write
	size   int // of its values
	remove *store.Range
	err    error
	ready  chan turn // with room for one
	gone   bool      // its caller has left it to a leader
}

func newPending(remove *store.Range) *pending {
	return &pending{remove: remove, ready: make(chan turn, 1)}
}

type turn bool

const (
	done turn = false // err is the answer
	lead turn = true  // the queue is yours
)

var waiting = sync.Pool{New: func() any { return newPending(nil) }}

// maxGroup bounds the values of a group, so that a batch fits in memory and no writer waits long for the others' bytes.
const maxGroup = 8 << 20

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
func (s *Store) commit(ctx context.Context, p *pending) error {
	if s.queue.join(p) {
		return s.lead(p)
	}
	select {
	case t := <-p.ready:
		return s.turn(p, t)
	case <-s.failure.dead:
		return s.lost()
	case <-ctx.Done():
		return s.withdraw(ctx, p)
	}
}

func (s *Store) turn(p *pending, t turn) error {
	if t == lead {
		return s.lead(p)
	}
	return p.err
}

// withdraw ends a write whose caller waits no longer. What a leader has taken may still be applied.
func (s *Store) withdraw(ctx context.Context, p *pending) error {
	q := &s.queue
	q.mu.Lock()
	select {
	case t := <-p.ready:
		q.mu.Unlock()
		return s.turn(p, t)
	default:
	}
	defer q.mu.Unlock()
	if at := slices.Index(q.waiting, p); at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
		return ctx.Err()
	}
	p.gone = true
	return fmt.Errorf("%w: %w", store.ErrUnknown, ctx.Err())
}

// join puts p at the end of the queue, and reports whether it leads.
func (q *queue) join(p *pending) (leads bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, p)
	leads = !q.leading
	q.leading = true
	return leads
}

// take answers the writes that come next; the leader's is the first.
func (q *queue) take() []*pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	all, n := q.waiting, 0
	for size := 0; n < len(all) && size < maxGroup; n++ {
		size += all[n].size
	}
	q.waiting = append(q.spare[:0], all[n:]...)
	clear(all[n:])
	return all[:n]
}

// pass ends a leader's turn: whoever waits first is the next.
func (q *queue) pass(group []*pending) {
	clear(group)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spare = group
	if len(q.waiting) > 0 {
		q.waiting[0].ready <- lead
	} else {
		q.leading = false
	}
}

// lost is the answer of a write under way when the store failed.
func (s *Store) lost() error { return fmt.Errorf("%w: %w", store.ErrUnknown, s.failure.get()) }

func (s *Store) lead(own *pending) error {
	group := s.queue.take()
	s.apply(group)
	for _, p := range group {
		if p != own {
			p.ready <- done
		}
	}
	s.queue.pass(group)
	return own.err
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
	if err := s.flush(g, group); err != nil {
		s.failure.set(err.Error())
		for _, p := range group { // refusals too: they may rest on what is lost
			p.err = s.lost()
		}
		return // the batch is still Pebble's
	}
	g.end()
}

// flush checks a group's conditions and commits and shows what holds. An error means that it is not known whether that
// is durable.
func (s *Store) flush(g *group, group []*pending) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = s.gaveUp(r)
		}
	}()
	g.begin(s.db)
	for _, p := range group {
		p.err = s.add(g, p)
	}
	if err := s.save(g.batch); err != nil || g.batch.Empty() {
		return err
	}
	if err := g.batch.Commit(pebble.Sync); err != nil {
		return err
	}
	s.publish()
	return nil
}

// add checks one write's conditions, against what the group has changed before it, and adds it to the batch.
func (s *Store) add(g *group, p *pending) error {
	if p.remove != nil {
		lower, upper := bounds(*p.remove)
		if string(lower) >= string(upper) {
			return nil
		}
		return g.batch.DeleteRange(lower, upper, nil)
	}
	if t := p.write.NotAfter; !t.IsZero() && g.now.After(t) {
		return store.ErrTooLate
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
	now   time.Time        // when it began
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
	g.batch, g.now = db.NewBatch(), time.Now()
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
			item.Token, item.Expires = w.Token, toSecond(item.Expires)
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
