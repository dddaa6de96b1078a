package queue

import (
	"context"
	"sync"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
)

// Fairness is decided when a task becomes ready, not when it is claimed: start-time fair queueing (Goyal, Vin, Chen 1996).
// Each fairness key has a virtual clock, which each of its tasks advances by a stride that is divided by the key's weight; a key
// that was idle begins at the queue's virtual time, the newest turn that was started. So a claim takes the least turn and costs the
// same for every type of queue, and a key's backlog delays no other key.
//
// A key's clock is a sequencer of the store: with the virtual time as now, Reserve returns max(now, last+1), which is the start
// tag of the algorithm.

// stride is how far a task of weight 1 advances its key's clock; it is divisible by 1 to 10.
const stride = 5040

// raiseAfter is how far the virtual time advances, in strides, before it is written to the store.
const raiseAfter = 16

// turns returns the turns of entries of one queue, rising within each key.
func (q *Queue) turns(ctx context.Context, c definition.Queue, entries []layout.Entry) ([]int64, error) {
	now, err := q.virtual.now(ctx, q, c.Name)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for i := range entries {
		counts[entries[i].FairnessKey()]++
	}
	next := make(map[string]int64, len(counts))
	for _, key := range sortedKeys(counts) {
		step := strideOf(c.Weight(key))
		ticket, err := q.store.Reserve(ctx, layout.TurnKey(c.Name, key), counts[key]*int(step), now)
		if err != nil {
			return nil, layout.Failure("take a turn", err)
		}
		next[key] = ticket.FirstID
	}
	turns := make([]int64, len(entries))
	for i := range entries {
		key := entries[i].FairnessKey()
		turns[i] = next[key]
		next[key] += strideOf(c.Weight(key))
	}
	return turns, nil
}

func strideOf(weight int) int64 { return max(1, stride/int64(max(weight, 1))) }

// virtualTimes caches the queues' virtual times.
type virtualTimes struct {
	mu    sync.Mutex
	times map[string]*virtualTime
}

type virtualTime struct {
	now    int64 // the newest turn that this process has started or read
	raised int64 // the newest turn in the store, as far as known
	read   int64 // when that was read, in microseconds since 1970; 0: never
}

// refreshAfter is the age, in microseconds, after which a virtual time that other processes advance too is read again.
const refreshAfter = 1_000_000

// now returns a queue's virtual time, at least 1.
func (v *virtualTimes) now(ctx context.Context, q *Queue, queue string) (int64, error) {
	v.mu.Lock()
	t := v.of(queue)
	known := t.read != 0 && q.strategy.current(t.read, refreshAfter)
	now := t.now
	v.mu.Unlock()
	if known {
		return max(now, 1), nil
	}
	seq, err := q.store.Sequence(ctx, layout.TurnsKey(queue), true)
	if err != nil {
		return 0, layout.Failure("read the virtual time", err)
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

// started advances a queue's virtual time to the turn of a rank that was started, and writes it to the store each raiseAfter strides:
// a virtual time that is some strides old gives a key that was idle so many turns more.
func (v *virtualTimes) started(ctx context.Context, q *Queue, queue, rank string) error {
	turn := layout.Unstamp(rank)
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
	return q.store.Raise(ctx, layout.TurnsKey(queue), turn, turn)
}
