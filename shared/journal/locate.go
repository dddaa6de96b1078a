package journal

import (
	"context"
	"fmt"
	"sync"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// locatedSize is how many recent reads are remembered, so that as many followers go on without a search.
const locatedSize = 4096

// located remembers at which positions recent reads ended.
type located struct {
	mu    sync.Mutex
	at    map[event.ID]int64
	order [locatedSize]event.ID
	count int
}

func (l *located) put(id event.ID, position int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		l.at = make(map[event.ID]int64)
	}
	if _, ok := l.at[id]; !ok {
		slot := &l.order[l.count%locatedSize]
		if l.count >= locatedSize {
			delete(l.at, *slot)
		}
		*slot = id
		l.count++
	}
	l.at[id] = position
}

func (l *located) get(id event.ID) (int64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	position, ok := l.at[id]
	return position, ok
}

// locate returns a position such that every event after `after` lies there or above. Too low a position is harmless, since
// a reader skips ids; it is never too high, since the last ids of slots never fall.
func (j *Journal) locate(ctx context.Context, after event.ID, seq store.Sequence) (int64, error) {
	lowest := seq.FloorPosition + 1
	if after <= event.ID(seq.FloorID) || seq.Position < lowest {
		return lowest, nil
	}
	if position, ok := j.tail.locate(after); ok && (j.tail.holds(position) || seq.Position-position < pageSize) { // or it lags behind other processes
		return max(position, lowest), nil
	}
	if position, ok := j.found.get(after); ok {
		return max(position, lowest), nil
	}
	return j.search(ctx, after, seq)
}

// bound is a position and its last id.
type bound struct {
	position int64
	last     event.ID
}

// search looks for the first slot whose last id is above after, a missing slot counting as above: from the newest
// backward in steps that double, then between the bounds by turns of interpolation, since ids are times, and of halving.
func (j *Journal) search(ctx context.Context, after event.ID, seq store.Sequence) (int64, error) {
	low := bound{seq.FloorPosition, event.ID(seq.FloorID)}
	high := bound{seq.Position + 1, event.ID(seq.LastID) + 1}
	for step := int64(1); ; step *= 2 {
		position := seq.Position + 1 - step
		if position <= low.position {
			break
		}
		below, err := j.probe(ctx, position, after, &low, &high)
		if err != nil {
			return 0, err
		}
		if below {
			break
		}
	}
	for turn := 0; high.position-low.position > 1; turn++ {
		position := low.position + (high.position-low.position)/2
		if turn%2 == 0 && high.last > low.last {
			share := float64(after-low.last) / float64(high.last-low.last)
			position = low.position + int64(share*float64(high.position-low.position))
			position = min(max(position, low.position+1), high.position-1)
		}
		if _, err := j.probe(ctx, position, after, &low, &high); err != nil {
			return 0, err
		}
	}
	return high.position, nil
}

// probe reads one slot's last id and moves the bound that it replaces.
func (j *Journal) probe(ctx context.Context, position int64, after event.ID, low, high *bound) (below bool, err error) {
	items, err := j.store.Get(ctx, j.keys.slot(position))
	if err != nil {
		return false, j.unavailable("search the journal", err)
	}
	if items[0] == nil {
		high.position = position
		return false, nil
	}
	last, err := lastOf(items[0].Value)
	if err != nil {
		return false, fmt.Errorf("%w: %w (position %d)", ErrDamaged, err, position)
	}
	if last <= after {
		*low = bound{position, last}
		return true, nil
	}
	*high = bound{position, last}
	return false, nil
}
