package fair

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// stride is how far a task of weight 1 advances its key's clock; it is divisible by 1 to 10.
const stride = 5040

// raiseAfter is how far the virtual time advances, in strides, before it is written to the store.
const raiseAfter = 16

// Turns is one process's access to the turns of queues. Its methods may be called concurrently.
type Turns struct {
	store store.Store
	now   func() time.Time
	alone bool

	mu    sync.Mutex
	times map[string]*virtualTime
}

// New returns the Turns of a store. alone says that the process has the store to itself: then what was read once is kept.
func New(s store.Store, now func() time.Time, alone bool) *Turns {
	return &Turns{store: s, now: now, alone: alone, times: map[string]*virtualTime{}}
}

// Take returns a turn for each of some tasks of a queue, of which keys holds the fairness keys; they rise within each key.
func (v *Turns) Take(ctx context.Context, c definition.Queue, keys []string) ([]int64, error) {
	now, err := v.virtual(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, key := range keys {
		counts[key]++
	}
	next := make(map[string]int64, len(counts))
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		step := strideOf(c.Weight(key))
		ticket, err := v.store.Reserve(ctx, layout.TurnKey(c.Name, key), counts[key]*int(step), now)
		if err != nil {
			return nil, layout.Failure("take a turn", err)
		}
		next[key] = ticket.FirstID
	}
	turns := make([]int64, len(keys))
	for i, key := range keys {
		turns[i] = next[key]
		next[key] += strideOf(c.Weight(key))
	}
	return turns, nil
}

func strideOf(weight int) int64 { return max(1, stride/int64(max(weight, 1))) }

type virtualTime struct {
	now    int64 // the newest turn that this process has started or read
	raised int64 // the newest turn in the store, as far as known
	read   int64 // when that was read, in microseconds since 1970; 0: never
}

// refreshAfter is the age, in microseconds, after which a virtual time that other processes advance too is read again.
const refreshAfter = 1_000_000

// virtual returns a queue's virtual time, at least 1.
func (v *Turns) virtual(ctx context.Context, queue string) (int64, error) {
	v.mu.Lock()
	t := v.of(queue)
	known := t.read != 0 && (v.alone || v.now().UnixMicro() <= t.read+refreshAfter)
	now := t.now
	v.mu.Unlock()
	if known {
		return max(now, 1), nil
	}
	seq, err := v.store.Sequence(ctx, layout.TurnsKey(queue), true)
	if err != nil {
		return 0, layout.Failure("read the virtual time", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	t.read, t.raised = v.now().UnixMicro(), max(t.raised, seq.FloorPosition)
	t.now = max(t.now, t.raised)
	return max(t.now, 1), nil
}

func (v *Turns) of(queue string) *virtualTime {
	t := v.times[queue]
	if t == nil {
		t = &virtualTime{}
		v.times[queue] = t
	}
	return t
}

// Started advances a queue's virtual time to a turn that was started, and writes it to the store each raiseAfter strides:
// a virtual time that is some strides old gives a key that was idle so many turns more.
func (v *Turns) Started(ctx context.Context, queue string, turn int64) error {
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
	return v.store.Raise(ctx, layout.TurnsKey(queue), turn, turn)
}
