package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/queue/layout"
)

// Held is a lease that an instance holds.
type Held struct {
	Token    string
	Expires  time.Time
	Length   time.Duration
	Deadline time.Time // as that of a [Lease]
	Stop     bool      // as that of [Alive]
}

// Spare returns how long the lease may still be left alone by a holder that is heard of every so often: until a third of its length, or of
// most if that is shorter, has passed since it was extended, but not beyond the deadline, at which the task is to stop.
func (h *Held) Spare(now time.Time, most time.Duration) time.Duration {
	spare := h.Expires.Sub(now) - min(h.Length, most)*2/3
	if h.Stop || h.Deadline.IsZero() {
		return spare
	}
	return min(spare, h.Deadline.Sub(now))
}

// Holds returns the leases that an instance holds, in no order. It reads the instance's slots, and each lease with its task.
func (q *Queue) Holds(ctx context.Context, instance string) ([]Held, error) {
	tokens, err := q.limits.Holders(ctx, layout.InstanceLimit(instance))
	if err != nil || len(tokens) == 0 {
		return nil, layout.Failure("read the leases of an instance", err)
	}
	leases, err := layout.LoadLeases(ctx, q.store, tokens)
	if err != nil {
		return nil, err
	}
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return nil, err
	}
	var held []Held
	for i, l := range leases {
		if l != nil {
			job, _ := set.JobOf(l.Job)
			held = append(held, Held{tokens[i], time.UnixMicro(l.Expires), l.Length, deadline(&l.Task, &job), l.ToStop()})
		}
	}
	return held, nil
}

// Keep returns the leases that an instance holds, after it has extended those whose [Held.Spare] is over, as heartbeats do. The
// error is of the store; some of them may be extended even so.
func (q *Queue) Keep(ctx context.Context, instance string, most time.Duration) ([]Held, error) {
	held, err := q.Holds(ctx, instance)
	if err != nil {
		return nil, err
	}
	var group sync.WaitGroup
	room := make(chan struct{}, 32)
	failed := make([]error, len(held))
	now := q.now()
	for i := range held {
		if held[i].Spare(now, most) > 0 {
			continue
		}
		room <- struct{}{}
		group.Go(func() {
			failed[i] = q.keepOne(ctx, &held[i])
			<-room
		})
	}
	group.Wait()
	kept := held[:0]
	for _, h := range held {
		if !h.Expires.IsZero() {
			kept = append(kept, h)
		}
	}
	return kept, errors.Join(failed...)
}

// keepOne extends a lease. One that is gone has no end afterwards.
func (q *Queue) keepOne(ctx context.Context, h *Held) error {
	alive, err := q.Heartbeat(ctx, h.Token, Beat{})
	if errors.Is(err, ErrStale) || errors.Is(err, ErrNoLease) {
		h.Expires = time.Time{}
		return nil
	}
	if err == nil {
		h.Expires, h.Stop = alive.Expires, alive.Stop
	}
	return err
}

// Claimed returns the leases of these tokens with their tasks, as a claim has returned them; those that are no longer held are left
// out. Nothing is extended.
func (q *Queue) Claimed(ctx context.Context, tokens []string) ([]Lease, error) {
	var all []Lease
	for _, token := range tokens {
		h, err := layout.LoadLease(ctx, q.store, token)
		if errors.Is(err, ErrStale) || errors.Is(err, ErrNoLease) {
			continue
		}
		if err == nil && h.Task.Apart > 0 {
			h.Task.Payload, err = layout.LoadPayload(ctx, q.store, h.UUID)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Lease{Token: token, Task: h.Task, Expires: time.UnixMicro(h.Expires), Length: h.Length, Replayed: true})
	}
	return all, nil
}

// watchers are told when something becomes of a lease other than by an exchange of its holder, as far as this process does it: a request
// to stop, the removal of its task, its end by time, or that it was given.
type watchers struct {
	mu  sync.Mutex
	all map[string]*watcher // by instance
}

type watcher struct{ call func() }

func (w *watchers) tell(instance string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if to := w.all[instance]; to != nil {
		to.call()
	}
}

// WatchLeases has call called, which must not block, whenever this process stops, removes or ends something that the instance runs,
// or gives it something without a [Beside], until end is called. There is one watch of an instance at a time: a later one takes its place.
func (q *Queue) WatchLeases(instance string, call func()) (end func()) {
	w, mine := &q.watchers, &watcher{call}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]*watcher{}
	}
	w.all[instance] = mine
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.all[instance] == mine {
			delete(w.all, instance)
		}
	}
}
