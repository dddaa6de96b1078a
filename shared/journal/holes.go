package journal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// holes remembers since when each missing slot is known to be due. Rule (grace): it runs for each hole on its own, all in
// parallel, or readers behind many holes fall back for ever.
type holes struct {
	mu  sync.Mutex
	due map[int64]time.Time
}

// expired notes the missing positions and returns those whose grace is over, and how long the next one's lasts.
func (h *holes) expired(missing []int64, grace time.Duration) (over []int64, next time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.due == nil {
		h.due = map[int64]time.Time{}
	}
	now, next := time.Now(), grace
	for _, position := range missing {
		since, ok := h.due[position]
		if !ok {
			since = now
			h.due[position] = now
		}
		if left := grace - now.Sub(since); left <= 0 {
			over = append(over, position)
		} else {
			next = min(next, left)
		}
	}
	return over, next
}

// settled forgets the holes up to `to`, since every position up to there is filled.
func (h *holes) settled(to int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for position := range h.due {
		if position <= to {
			delete(h.due, position)
		}
	}
}

// resolve waits until the missing slot at `from` is announced in this process or appears in the store; after the grace it
// fills it.
func (j *Journal) resolve(ctx context.Context, from, goal int64) ([]slot, error) {
	to := min(goal, lastOfPage(from))
	wait := j.timing.Grace / 64
	over, _ := j.holes.expired(positions(from, to, nil), j.timing.Grace)
	for {
		if err := j.awaitSlot(ctx, from, wait, len(over) > 0); err != nil {
			return nil, err
		}
		if run := j.tail.run(from, goal); run != nil {
			j.holes.settled(run[len(run)-1].position)
			return run, nil
		}
		p, err := j.query(ctx, from, to, len(over) == 0)
		if err != nil {
			return nil, err
		}
		var next time.Duration
		over, next = j.holes.expired(positions(from, p.to, p.slots), j.timing.Grace)
		if len(over) > 0 {
			if p, err = j.fillHoles(ctx, p); err != nil {
				return nil, err
			}
		}
		if run := p.run(); len(run) > 0 {
			j.holes.settled(run[len(run)-1].position)
			j.tail.feed(run)
			return run, nil
		}
		wait = min(2*wait, next)
	}
}

// awaitSlot waits for the announcement of a slot, about as long as wait says; not at all if now is set.
func (j *Journal) awaitSlot(ctx context.Context, position int64, wait time.Duration, now bool) error {
	if now {
		return ctx.Err()
	}
	timer := time.NewTimer(wait + j.jitter(wait/16+1)) // readers that were woken together do not query together
	defer timer.Stop()
	for {
		_, changed := j.tail.end()
		if j.tail.holds(position) {
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-j.ctx.Done():
			return ErrClosed
		}
	}
}

// positions returns those from `from` to `to` that none of the slots, sorted by position, has.
func positions(from, to int64, but []slot) []int64 {
	var missing []int64
	for position := from; position <= to; position++ {
		for len(but) > 0 && but[0].position < position {
			but = but[1:]
		}
		if len(but) == 0 || but[0].position != position {
			missing = append(missing, position)
		}
	}
	return missing
}

// fillHoles decides the missing slots of a page whose grace is over, and returns the page with them. Adjacent holes are
// filled in order, so that each void carries the last id of the slot before.
func (j *Journal) fillHoles(ctx context.Context, p page) (page, error) {
	// Rule (floor check): a strong read of the sequencer shows that the slots lie above the floor, after which the
	// slots themselves are read strongly: what is missing then was not removed.
	k, err := j.know(ctx)
	if err != nil {
		return p, err
	}
	if k.floor >= p.from {
		return p, fmt.Errorf("%w: position %d, floor %d", errEvicted, p.from, k.floor)
	}
	if p, err = j.query(ctx, p.from, p.to, false); err != nil {
		return p, err
	}
	over, _ := j.holes.expired(positions(p.from, p.to, p.slots), j.timing.Grace)
	if len(over) == 0 {
		return p, nil
	}
	before, err := j.lastBefore(ctx, p.from, k)
	if err != nil {
		return p, err
	}
	return j.fillRuns(ctx, p, over, before, k)
}

// fillRuns fills runs of adjacent holes in parallel.
func (j *Journal) fillRuns(ctx context.Context, p page, over []int64, before event.ID, k known) (page, error) {
	at := make(map[int64]slot, len(p.slots))
	for _, s := range p.slots {
		at[s.position] = s
	}
	runs := adjacent(over)
	filled, errs := make([][]slot, len(runs)), make([]error, len(runs))
	var group sync.WaitGroup
	for i, run := range runs {
		last := before
		if run[0] > p.from {
			previous, ok := at[run[0]-1]
			if !ok {
				continue // its predecessor is still within its grace
			}
			last = previous.last
		}
		group.Go(func() { filled[i], errs[i] = j.fillRun(ctx, run, last, k) })
	}
	group.Wait()
	for _, s := range slices.Concat(filled...) {
		at[s.position] = s
	}
	p.slots = p.slots[:0:0]
	for position := p.from; position <= p.to; position++ {
		if s, ok := at[position]; ok {
			p.slots = append(p.slots, s)
		}
	}
	if len(p.run()) > 0 {
		return p, nil
	}
	return p, cmp.Or(errs...)
}

// adjacent cuts rising positions into runs without a gap.
func adjacent(positions []int64) [][]int64 {
	var runs [][]int64
	for i, position := range positions {
		if i == 0 || position != positions[i-1]+1 {
			runs = append(runs, nil)
		}
		last := len(runs) - 1
		runs[last] = append(runs[last], position)
	}
	return runs
}

func (j *Journal) fillRun(ctx context.Context, run []int64, last event.ID, k known) ([]slot, error) {
	var filled []slot
	for _, position := range run {
		s, err := j.fill(ctx, position, last, k)
		if err != nil {
			return filled, err
		}
		j.tail.filled(s)
		filled = append(filled, s)
		last = s.last
	}
	return filled, nil
}

// fill decides a missing slot by a void. Rule (fill): by the same conditional put as an event; losing it means that the
// event is there, and is delivered.
func (j *Journal) fill(ctx context.Context, position int64, last event.ID, k known) (slot, error) {
	held, err := j.writeVoid(ctx, j.keys.slotOps(position, void(last)), k, position)
	if err != nil {
		return slot{}, j.unavailable("fill a hole", err)
	}
	if held == nil {
		j.log.DebugContext(ctx, "hole filled", "position", position)
		return slot{position: position, last: last}, nil
	}
	return j.decodeItem(ctx, position, held)
}

// lastBefore returns the last id below position. ReadNewest begins with a page's first slot, so that the one before it may
// be missing too: then that is decided first, from the nearest slot below that is there.
func (j *Journal) lastBefore(ctx context.Context, position int64, k known) (event.ID, error) {
	if position == 1 {
		return 0, nil
	}
	if position-1 == k.floor {
		return k.floorID, nil
	}
	s, err := j.slotAt(ctx, position-1)
	if err != nil {
		return 0, err
	}
	if s != nil {
		return s.last, nil
	}
	now, err := j.know(ctx)
	if err != nil {
		return 0, err
	}
	if now.floor >= position-1 { // it was there, and was removed since k was known
		return 0, fmt.Errorf("%w: position %d, floor %d", errEvicted, position-1, now.floor)
	}
	from, err := j.missingFrom(ctx, position-1, now.floor)
	if err != nil {
		return 0, err
	}
	run, err := j.span(ctx, min(from, position-1), position-1) // the slot may have been written meanwhile
	if err != nil {
		return 0, err
	}
	return run[len(run)-1].last, nil
}

// missingFrom returns the first position of the run of missing slots that ends at position.
func (j *Journal) missingFrom(ctx context.Context, position, floor int64) (int64, error) {
	for position > floor+1 {
		first := max(pageOf(position)*pageSize, floor+1)
		p, err := j.query(ctx, first, position, false)
		if err != nil {
			return 0, err
		}
		if n := len(p.slots); n > 0 {
			return p.slots[n-1].position + 1, nil
		}
		if first == floor+1 {
			return first, nil
		}
		position = first - 1
	}
	return position, nil
}
