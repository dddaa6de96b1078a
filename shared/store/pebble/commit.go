package pebble

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/shared/store"
)

// Write applies w together with the other writes that wait, with one sync for all.
func (s *Store) Write(ctx context.Context, w store.Write) (err error) {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave(&err)
	p, ok := s.queue.used.Get().(*pending)
	if !ok {
		p = newPending(nil)
	}
	p.write, p.size = w, sizeOf(w)
	err = s.commit(ctx, p)
	if s.failure.get() == nil { // otherwise the committer may still hold it
		*p = pending{ready: p.ready}
		s.queue.used.Put(p)
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
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave(&err)
	return s.commit(ctx, newPending(&r))
}

// apply commits a group and sets the error of each of its writes.
func (s *Store) apply(group []*pending) {
	if err := s.room(); err != nil {
		answer(group, err)
		return
	}
	g := &s.queue.group
	if err := s.flush(g, group); err != nil {
		s.failure.set(err.Error())
		answer(group, s.lost()) // refusals too: they may rest on what is lost
		return                  // the batch is still Pebble's
	}
	g.end()
}

func answer(group []*pending, err error) {
	for _, p := range group {
		p.err = err
	}
}

// flush checks a group's conditions, and commits and publishes the writes whose conditions hold. An error means that it is not
// known whether they are durable.
func (s *Store) flush(g *group, group []*pending) error {
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
	g.remember(s.recent)
	s.publish()
	s.trim()
	return nil
}

// add adds what one caller wants to the batch: a write if its conditions hold, against what the group has changed before it.
func (s *Store) add(g *group, p *pending) error {
	if p.remove != nil {
		lower, upper := bounds(*p.remove)
		if string(lower) >= string(upper) {
			return nil
		}
		g.cleared = g.cleared || s.recent.keeps(lower)
		return g.batch.DeleteRange(lower, upper, nil)
	}
	switch {
	case p.expired != nil:
		return g.expire(s, p.expired)
	case p.idle != nil:
		return s.drop(g.batch, p.idle)
	case p.load != nil:
		return g.load(s, p.load)
	}
	return s.addWrite(g, p)
}

// addWrite checks the conditions of a write and adds its operations.
func (s *Store) addWrite(g *group, p *pending) error {
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

// group is a batch under construction and its changes, on which later writes of the group are checked.
type group struct {
	batch *pebble.Batch
	now   time.Time        // when it began
	bytes []byte           // of all keys
	keys  []span           // of the group's operations, in order
	index map[uint64]int32 // hash of a changed key → its newest change
	item  []change
	seed  maphash.Seed
	value []byte

	newest  newest
	cleared bool // a range is deleted whose items [recent] may hold
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
		g.index, g.newest = map[uint64]int32{}, newest{}
		g.seed = maphash.MakeSeed()
	}
	g.batch, g.now, g.cleared = db.NewBatch(), time.Now(), false
	g.newest.begin()
}

func (g *group) end() {
	_ = g.batch.Close() // releases memory only
	g.bytes, g.keys = g.bytes[:0], g.keys[:0]
	clear(g.index)
	clear(g.item)
	g.item = g.item[:0]
}

// key encodes a key and returns where its bytes lie.
func (g *group) key(k store.Key) span {
	from := len(g.bytes)
	g.bytes = appendKey(g.bytes, kindOf(k.Table), k)
	g.keys = append(g.keys, span{from, len(g.bytes)})
	return span{from, len(g.bytes)}
}

func (g *group) text(s span) []byte { return g.bytes[s.from:s.to:s.to] }

// find returns the item of an operation's key, nil if there is none.
func (g *group) find(s *Store, key span, op *store.Op) (*store.Item, error) {
	if c := g.changed(key); c != nil {
		return copyOf(c.item), nil
	}
	if !g.cleared && s.recent.keeps(g.text(key)) {
		if item, known := s.recent.get(g.text(key), s.recent.commit.Load()); known {
			return copyOf(item), nil
		}
	}
	if above, err := g.newest.above(s.db, g.text(key), op.Item.Key); err != nil {
		return nil, s.readError(op.Item.Key, err)
	} else if above {
		return nil, nil
	}
	return s.get(s.db, g.text(key), op.Item.Key)
}

func copyOf(item *store.Item) *store.Item {
	if item == nil {
		return nil
	}
	copied := *item
	return &copied
}

// remember puts the changes into r, in their order.
func (g *group) remember(r *recent) {
	r.commit.Add(1)
	if g.cleared {
		r.clear()
	}
	for i := range g.item {
		if c := &g.item[i]; r.keeps(g.text(c.key)) {
			r.put(g.text(c.key), c.item)
		}
	}
}

// changed returns the group's newest change of a key, nil if there is none.
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
			if err := g.set(key, item); err != nil {
				return err
			}
		case store.OpDelete:
			if err := g.batch.Delete(g.text(key), nil); err != nil {
				return err
			}
			g.note(key, nil)
		}
	}
	return nil
}

// set adds an item to the batch.
func (g *group) set(key span, item store.Item) error {
	item.Expires = toSecond(item.Expires)
	g.value = appendItem(g.value[:0], &item)
	if err := g.batch.Set(g.text(key), g.value, nil); err != nil {
		return err
	}
	g.note(key, &item)
	g.newest.note(g.text(key), item.Key)
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
