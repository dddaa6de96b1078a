package queue

import (
	"context"
	"sync"

	"github.com/millrace/millrace/shared/definition"
)

// Fairness is decided when a task becomes ready, not when it is claimed: start-time fair queueing (Goyal, Vin, Chen 1996).
// Each fairness key has a virtual clock that a task of it moves on by a stride, the less the heavier the key's weight; a
// key that comes back from idleness begins at the queue's virtual time, the newest turn that was started. So a claim takes
// the least turn and costs the same for every policy, and a key's backlog delays nobody else.
//
// A key's clock is a sequencer of the store: Reserve answers max(now, last+1), which is just the start tag that is wanted,
// with the virtual time in the place of now.

// stride is what a task of weight 1 moves its key's clock; it is divisible by 1 to 10.
const stride = 5040

// raiseAfter is how far the virtual time runs ahead of what the store knows of it, in strides.
const raiseAfter = 16

// turns returns the turns of entries of one queue, in their order within each key.
func (q *Queue) turns(ctx context.Context, c definition.Queue, entries []entry) ([]int64, error) {
	now, err := q.virtual.now(ctx, q, c.Name)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for i := range entries {
		counts[entries[i].turn()]++
	}
	next := make(map[string]int64, len(counts))
	for _, key := range sortedKeys(counts) {
		step := strideOf(c.Weight(key))
		ticket, err := q.store.Reserve(ctx, turnKey(c.Name, key), counts[key]*int(step), now)
		if err != nil {
			return nil, unavailable("take a turn", err)
		}
		next[key] = ticket.FirstID
	}
	turns := make([]int64, len(entries))
	for i := range entries {
		key := entries[i].turn()
		turns[i] = next[key]
		next[key] += strideOf(c.Weight(key))
	}
	return turns, nil
}

func strideOf(weight int) int64 { return max(1, stride/int64(max(weight, 1))) }

// virtualTimes are what this process knows of the queues' virtual times.
type virtualTimes struct {
	mu    sync.Mutex
	times map[string]*virtualTime
}

type virtualTime struct {
	now    int64 // at least the newest turn that this process has started or read of
	raised int64 // what the store knows
	read   int64 // when that was read, in microseconds
}

// refreshAfter is how old, in microseconds, a virtual time may be that other processes move too.
const refreshAfter = 1_000_000

// now returns a queue's virtual time, at least 1.
func (v *virtualTimes) now(ctx context.Context, q *Queue, queue string) (int64, error) {
	v.mu.Lock()
	t := v.of(queue)
	known := t.read != 0 && (q.store.Exclusive() || q.micro() < t.read+refreshAfter)
	now := t.now
	v.mu.Unlock()
	if known {
		return max(now, 1), nil
	}
	seq, err := q.store.Sequence(ctx, turnsKey(queue), true)
	if err != nil {
		return 0, unavailable("read the virtual time", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	t.read, t.raised = q.micro(), max(t.raised, seq.FloorPosition)
	t.now = max(t.now, t.raised)
	return max(t.now, 1), nil
}

func (v *virtualTimes) of(queue string) *virtualTime {
	if v.times == nil {
		v.times = map[string]*virtualTime{}
	}
	t := v.times[queue]
	if t == nil {
		t = &virtualTime{}
		v.times[queue] = t
	}
	return t
}

// started moves a queue's virtual time to the rank that was started, and tells the store now and then: a virtual time that
// is some strides old gives a key that comes back so many turns more.
func (v *virtualTimes) started(ctx context.Context, q *Queue, queue, rank string) error {
	turn := unstamp(rank)
	v.mu.Lock()
	t := v.of(queue)
	t.now = max(t.now, turn)
	raise := t.now >= t.raised+raiseAfter*stride
	if raise {
		t.raised = t.now
	}
	v.mu.Unlock()
	if !raise {
		return nil
	}
	return q.store.Raise(ctx, turnsKey(queue), turn, turn)
}
