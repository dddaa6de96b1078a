package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store"
)

func (s *suite) concurrency(t *testing.T) {
	callers := 16
	if s.able.Costly {
		callers = 5
	}
	cases(t, map[string]func(*testing.T){
		"of many who put the same absent key one wins": func(t *testing.T) {
			k := s.fresh()
			won := s.race(t, callers, func(n int) store.Write { return write(store.Put(item(k, 1, fmt.Sprint(n)), store.Absent)) })
			s.holds(t, k, fmt.Sprint(won))
		},
		"of many who replace the same version one wins": func(t *testing.T) {
			k := s.fresh()
			s.put(t, item(k, 1, "start"))
			won := s.race(t, callers, func(n int) store.Write { return write(store.Put(item(k, 2, fmt.Sprint(n)), store.VersionIs(1))) })
			s.holds(t, k, fmt.Sprint(won))
		},
		"of many who write the same two keys in turn one wins, wholly": func(t *testing.T) {
			p := s.partition()
			won := s.race(t, callers, func(n int) store.Write {
				ops := []store.Op{
					store.Put(item(key(p, "a"), 1, fmt.Sprint(n)), store.Absent), store.Put(item(key(p, "b"), 1, fmt.Sprint(n)), store.Absent),
				}
				if n%2 == 1 {
					ops[0], ops[1] = ops[1], ops[0]
				}
				return write(ops...)
			})
			s.holds(t, key(p, "a"), fmt.Sprint(won))
			s.holds(t, key(p, "b"), fmt.Sprint(won))
		},
	})
}

// race has all callers write at once, each until it has an outcome, and returns the one that won.
func (s *suite) race(t *testing.T, callers int, make func(n int) store.Write) int {
	t.Helper()
	var winners atomic.Int64
	var winner atomic.Int64
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() {
			w := make(n)
			for {
				err := s.store.Write(t.Context(), w)
				switch {
				case err == nil:
					winners.Add(1)
					winner.Store(int64(n))
					return
				case store.AsConflict(err) != nil:
					return
				case !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrUnknown):
					t.Errorf("Write = %v", err)
					return
				}
			}
		})
	}
	group.Wait()
	if winners.Load() != 1 {
		t.Fatalf("%d writes succeeded, want 1", winners.Load())
	}
	return int(winner.Load())
}

func (s *suite) life(t *testing.T) {
	cases(t, map[string]func(*testing.T){
		"Ping answers nil while the store can be used": func(t *testing.T) {
			if err := s.store.Ping(t.Context()); err != nil {
				t.Errorf("Ping = %v", err)
			}
		},
		"Date is about now": func(t *testing.T) {
			date, err := s.store.Date(t.Context())
			if err != nil || time.Since(date).Abs() > 10*time.Minute {
				t.Errorf("Date = %v, %v", date, err)
			}
		},
		"Exclusive is as declared": func(t *testing.T) { equal(t, "Exclusive", s.able.Exclusive, s.store.Exclusive()) },
		"a call whose context has ended sends nothing": func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			k := s.fresh()
			if _, err := s.store.Get(ctx, k); !errors.Is(err, context.Canceled) {
				t.Errorf("Get = %v, want context.Canceled", err)
			}
			err := s.store.Write(ctx, write(store.Put(item(k, 1, "x"), store.Always)))
			if !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrUnknown) {
				t.Errorf("Write = %v, want context.Canceled", err)
			}
		},
		"a write whose context ends has the context's error only if nothing was sent": func(t *testing.T) {
			for n := range 40 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n*n)*time.Microsecond)
				k := s.fresh()
				err := s.store.Write(ctx, write(store.Put(item(k, 1, "x"), store.Absent)))
				cancel()
				found, unread := s.store.Get(t.Context(), k)
				switch there := unread == nil && found[0] != nil; {
				case unread != nil:
					t.Fatal(unread)
				case err == nil && !there:
					t.Error("Write = nil, and the item is not there")
				case err != nil && !errors.Is(err, store.ErrUnknown) && there:
					t.Errorf("Write = %v, and the item is there", err)
				}
			}
		},
		"later calls answer ErrClosed, and closing twice is no error": func(t *testing.T) {
			closed := s.open(t)
			k := s.fresh()
			for range 2 {
				if err := closed.Close(); err != nil {
					t.Fatalf("Close = %v", err)
				}
			}
			_, get := closed.Get(t.Context(), k)
			_, query := closed.Query(t.Context(), store.Range{Table: store.Work, Partition: k.Partition})
			_, reserve := closed.Reserve(t.Context(), k, 1, micros())
			_, sequence := closed.Sequence(t.Context(), k, false)
			_, date := closed.Date(t.Context())
			for name, err := range map[string]error{
				"Get": get, "Query": query, "Reserve": reserve, "Sequence": sequence, "Date": date, "Ping": closed.Ping(t.Context()),
				"Raise": closed.Raise(t.Context(), k, 1, 1), "Remove": closed.Remove(t.Context(), store.Range{Table: store.Work, Partition: "p"}),
				"Write": closed.Write(t.Context(), write(store.Put(item(k, 1, "x"), store.Always))),
			} {
				if !errors.Is(err, store.ErrClosed) {
					t.Errorf("%s = %v, want ErrClosed", name, err)
				}
			}
		},
	})
}

// Reopen checks a durable backend: what was acknowledged is there after it is closed and opened again.
func Reopen(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	s := &suite{store: store.NewChecked(open(t)), run: "reopen"}
	k, counter := s.fresh(), s.fresh()
	ticket := s.reserve(t, counter, 3, micros())
	i := item(k, ticket.Position, "kept")
	i.Expires = time.Unix(4_000_000_000, 0)
	w := write(store.Put(i, store.Absent))
	s.must(t, w)
	s.raise(t, counter, 1, ticket.FirstID)
	before := s.sequence(t, counter)
	if err := s.store.Close(); err != nil {
		t.Fatalf("Close = %v", err)
	}
	s.store = store.NewChecked(open(t))
	found := s.holds(t, k, "kept")
	i.Token = w.Token
	found.Expires = time.Unix(found.Expires.Unix(), 0)
	equal(t, "item", &i, found)
	equal(t, "sequencer", before, s.sequence(t, counter))
	if next := s.reserve(t, counter, 1, 1); next.Position != ticket.Position+1 || next.FirstID <= ticket.LastID {
		t.Errorf("next ticket = %+v after %+v", next, ticket)
	}
	s.must(t, w) // a repeat is recognised by its token
}
