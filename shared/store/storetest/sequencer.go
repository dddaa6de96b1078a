package storetest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store"
)

func (s *suite) sequencer(t *testing.T) {
	cases(t, map[string]func(*testing.T){
		"positions are dense from 1, ids begin at now": func(t *testing.T) {
			k, now := s.fresh(), micros()
			for n := range int64(3) {
				ticket := s.reserve(t, k, 1, now+1000*n)
				equal(t, "position", n+1, ticket.Position)
				equal(t, "first id", now+1000*n, ticket.FirstID)
				equal(t, "last id", ticket.FirstID, ticket.LastID)
			}
		},
		"the first id is LastID+1 where the clock stands or steps back": func(t *testing.T) {
			k, now := s.fresh(), micros()
			first := s.reserve(t, k, 10, now)
			equal(t, "last id", now+9, first.LastID)
			for _, clock := range []int64{now, now - int64(time.Minute/time.Microsecond), now + 5, 1} {
				before := first.LastID
				first = s.reserve(t, k, 2, clock)
				equal(t, "first id", before+1, first.FirstID)
			}
		},
		"a clock an hour ahead of the last id and of the store's date is refused": func(t *testing.T) {
			k := s.fresh()
			date, err := s.store.Date(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ahead := date.Add(2 * time.Hour).UnixMicro()
			s.refuses(t, k, 1, ahead)
			s.reserve(t, k, 1, date.UnixMicro())
			s.refuses(t, k, 1, ahead)
			equal(t, "next position", int64(2), s.reserve(t, k, 1, date.Add(30*time.Minute).UnixMicro()).Position)
		},
		"a journal that was idle for long goes on": func(t *testing.T) {
			k, now := s.fresh(), micros()
			s.reserve(t, k, 1, now-int64(48*time.Hour/time.Microsecond))
			equal(t, "first id", now, s.reserve(t, k, 1, now).FirstID)
		},
		"ids beyond MaxID are refused, and so are no ids": func(t *testing.T) {
			k := s.fresh()
			if _, err := s.store.Reserve(t.Context(), k, 1, store.MaxID+1); !errors.Is(err, store.ErrClock) {
				t.Errorf("Reserve = %v, want ErrClock", err)
			}
			if _, err := s.store.Reserve(t.Context(), k, 0, micros()); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("Reserve of no ids = %v, want ErrInvalid", err)
			}
			equal(t, "position", int64(1), s.reserve(t, k, 1, micros()).Position)
		},
		"two tickets never share a position or an id": s.concurrentTickets,
		"Sequence sees every Reserve and Raise answered before": func(t *testing.T) {
			k := s.fresh()
			equal(t, "at first", store.Sequence{}, s.sequence(t, k))
			ticket := s.reserve(t, k, 4, micros())
			equal(t, "after Reserve", ticket.Sequence, s.sequence(t, k))
			s.raise(t, k, 1, ticket.LastID)
			want := ticket.Sequence
			want.FloorPosition, want.FloorID = 1, ticket.LastID
			equal(t, "after Raise", want, s.sequence(t, k))
			equal(t, "the next ticket's floor", ticket.LastID, s.reserve(t, k, 1, micros()).FloorID)
		},
		"the floor only rises": func(t *testing.T) {
			k := s.fresh()
			s.reserve(t, k, 1, micros())
			s.raise(t, k, 5, 500)
			s.raise(t, k, 3, 300)
			s.raise(t, k, 5, 700)
			got := s.sequence(t, k)
			equal(t, "floor", [2]int64{5, 500}, [2]int64{got.FloorPosition, got.FloorID})
		},
		"a sequencer is not an item": func(t *testing.T) {
			k := s.fresh()
			k.Table = store.Journal
			s.reserve(t, k, 1, micros())
			s.put(t, item(key(k.Partition, "other"), 1, "x"))
			equal(t, "sequencers by other sorts", store.Sequence{}, s.sequence(t, store.Key{Table: k.Table, Partition: k.Partition, Sort: "b"}))
		},
		"a ticket's age counts from before its request": func(t *testing.T) {
			before := time.Now()
			ticket := s.reserve(t, s.fresh(), 1, micros())
			if ticket.Sent.Before(before) || ticket.Sent.After(time.Now()) || ticket.Sends < 1 {
				t.Errorf("Sent %v, Sends %d, began %v", ticket.Sent, ticket.Sends, before)
			}
		},
	})
}

func (s *suite) concurrentTickets(t *testing.T) {
	k := s.fresh()
	callers, each := 8, 25
	if s.able.Costly {
		callers, each = 4, 5
	}
	var mu sync.Mutex
	var all []store.Ticket
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for range each {
				ticket, err := s.store.Reserve(t.Context(), k, 1+caller%3, micros()+int64(caller*1000))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				all = append(all, ticket)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	slices.SortFunc(all, func(a, b store.Ticket) int { return int(a.Position - b.Position) })
	for i, ticket := range all {
		if ticket.Position != int64(i+1) {
			t.Fatalf("position %d is the %d-th", ticket.Position, i+1)
		}
		if i > 0 && ticket.FirstID <= all[i-1].LastID {
			t.Fatalf("ids %d of position %d after %d", ticket.FirstID, ticket.Position, all[i-1].LastID)
		}
	}
	equal(t, "tickets", callers*each, len(all))
}

func (s *suite) reserve(t *testing.T, k store.Key, ids int, now int64) store.Ticket {
	t.Helper()
	ticket, err := s.store.Reserve(t.Context(), k, ids, now)
	if err != nil {
		t.Fatalf("Reserve = %v", err)
	}
	return ticket
}

func (s *suite) refuses(t *testing.T, k store.Key, ids int, now int64) {
	t.Helper()
	if _, err := s.store.Reserve(t.Context(), k, ids, now); !errors.Is(err, store.ErrClock) {
		t.Errorf("Reserve = %v, want ErrClock", err)
	}
}

func (s *suite) sequence(t *testing.T, k store.Key) store.Sequence {
	t.Helper()
	seq, err := s.store.Sequence(t.Context(), k, false)
	if err != nil {
		t.Fatalf("Sequence = %v", err)
	}
	return seq
}

func (s *suite) raise(t *testing.T, k store.Key, position, id int64) {
	t.Helper()
	if err := s.store.Raise(t.Context(), k, position, id); err != nil {
		t.Fatalf("Raise = %v", err)
	}
}
