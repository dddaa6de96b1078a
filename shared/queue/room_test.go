package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/task"
)

// An instance never has more tasks than its capacity, by whichever claims; a slot is free again when a lease ends, in whatever way.
func TestCapacityBoundsWhatAnInstanceHolds(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		for range 12 {
			b.one(queue.New{Job: "/far", Attempts: 2})
		}
		by := queue.Claimer{Instance: "w/1", Capacity: 4, Jobs: []string{"/far"}}
		claim := func(by queue.Claimer, max, want int) []queue.Lease {
			t.Helper()
			leases, err := b.Claim(t.Context(), by, max)
			if err != nil || len(leases) != want {
				t.Fatalf("Claim = %d leases, %v, want %d", len(leases), err, want)
			}
			return leases
		}
		first := claim(by, 3, 3)
		claim(by, 3, 1)
		claim(by, 3, 0)
		claim(queue.Claimer{Instance: "w/2", Capacity: 2, Jobs: by.Jobs}, 15, 2) // which has slots of its own
		b.complete(first[0], queue.Result{Outcome: queue.OK})
		b.complete(first[1], queue.Result{Outcome: queue.Failed})
		if err := b.Remove(t.Context(), first[2].Task.ID); err != nil {
			t.Fatal(err)
		}
		claim(by, 15, 3)
		by.Capacity = 5 // which a heartbeat may say
		claim(by, 15, 1)
		by.Capacity = 2
		claim(by, 15, 0)
		b.clock.advance(time.Minute)
		if s, err := b.Sweep(t.Context()); err != nil || s.Lost != 7 {
			t.Fatalf("Sweep = %+v, %v, want 7 leases lost", s, err)
		}
		claim(by, 15, 2)
	})
}

// Claims of one instance that several processes take at the same moment do not exceed its capacity either.
func TestCapacityHoldsForClaimsAtOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			b := setupWith(t, ways())
			b.clock.t = time.Now()
			for range 30 {
				b.one(queue.New{Job: "/far"})
			}
			way := faulty.Spread{Min: time.Millisecond, Max: 5 * time.Millisecond}
			service := faulty.NewService(b.store, faulty.Faults{Seed: seed, There: way, Back: way}, nil)
			var mu sync.Mutex
			var group sync.WaitGroup
			held := 0
			for w := range 6 {
				line := service.Process(fmt.Sprint(w))
				j := journal.Open(line, journal.Options{Folds: projection.Folds()})
				q := queue.Open(queue.Options{Store: line, Journal: j, Definitions: fixed{ways()}})
				group.Go(func() {
					defer func() { _ = j.Close() }()
					leases, err := q.Claim(t.Context(), queue.Claimer{Instance: "w/1", Capacity: 4, Jobs: []string{"/far"}}, 3)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					held += len(leases)
					mu.Unlock()
				})
			}
			group.Wait()
			if held < 1 || held > 4 {
				t.Errorf("seed %d: %d are held, want at most 4", seed, held)
			}
		})
	}
}

// Concurrent claims of an instance share a write: one is under way, and then one write is for all others, each of which gets what it
// wants while slots are free. No task is started for a claim whose context has ended meanwhile.
func TestClaimsOfOneInstanceGoTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setupWith(t, ways())
		b.clock.t = time.Now()
		for range 20 {
			b.one(queue.New{Job: "/far"})
		}
		counted := &writes{Store: b.store}
		way := faulty.Spread{Min: time.Millisecond, Max: time.Millisecond}
		line := faulty.NewService(counted, faulty.Faults{There: way, Back: way}, nil).Process("w")
		j := journal.Open(line, journal.Options{Folds: projection.Folds()})
		q := queue.Open(queue.Options{Store: line, Journal: j, Definitions: fixed{ways()}})
		defer func() { _ = j.Close() }()
		by := queue.Claimer{Instance: "w/1", Capacity: 12, Jobs: []string{"/far"}}
		left, leave := context.WithCancel(t.Context())
		var mu sync.Mutex
		var group sync.WaitGroup
		started, got := map[task.ID]bool{}, map[int]int{}
		claim := func(ctx context.Context) {
			leases, err := q.Claim(ctx, by, 1)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[len(leases)]++
			for i := range leases {
				started[leases[i].Task.ID] = true
			}
		}
		for n := range 15 {
			group.Go(func() { claim(t.Context()) })
			if n == 7 {
				synctest.Wait()
				group.Go(func() { claim(left) })
			}
		}
		synctest.Wait()
		leave()
		group.Wait()
		if len(started) != 12 || got[1] != 12 || got[0] != 4 {
			t.Errorf("%d tasks are started, claims had %v, want 12 with one task and 4 with none", len(started), got)
		}
		if n := counted.calls.Load(); n != 2 {
			t.Errorf("%d writes, want 2", n)
		}
	})
}

// A task that becomes ready wakes one instance that waits. If that turns out to have no free slot, the next is woken; and it is woken
// itself when it has one.
func TestWhoHasNoRoomPassesTheWakeOn(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways())
	full, free := queue.Claimer{Instance: "full/1", Capacity: 1, Jobs: []string{"/far"}}, queue.Claimer{Instance: "free/1", Capacity: 1, Jobs: []string{"/far"}}
	claim := func(by queue.Claimer, want int) []queue.Lease {
		t.Helper()
		leases, err := b.Claim(t.Context(), by, 1)
		if err != nil || len(leases) != want {
			t.Fatalf("Claim = %d leases, %v, want %d", len(leases), err, want)
		}
		return leases
	}
	woken := func(w *queue.Waiting) bool {
		select {
		case <-w.Ready():
			return true
		default:
			return false
		}
	}
	b.one(queue.New{Job: "/far"})
	held := claim(full, 1)
	first, second := b.Wait(full), b.Wait(free)
	b.one(queue.New{Job: "/far"})
	claim(full, 0)
	if !woken(first) || woken(second) || !first.Looks() {
		t.Fatal("the first that waits was not woken, or not alone")
	}
	if !woken(second) {
		t.Fatal("the wake was not passed on")
	}
	second.End()
	first = b.Wait(full)
	b.complete(held[0], queue.Result{Outcome: queue.OK})
	if !woken(first) || !first.Looks() {
		t.Fatal("it was not woken when it had room")
	}
	claim(full, 1)
}

// An instance that is woken for more tasks than it has slots for leaves the others to who else waits, whether its claims come together
// or one after the other.
func TestWhatAnInstanceHasNoSlotForWakesAnother(t *testing.T) {
	t.Parallel()
	for name, together := range map[string]bool{"together": true, "one by one": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothWays(t, func(t *testing.T, b *bench) {
				full := queue.Claimer{Instance: "w/1", Capacity: 1, Jobs: []string{"/far"}}
				other := queue.Claimer{Instance: "w/2", Capacity: 1, Jobs: []string{"/far"}}
				waits := []*queue.Waiting{b.Wait(full), b.Wait(full)}
				idle := b.Wait(other)
				defer idle.End()
				b.one(queue.New{Job: "/far"})
				b.one(queue.New{Job: "/far"})
				for _, w := range waits {
					<-w.Ready()
					w.Looks()
				}
				claims := []int{1, 1}
				if together {
					claims = []int{2}
				}
				for _, max := range claims {
					if _, err := b.Claim(t.Context(), full, max); err != nil {
						t.Fatal(err)
					}
				}
				select {
				case <-idle.Ready():
				default:
					t.Fatal("the other instance was not woken for the task that is left")
				}
				if leases, err := b.Claim(t.Context(), other, 1); err != nil || len(leases) != 1 {
					t.Errorf("Claim = %d leases, %v, want the task that is left", len(leases), err)
				}
			})
		})
	}
}

// A claim that was woken for a task and leaves before its turn comes has another instance woken for it.
func TestAWokenClaimThatLeavesWakesAnother(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		by := queue.Claimer{Instance: "w/1", Capacity: 1, Jobs: []string{"/far"}}
		w := b.Wait(by)
		other := b.Wait(queue.Claimer{Instance: "w/2", Capacity: 1, Jobs: []string{"/far"}})
		defer other.End()
		b.one(queue.New{Job: "/far"})
		<-w.Ready()
		w.Looks()
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := b.Claim(gone, by, 1); !errors.Is(err, context.Canceled) {
			t.Fatalf("Claim = %v, want %v", err, context.Canceled)
		}
		select {
		case <-other.Ready():
		default:
			t.Error("the other instance was not woken")
		}
	})
}
