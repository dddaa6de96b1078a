package queue_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// keyed is a claimer whose claim has a key.
func keyed(key string, capacity int) queue.Claimer {
	return queue.Claimer{Instance: "w/1", Capacity: capacity, Jobs: []string{"/far"}, Once: &queue.Once{Scope: "test", Key: key}}
}

// what returns the tasks of leases, with their tokens and attempts.
func what(leases []queue.Lease) []string {
	var all []string
	for _, l := range leases {
		all = append(all, fmt.Sprint(l.Task.ID, " ", l.Token, " ", l.Task.Attempt, " ", string(l.Task.Payload)))
	}
	return all
}

// A claim that is repeated with its key gets the same leases, as far as they are still held, extended; also from a process that was
// started since. That is no attempt, and takes no further slot.
func TestARepeatedClaimIsGivenTheSame(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		large := fmt.Appendf(nil, `"%0*d"`, 200<<10, 1)
		for i := range 8 {
			n := queue.New{Job: "/far", Attempts: 2, Payload: fmt.Append(nil, i)}
			if i == 1 {
				n.Payload = large // which is kept apart
			}
			b.one(n)
		}
		claim := func(q *queue.Queue, by queue.Claimer, max, want int, again bool) []queue.Lease {
			t.Helper()
			leases, err := q.Claim(t.Context(), by, max)
			if err != nil || len(leases) != want {
				t.Fatalf("Claim = %d leases, %v, want %d", len(leases), err, want)
			}
			for _, l := range leases {
				if l.Replayed != again {
					t.Errorf("lease %s: replayed %v, want %v", l.Token, l.Replayed, again)
				}
			}
			return leases
		}
		first := claim(b.Queue, keyed("k", 4), 3, 3, false)
		b.clock.advance(20 * time.Second)
		same := claim(b.Queue, keyed("k", 4), 3, 3, true)
		if diff := cmp.Diff(what(first), what(same)); diff != "" {
			t.Errorf("the repeated claim (-first +again):\n%s", diff)
		}
		if left := same[0].Expires.Sub(b.clock.now()); left != same[0].Length {
			t.Errorf("it lasts for %v more, want %v", left, same[0].Length)
		}
		b.clock.advance(20 * time.Second) // the first leases would be over

		other := keyed("k", 4)
		other.Once.Fingerprint[0] = 1
		if leases, err := b.Claim(t.Context(), other, 2); !errors.Is(err, journal.ErrIdempotencyMismatch) || len(leases) > 0 {
			t.Errorf("with the key and another content = %d leases, %v, want %v", len(leases), err, journal.ErrIdempotencyMismatch)
		}
		claim(b.Queue, keyed("l", 4), 3, 1, false) // one more slot is free
		elsewhere := keyed("k", 1)
		elsewhere.Instance = "w/2"
		claim(b.Queue, elsewhere, 1, 1, false) // keys are the instance's own

		b.complete(first[0], queue.Result{Outcome: queue.OK})
		restarted := b.restarted()
		same = claim(restarted, keyed("k", 4), 3, 2, true)
		if diff := cmp.Diff(what(first[1:]), what(same)); diff != "" {
			t.Errorf("after a restart (-first +again):\n%s", diff)
		}
		for _, l := range same {
			if _, err := restarted.Complete(t.Context(), l.Token, queue.Result{Outcome: queue.OK}); err != nil {
				t.Error(err)
			}
		}
		last := claim(restarted, keyed("k", 4), 3, 3, false)
		if last[0].Task.Attempt != 1 {
			t.Errorf("attempt %d, want 1", last[0].Task.Attempt)
		}
	})
}

// restarted returns a process that comes after this one, on the same store.
func (b *bench) restarted() *queue.Queue {
	b.t.Helper()
	return b.over(b.store, b.clock).Queue
}

// If two processes execute the same claim at once, both return the same leases.
func TestTheSameClaimInTwoProcesses(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	for range 8 {
		b.one(queue.New{Job: "/far", Attempts: 2})
	}
	var first []queue.Lease
	slow := &interrupted{Store: b.store, meanwhile: func() {
		var err error
		if first, err = b.Claim(t.Context(), keyed("k", 6), 2); err != nil {
			t.Error(err)
		}
	}}
	j := journal.Open(slow, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	defer func() { _ = j.Close() }()
	q := queue.Open(queue.Options{Store: slow, Journal: j, Definitions: fixed{ways()}, Now: b.clock.now})
	second, err := q.Claim(t.Context(), keyed("k", 6), 2)
	if err != nil || len(first) != 2 {
		t.Fatalf("claims = %d and %d leases, %v", len(first), len(second), err)
	}
	if diff := cmp.Diff(what(first), what(second)); diff != "" {
		t.Errorf("the second (-first +second):\n%s", diff)
	}
}

// A claim with a key that goes on to another queue is not taken for its own repetition when one of its writes fails: it goes on, and
// starts what it has picked there.
func TestAClaimWithAKeyGoesOnToTheNextQueue(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		set := ways()
		set.Jobs = append(set.Jobs, definition.Job{Path: "/other", Queue: "other"})
		b.open(set)
		var ids []task.ID
		for _, job := range []string{"/far", "/other"} {
			ids = append(ids, b.one(queue.New{Job: job}))
			b.one(queue.New{Job: job})
		}
		second := &interrupted{Store: b.store}
		first := &interrupted{Store: second, meanwhile: func() {}}
		there := &bench{t: t, store: first, clock: b.clock}
		there.open(set)
		first.then = func() { // the first queue's are started
			second.meanwhile = func() {
				for _, id := range ids {
					if _, err := b.Stop(t.Context(), id); err != nil {
						t.Error(err)
					}
				}
			}
		}
		by := keyed("k", 6)
		by.Jobs = append(by.Jobs, "/other")
		leases, err := there.Claim(t.Context(), by, 4)
		if err != nil || len(leases) != 3 {
			t.Errorf("Claim = %d leases, %v, want the 3 that were not cancelled", len(leases), err)
		}
		again, err := there.Claim(t.Context(), by, 4)
		if err != nil || len(again) != 3 {
			t.Errorf("the repeated claim = %d leases, %v, want the same 3", len(again), err)
		}
	})
}

// A claim that is repeated while the first waits for its turn gets the same tasks, and starts no others.
func TestAClaimIsRepeatedWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setupWith(t, ways())
		b.clock.t = time.Now()
		for range 8 {
			b.one(queue.New{Job: "/far"})
		}
		way := faulty.Spread{Min: time.Millisecond, Max: time.Millisecond}
		line := faulty.NewService(b.store, faulty.Faults{There: way, Back: way}, nil).Process("w")
		j := journal.Open(line, journal.Options{Folds: projection.Folds()})
		q := queue.Open(queue.Options{Store: line, Journal: j, Definitions: fixed{ways()}})
		defer func() { _ = j.Close() }()
		var group sync.WaitGroup
		got := make([][]queue.Lease, 3)
		for i, key := range []string{"before", "k", "k"} {
			group.Go(func() {
				var err error
				if got[i], err = q.Claim(t.Context(), keyed(key, 8), 2); err != nil || len(got[i]) != 2 {
					t.Errorf("claim %d = %d leases, %v, want 2", i, len(got[i]), err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		if diff := cmp.Diff(what(got[1]), what(got[2])); diff != "" {
			t.Errorf("the repeated claim (-first +again):\n%s", diff)
		}
	})
}

// A key costs a claim nothing.
func TestAKeyCostsAClaimNothing(t *testing.T) {
	t.Parallel()
	for name, base := range map[string]store.Store{"alone": memory.New(memory.Options{}), "shared": shared{memory.New(memory.Options{})}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupWith(t, ways())
			m := meter.New(base)
			b.store = m
			b.Queue = b.restarted()
			for range 20 {
				b.one(queue.New{Dialect: task.Job, Job: "/far"})
			}
			cost := func(by queue.Claimer) meter.Usage {
				leases, err := b.Claim(t.Context(), by, 2)
				if err != nil || len(leases) != 2 {
					t.Fatalf("Claim = %d leases, %v, want 2", len(leases), err)
				}
				for _, l := range leases {
					b.complete(l, queue.Result{Outcome: queue.OK})
				}
				return m.Reset()
			}
			plain := keyed("", 4)
			plain.Once = nil
			cost(plain) // what is read once in a while is behind us
			want := cost(plain)
			for n := range 3 {
				if diff := cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", cost(keyed(fmt.Sprint(n), 4)))); diff != "" {
					t.Errorf("claim %d (-without +with a key):\n%s", n, diff)
				}
			}
		})
	}
}
