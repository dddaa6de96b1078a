package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// advancing is a store that many processes share, in which writes may take their ticket themselves. It counts requests, and may do
// something else instead of a write.
type advancing struct {
	store.Store
	reserved, written atomic.Int64
	instead           func(ctx context.Context, w store.Write) (err error, done bool) // nil: nothing
}

func newAdvancing() *advancing {
	return &advancing{Store: memory.New(memory.Options{Shared: true, Advances: true})}
}

func (s *advancing) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	s.reserved.Add(1)
	return s.Store.Reserve(ctx, key, ids, now)
}

func (s *advancing) Write(ctx context.Context, w store.Write) error {
	s.written.Add(1)
	if s.instead != nil {
		if err, done := s.instead(ctx, w); done {
			return err
		}
	}
	return s.Store.Write(ctx, w)
}

// took returns how many requests there were since it was called last: reservations and writes.
func (s *advancing) took() []int64 { return []int64{s.reserved.Swap(0), s.written.Swap(0)} }

// process opens a journal of one more process on the store.
func (s *advancing) process(t *testing.T) *journal.Journal {
	t.Helper()
	j := journal.Open(s, journal.Options{})
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// appends appends an event with a number, which it prepares as often as it is asked for.
func appends(t *testing.T, j *journal.Journal, number int) journal.Receipt {
	t.Helper()
	r, err := j.Emit(t.Context(), []event.Event{custom(number)}, nil)
	if err != nil {
		t.Fatalf("Emit(%d) = %v", number, err)
	}
	return r
}

// reads demands the events with these numbers, in this order, and that no position is left without a slot.
func (s *advancing) reads(t *testing.T, numbers ...int) {
	t.Helper()
	j := s.process(t)
	answer, err := j.ReadAfter(t.Context(), journal.Request{})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]string, len(numbers))
	for i, n := range numbers {
		want[i] = string(custom(n).Fields)
	}
	var got []string
	for _, e := range answer.Events {
		got = append(got, string(e.Fields))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if !slices.IsSortedFunc(answer.Events, func(a, b event.Event) int { return int(a.ID - b.ID) }) {
		t.Error("the ids do not rise")
	}
}

// A process that writes alone takes a ticket with its first write, and from then on each write is one request.
func TestAWriteAloneIsOneRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAdvancing()
		j := s.process(t)
		appends(t, j, 0)
		if diff := cmp.Diff([]int64{1, 1}, s.took()); diff != "" {
			t.Errorf("reservations and writes of the first (-want +got):\n%s", diff)
		}
		for n := range 9 {
			appends(t, j, 1+n)
		}
		if diff := cmp.Diff([]int64{0, 9}, s.took()); diff != "" {
			t.Errorf("reservations and writes of nine more (-want +got):\n%s", diff)
		}
		s.reads(t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	})
}

// Two processes that write in turn find out where the sequencer stands by the write itself.
func TestWritesInTurnAreTwoRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAdvancing()
		a, b := s.process(t), s.process(t)
		appends(t, a, 0)
		appends(t, b, 1)
		s.took()
		for n := range 4 {
			appends(t, a, 2+2*n)
			appends(t, b, 3+2*n)
		}
		if diff := cmp.Diff([]int64{0, 16}, s.took()); diff != "" {
			t.Errorf("reservations and writes of eight appends (-want +got):\n%s", diff)
		}
		s.reads(t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	})
}

// Where another process is always quicker, tickets are reserved, so that nobody waits for long.
func TestWhoMissesOftenReserves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAdvancing()
		j := s.process(t)
		appends(t, j, 0)
		rival, inside := s.process(t), false
		var mine [2]int64
		s.instead = func(_ context.Context, w store.Write) (error, bool) {
			if w.Advance == nil || inside {
				return nil, false
			}
			inside = true
			took := s.took()
			mine[0], mine[1] = mine[0]+took[0], mine[1]+took[1]
			appends(t, rival, 1000)
			s.took()
			inside = false
			return nil, false
		}
		s.took()
		for n := range 200 {
			appends(t, j, 1+n)
		}
		took := s.took()
		if mine[0], mine[1] = mine[0]+took[0], mine[1]+took[1]; mine[0] != 200 || mine[1] != 202 {
			t.Errorf("200 appends took %d reservations and %d writes, want one of each, and two in vain by the first", mine[0], mine[1])
		}
	})
}

// Of the writes of a process that are under way at once, a few wait for each other and take their tickets themselves; more reserve theirs.
func TestWritesSideBySideReserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			writers int
			takes   time.Duration // each write that takes its ticket itself
			want    []int64
		}{
			{1, 50 * time.Millisecond, []int64{0, 1}}, {3, 50 * time.Millisecond, []int64{0, 3}}, {5, 50 * time.Millisecond, []int64{2, 5}},
			{2, time.Second, []int64{1, 2}}, // nobody waits for a write that hangs
		} {
			writers, want := c.writers, c.want
			s := newAdvancing()
			j := s.process(t)
			appends(t, j, 0)
			s.took()
			s.instead = func(_ context.Context, w store.Write) (error, bool) {
				if w.Advance != nil {
					time.Sleep(c.takes) // of virtual time
				}
				return nil, false
			}
			var group sync.WaitGroup
			for n := range writers {
				group.Go(func() { appends(t, j, 1+n) })
				synctest.Wait()
			}
			group.Wait()
			if got := s.took(); got[0] != want[0] || got[1] < want[1] || got[1] > want[1]+3 { // those whose supposition does not hold try again
				t.Errorf("%d writers took %v reservations and writes, want %v", writers, got, want)
			}
		}
	})
}

// A write that takes long is waited for once, and not by each that comes while it does.
func TestAWriteThatHangsIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAdvancing()
		j := s.process(t)
		appends(t, j, 0)
		var others atomic.Bool
		s.instead = func(context.Context, store.Write) (error, bool) {
			if !others.Swap(true) {
				time.Sleep(4 * time.Second) // of virtual time
			}
			return nil, false
		}
		var group sync.WaitGroup
		group.Go(func() { appends(t, j, 1) })
		synctest.Wait()
		began := time.Now()
		for n := range 5 {
			appends(t, j, 2+n)
		}
		if took := time.Since(began); took > groupcommit.Slow {
			t.Errorf("five appends took %v beside one that hangs, want %v", took, groupcommit.Slow)
		}
		group.Wait()
	})
}

// The ids of a write that is refused may be used up; the next one knows, even if its clock is behind.
func TestAfterAConflictTheNextIsOneRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAdvancing()
		ahead, j := s.process(t), journal.Open(s, journal.Options{Now: func() time.Time { return time.Now().Add(-time.Second) }})
		defer func() { _ = j.Close() }()
		appends(t, ahead, 0)
		appends(t, j, 1)
		s.took()
		_, err := j.Write(t.Context(), func(_ context.Context, lost *store.Conflict) (journal.Change, error) {
			if lost != nil {
				return journal.Change{}, errBeaten
			}
			return journal.Change{Events: []event.Event{custom(2), custom(3)}, Ops: func(journal.Receipt) []store.Op {
				return []store.Op{store.Put(store.Item{Key: store.Key{Table: store.Work, Partition: "p", Sort: "none"}, Version: 1}, store.VersionIs(7))}
			}}, nil
		})
		if !errors.Is(err, errBeaten) {
			t.Fatalf("Write = %v, want %v", err, errBeaten)
		}
		s.took()
		appends(t, j, 4)
		if diff := cmp.Diff([]int64{0, 1}, s.took()); diff != "" {
			t.Errorf("reservations and writes of the append after it (-want +got):\n%s", diff)
		}
		s.reads(t, 0, 1, 4)
	})
}

// A store turns out not to be able to, while several writes are about to take their tickets themselves: they reserve them.
func TestAStoreThatCannotAfterAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &unable{advancing: newAdvancing()}
		j := journal.Open(s, journal.Options{})
		defer func() { _ = j.Close() }()
		appends(t, j, 0)
		var group sync.WaitGroup
		for n := range 3 {
			group.Go(func() { appends(t, j, 1+n) })
			synctest.Wait()
		}
		group.Wait()
		appends(t, j, 4)
		if answer, err := s.process(t).ReadAfter(t.Context(), journal.Request{}); err != nil || len(answer.Events) != 5 {
			t.Errorf("ReadAfter = %d events, %v, want 5", len(answer.Events), err)
		}
	})
}

// unable is a store that learns by the first write that takes its ticket itself that it cannot do that.
type unable struct {
	*advancing
	knows atomic.Bool
}

func (s *unable) Advances() bool { return !s.knows.Load() }

func (s *unable) Write(ctx context.Context, w store.Write) error {
	if w.Advance != nil {
		time.Sleep(time.Millisecond) // of virtual time
		s.knows.Store(true)
		return store.ErrNoAdvance
	}
	return s.advancing.Write(ctx, w)
}

// A write whose response is lost is in the journal once, also where the store turns out not to take tickets when it is sent again.
func TestAStoreThatCannotAnyMore(t *testing.T) {
	t.Parallel()
	for name, applied := range map[string]bool{"it was applied": true, "it was lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newAdvancing()
				j := s.process(t)
				appends(t, j, 0)
				sends := 0
				s.instead = func(_ context.Context, w store.Write) (error, bool) {
					if w.Advance == nil {
						return nil, false
					}
					if sends++; sends > 1 {
						return store.ErrNoAdvance, true
					}
					if applied {
						if err := s.Store.Write(context.Background(), w); err != nil {
							t.Error(err)
						}
					}
					return store.ErrUnknown, true
				}
				appends(t, j, 1)
				s.instead = nil
				appends(t, j, 2)
				s.reads(t, 0, 1, 2)
			})
		})
	}
}

// A process that goes on while its store is taken back to a backup supposes what it is told then.
func TestAStoreThatIsTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAdvancing()
		j := s.process(t)
		for n := range 5 {
			appends(t, j, n)
			time.Sleep(time.Millisecond) // of virtual time
		}
		restored := newAdvancing()
		appends(t, restored.process(t), 0)
		s.Store = restored.Store
		appends(t, j, 5)            // finds out
		time.Sleep(2 * time.Second) // of virtual time
		appends(t, j, 6)
		s.took()
		for n := range 4 {
			appends(t, j, 7+n)
		}
		if diff := cmp.Diff([]int64{0, 4}, s.took()); diff != "" {
			t.Errorf("reservations and writes of four appends (-want +got):\n%s", diff)
		}
	})
}

// A write without a response is in the journal once, or not at all, whatever became of it and whenever it arrives.
func TestAWriteWithoutAResponseIsSettled(t *testing.T) {
	t.Parallel()
	item := store.Key{Table: store.Work, Partition: "p", Sort: "item"}
	for name, c := range map[string]struct {
		lose   func(s *advancing, w store.Write) error // what becomes of the first
		landed bool
	}{
		"it was applied": {func(s *advancing, w store.Write) error {
			if err := s.Store.Write(context.Background(), w); err != nil {
				return err
			}
			return store.ErrUnknown
		}, true},
		"it was lost": {func(*advancing, store.Write) error { return store.ErrUnknown }, true},
		"it was lost, and what it rests on has changed since": {func(s *advancing, _ store.Write) error {
			changed := store.Write{Token: "other", Ops: []store.Op{store.Put(store.Item{Key: item, Version: 77}, store.Always)}}
			if err := s.Store.Write(context.Background(), changed); err != nil {
				return err
			}
			return store.ErrUnknown
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newAdvancing()
				j := s.process(t)
				appends(t, j, 0)
				var late []store.Write
				s.instead = func(_ context.Context, w store.Write) (error, bool) {
					s.instead = nil
					late = append(late, w)
					return c.lose(s, w), true
				}
				_, err := j.Write(t.Context(), func(_ context.Context, lost *store.Conflict) (journal.Change, error) {
					if lost != nil {
						return journal.Change{}, errBeaten
					}
					return journal.Change{Events: []event.Event{custom(1)}, Ops: func(journal.Receipt) []store.Op {
						return []store.Op{store.Put(store.Item{Key: item}, store.Absent)}
					}}, nil
				})
				if c.landed != (err == nil) {
					t.Errorf("Write = %v", err)
				}
				if !c.landed { // and nothing but the sequencer is in its way
					undo := store.Write{Token: "undo", Ops: []store.Op{store.Delete(item, store.Always)}}
					if err := s.Store.Write(t.Context(), undo); err != nil {
						t.Error(err)
					}
				}
				for _, w := range late { // then it arrives once more
					_ = s.Store.Write(t.Context(), w)
				}
				appends(t, j, 2)
				if c.landed {
					s.reads(t, 0, 1, 2)
				} else {
					s.reads(t, 0, 2)
				}
			})
		})
	}
}

var errBeaten = fmt.Errorf("another was quicker")
