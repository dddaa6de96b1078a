package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// In a store that can, a write takes its ticket itself, at the moment it is applied: one request instead of two, one wait for the disk, and no
// position without a slot. For that the writer has to suppose which ticket is next, and the sequencer is held until the write is durable. So it
// does where few write: while hardly another write of this process is under way, and, as far as it has met, none of another process. Otherwise
// tickets are reserved, so that slots are written side by side.

// supposition is what a process supposes of where the sequencer stands.
type supposition struct {
	mu        sync.Mutex
	last      store.Sequence // the newest that this process has seen
	ahead     store.Sequence // where it stands after the writes under way that take their ticket themselves
	taking    int            // how many these are
	reserving int            // reservations under way
	misses    int            // how many writes in a row have found that others write too
	skip      int            // how many writes reserve their ticket after that
}

const (
	suppositions = 2  // how often a write supposes where the sequencer stands
	mostTaking   = 2  // writes under way that take their ticket themselves: the second one waits for the first
	mostSkipped  = 64 // writes that reserve their ticket after a miss
)

// next returns the ticket for ids that is probably the next, for a write that is to call taken; ok is false where it had better be reserved.
// now is in microseconds since 1970.
func (s *supposition) next(ids int, now int64) (t store.Ticket, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.Position == 0 || s.last.Leads(now) || s.reserving > 0 || s.taking == mostTaking {
		return t, false
	}
	if s.skip > 0 {
		s.skip--
		return t, false
	}
	if s.taking == 0 || s.ahead.Position < s.last.Position {
		s.ahead = s.last
	}
	t, err := s.ahead.Reserve(ids, now)
	if err != nil {
		return t, false
	}
	s.taking++
	s.ahead, t.Sent = t.Sequence, time.Now()
	return t, true
}

// taken ends a write that would take its ticket itself.
func (s *supposition) taken(outcome outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taking--; outcome == landed {
		s.misses = 0
	}
}

// missed notes that a write could not take its ticket itself, as often as it has tried.
func (s *supposition) missed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.misses++
	s.skip = min(1<<min(s.misses, 30), mostSkipped)
}

// reserve counts a reservation until it has an end.
func (s *supposition) reserve() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserving++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reserving--
	}
}

// saw notes where the sequencer stood.
func (s *supposition) saw(at store.Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Position > s.last.Position {
		s.last = store.Sequence{Position: at.Position, LastID: at.LastID}
	}
}

// writeOnce writes a change with one ticket.
func (j *Journal) writeOnce(ctx context.Context, until time.Time, actor string, change Change) (*attempt, outcome, error) {
	ids := max(len(change.Events), 1)
	for try := 0; try < suppositions && j.store.Advances(); try++ {
		t, ok := j.supposed.next(ids, j.now().UnixMicro())
		if !ok {
			break
		}
		a := j.attempt(t, until, change, actor)
		outcome, err := a.take(ctx)
		if j.supposed.taken(outcome); outcome != missed {
			return a, outcome, err
		}
		if try == suppositions-1 {
			j.supposed.missed()
		}
	}
	t, err := j.reserve(ctx, until, ids)
	if err != nil {
		return nil, undecided, err
	}
	a := j.attempt(t, until, change, actor)
	outcome, err := a.run(ctx)
	return a, outcome, err
}

// take is run of an attempt whose write takes the ticket itself. Until it is applied nothing holds the position, so there is no void to be
// written: missed means that another has it, and that nothing of this write was or will be applied.
func (a *attempt) take(ctx context.Context) (outcome, error) {
	if errors.Is(a.invalid, ErrTooLarge) {
		return undecided, a.invalid
	}
	if a.invalid != nil { // an item was written later than what this process has seen
		return missed, nil
	}
	a.write.Advance = &store.Advance{
		Key: a.j.keys.sequencer(), From: a.ticket.Position - 1, FirstID: a.ticket.FirstID, LastID: a.ticket.LastID,
	}
	for try := 0; ; try++ {
		err := a.send(ctx)
		var moved *store.Moved
		switch {
		case err == nil:
			a.j.supposed.saw(a.ticket.Sequence)
			return landed, nil
		case errors.As(err, &moved):
			a.j.supposed.saw(moved.To)
			return missed, nil
		}
		result, decided := a.judge(err, try)
		if decided { // another write's slot, where the sequencer has given no position: it was restored from a backup
			return missed, nil
		}
		if result == refused || over(a.until) {
			return a.settle(ctx)
		}
		a.j.pause(ctx, try)
	}
}

// settle decides an attempt that would take its ticket itself. Rule (only the slot decides): a reservation moves the sequencer on, so
// that no send of the write can be applied any more; then the slot shows whether one was.
func (a *attempt) settle(ctx context.Context) (outcome, error) {
	if !a.inFlight {
		return refused, a.failure()
	}
	if least := time.Now().Add(a.j.timing.Call); a.until.Before(least) {
		a.until = least
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), a.until)
	defer cancel()
	t, err := a.j.reserve(ctx, a.until, 1)
	if err != nil {
		return undecided, fmt.Errorf("%w: position %d: %w", ErrUnknownOutcome, a.ticket.Position, err)
	}
	held, err := a.j.held(ctx, a.ticket.Position)
	spent := &attempt{j: a.j, ticket: t, until: a.until, write: store.Write{NotAfter: t.Sent.Add(a.j.timing.Age)}}
	_, _ = spent.abandon(ctx) // or readers fill it
	switch {
	case err != nil || held == nil && t.FloorPosition >= a.ticket.Position:
		return undecided, fmt.Errorf("%w: position %d: %w", ErrUnknownOutcome, a.ticket.Position, errors.Join(err, store.ErrUnknown))
	case held != nil && held.Token == a.write.Token:
		return landed, nil
	}
	return refused, a.failure()
}

// held reads what a slot holds, until ctx ends; nil if there is none.
func (j *Journal) held(ctx context.Context, position int64) (*store.Item, error) {
	for try := 0; ; try++ {
		items, err := j.store.Get(ctx, j.keys.slot(position))
		if err == nil {
			return items[0], nil
		}
		if ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return nil, err
		}
		j.pause(ctx, try)
	}
}
