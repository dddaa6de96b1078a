package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
)

// advance checks Writes that take their ticket themselves, or that a store without them does nothing.
func (s *suite) advance(t *testing.T) {
	equal(t, "Advances", s.able.Advances, s.store.Advances())
	one := func(k store.Key, from, first int64) *store.Advance {
		return &store.Advance{Key: k, From: from, FirstID: first, LastID: first + 9}
	}
	if !s.able.Advances {
		w := write(store.Put(item(s.fresh(), 1, "a"), store.Absent))
		w.Advance = one(s.fresh(), 0, micros())
		if err := s.store.Write(t.Context(), w); !errors.Is(err, store.ErrNoAdvance) {
			t.Errorf("Write with an Advance = %v, want ErrNoAdvance", err)
		}
		return
	}
	// standing returns a sequencer that has given one ticket.
	standing := func(t *testing.T) (store.Key, store.Ticket) {
		k := s.fresh()
		return k, s.reserve(t, k, 1, micros())
	}
	putting := func(k store.Key, a *store.Advance, ops ...store.Op) store.Write {
		w := write(append(ops, store.Put(item(k, 1, "written"), store.Absent))...)
		w.Advance = a
		return w
	}
	moved := func(t *testing.T, w store.Write, want store.Sequence) {
		t.Helper()
		var m *store.Moved
		if err := s.store.Write(t.Context(), w); !errors.As(err, &m) {
			t.Fatalf("Write = %v, want Moved", err)
		}
		equal(t, "where the sequencer stands", store.Sequence{Position: want.Position, LastID: want.LastID}, m.To)
	}
	cases(t, map[string]func(*testing.T){
		"it takes the next ticket, and writes": func(t *testing.T) {
			for name, more := range map[string][]store.Op{"one item": nil, "two items": {store.Put(item(s.fresh(), 1, "too"), store.Always)}} {
				k, before := standing(t)
				at, first := s.fresh(), before.LastID+5
				s.must(t, putting(at, one(k, before.Position, first), more...))
				s.holds(t, at, "written")
				equal(t, name+": the sequencer", store.Sequence{Position: before.Position + 1, LastID: first + 9}, s.sequence(t, k))
				next := s.reserve(t, k, 1, 1)
				equal(t, name+": the next ticket", []int64{before.Position + 2, first + 10}, []int64{next.Position, next.FirstID})
			}
		},
		"where the sequencer stands elsewhere, nothing is done": func(t *testing.T) {
			for _, off := range []int64{-1, 1} {
				k, before := standing(t)
				at := s.fresh()
				moved(t, putting(at, one(k, before.Position+off, before.LastID+1)), before.Sequence)
				s.holds(t, at, "")
				equal(t, "the sequencer", before.Sequence, s.sequence(t, k))
			}
		},
		"ids that were given are not given again": func(t *testing.T) {
			k, before := standing(t)
			at := s.fresh()
			moved(t, putting(at, one(k, before.Position, before.LastID)), before.Sequence)
			s.holds(t, at, "")
		},
		"a sequencer that has given no ticket is left to Reserve": func(t *testing.T) {
			k, at := s.fresh(), s.fresh()
			w := putting(at, one(k, 0, micros()))
			var m *store.Moved
			if err := s.store.Write(t.Context(), w); err != nil && !errors.As(err, &m) {
				t.Fatalf("Write = %v, want success or Moved", err)
			}
		},
		"where a condition fails, the position is left": func(t *testing.T) {
			for name, more := range map[string][]store.Op{"one item": nil, "two items": {store.Put(item(s.fresh(), 1, "too"), store.Always)}} {
				k, before := standing(t)
				at := s.fresh()
				s.put(t, item(at, 7, "there"))
				err := s.store.Write(t.Context(), putting(at, one(k, before.Position, before.LastID+1), more...))
				c := store.AsConflict(err)
				if c == nil {
					t.Fatalf("%s: Write = %v, want Conflict", name, err)
				}
				if found, failed := c.At(len(more)); !failed || found == nil || found.Version != 7 {
					t.Errorf("%s: the conflict found %v", name, found)
				}
				for _, op := range more {
					s.holds(t, op.Item.Key, "")
				}
				equal(t, name+": the position", before.Position, s.sequence(t, k).Position)
				next := s.reserve(t, k, 1, 1)
				if next.Position != before.Position+1 || next.FirstID <= before.LastID {
					t.Errorf("%s: the next ticket is %+v", name, next)
				}
			}
		},
		"a repetition succeeds and takes nothing": func(t *testing.T) {
			k, before := standing(t)
			at := s.fresh()
			w := putting(at, one(k, before.Position, before.LastID+1))
			s.must(t, w)
			s.reserve(t, k, 1, 1) // by another
			s.must(t, w)
			equal(t, "the position", before.Position+2, s.sequence(t, k).Position)
		},
		"a malformed one is refused": func(t *testing.T) {
			k := s.fresh()
			for _, a := range []store.Advance{
				{Key: k, From: -1, FirstID: 1, LastID: 1}, {Key: k, FirstID: 0, LastID: 1}, {Key: k, FirstID: 2, LastID: 1},
				{Key: k, FirstID: 1, LastID: store.MaxID + 1},
			} {
				if err := s.store.Write(t.Context(), putting(s.fresh(), &a)); !errors.Is(err, store.ErrInvalid) {
					t.Errorf("Write with %+v = %v, want ErrInvalid", a, err)
				}
			}
		},
		"of concurrent ones and reservations, none share a position or an id": func(t *testing.T) { s.advanceTogether(t) },
	})
}

// advanceTogether lets callers take tickets in both ways.
func (s *suite) advanceTogether(t *testing.T) {
	k := s.fresh()
	partition := s.partition()
	s.reserve(t, k, 1, micros())
	var group sync.WaitGroup
	var taken, reserved atomic.Int64
	for range 4 {
		group.Go(func() {
			for range 25 {
				s.reserve(t, k, 1, 1)
				reserved.Add(1)
			}
		})
		group.Go(func() {
			at := s.sequence(t, k)
			for range 25 {
				w := write(store.Put(item(key(partition, fmt.Sprintf("%08d", at.Position+1)), at.LastID+1, "written"), store.Absent))
				w.Advance = &store.Advance{Key: k, From: at.Position, FirstID: at.LastID + 1, LastID: at.LastID + 2}
				err := s.store.Write(t.Context(), w)
				var m *store.Moved
				switch {
				case err == nil:
					taken.Add(1)
					at = store.Sequence{Position: at.Position + 1, LastID: at.LastID + 2}
				case errors.As(err, &m):
					at = m.To
				case !errors.Is(err, store.ErrBusy):
					t.Errorf("Write = %v", err)
				}
			}
		})
	}
	group.Wait()
	equal(t, "the position", 1+taken.Load()+reserved.Load(), s.sequence(t, k).Position)
	items := 0
	var last int64
	for found, err := range store.All(t.Context(), s.store, store.Range{Table: store.Work, Partition: partition}) {
		if err != nil {
			t.Fatal(err)
		}
		if items++; found.Version <= last+1 && last > 0 {
			t.Errorf("ids from %d at %s, after one from %d", found.Version, found.Key.Sort, last)
		}
		last = found.Version
	}
	if diff := cmp.Diff(int(taken.Load()), items); diff != "" {
		t.Errorf("items that were written (-want +got):\n%s", diff)
	}
}
