package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/store"
)

// In a store that can, a write takes its ticket itself, at the moment it is applied: one request instead of two, one wait for the disk, and no
// position without a slot. For that the writer has to suppose which ticket is next, and the sequencer is held until the write is durable. So it
// does where few write: a few writes of this process wait for each other, and, as far as it has met, no other process writes. Otherwise tickets
// are reserved, so that slots are written side by side.

// supposition is what a process supposes of where the sequencer stands.
type supposition struct {
	mu        sync.Mutex
	last      store.Sequence // the newest that this process has seen
	learned   time.Time      // when that was
	taking    chan struct{}  // closed when the write under way has ended that takes its ticket itself; nil: there is none
	hangs     bool           // another has waited for it in vain
	waiting   int            // writes that wait for that, to take theirs
	reserving int            // reservations under way
	contended time.Time      // until when writes reserve theirs, since others were quicker than one, as often as it has tried
}

const (
	suppositions = 2 // how often a write supposes where the sequencer stands
	mostWaiting  = 2 // writes that wait to take their ticket themselves; more of them reserve theirs
)

// next returns the ticket for ids that is probably the next, for a write that is to call taken, once no other takes its own. ok is false where
// the ticket had better be reserved. now returns microseconds since 1970.
func (s *supposition) next(ctx context.Context, ids int, now func() int64) (t store.Ticket, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.taking != nil && !s.isContended() {
		if s.hangs || s.waiting == mostWaiting || !s.await(ctx) {
			return t, false
		}
	}
	at := now()
	if s.isContended() || s.last.Position == 0 || s.last.Leads(at) || s.reserving > 0 {
		return t, false
	}
	t, err := s.last.Reserve(ids, at)
	if err != nil {
		return t, false
	}
	s.taking, t.Sent = make(chan struct{}), time.Now()
	return t, true
}

func (s *supposition) isContended() bool { return time.Now().Before(s.contended) }

// await waits until the write under way has ended, and returns false if it hangs, or if ctx has ended. The caller holds mu.
func (s *supposition) await(ctx context.Context) bool {
	ended := s.taking
	slow := time.NewTimer(groupcommit.Slow)
	defer slow.Stop()
	s.waiting++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.waiting--
	}()
	select {
	case <-ended:
		return true
	case <-slow.C:
		s.hang(ended)
		return false
	case <-ctx.Done():
		return false
	}
}

// hang notes that the write under way takes long, so that no other waits for it too.
func (s *supposition) hang(under chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs = s.hangs || s.taking == under
}

// taken ends a write that would take its ticket itself.
func (s *supposition) taken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.taking)
	s.taking, s.hangs = nil, false
}

// missed notes that a write could not take its ticket itself, as often as it has tried: for so long, tickets are reserved.
func (s *supposition) missed(pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.contended = time.Now().Add(pause)
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

// saw notes where the sequencer stood, by the response to a request that was sent at a time. One that was sent after the newest was known, and
// says less, is right: the store was restored from a backup.
func (s *supposition) saw(at store.Sequence, sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if compareSequences(at, s.last) > 0 || sent.After(s.learned) {
		s.last, s.learned = store.Sequence{Position: at.Position, LastID: at.LastID}, time.Now()
	}
}

// compareSequences compares by position, and then by id, which a refused write may have raised alone.
func compareSequences(a, b store.Sequence) int {
	return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.LastID, b.LastID))
}

// writeOnce writes a change with one ticket.
func (j *Journal) writeOnce(ctx context.Context, until time.Time, actor string, change Change) (*attempt, outcome, error) {
	ids := max(len(change.Events), 1)
	for try := 0; try < suppositions && j.store.Advances(); try++ {
		t, ok := j.supposed.next(ctx, ids, func() int64 { return j.now().UnixMicro() })
		if !ok {
			break
		}
		a, outcome, err := j.takeWith(ctx, t, until, actor, change)
		if outcome != missed {
			return a, outcome, err
		}
		if try == suppositions-1 {
			j.supposed.missed(j.timing.Reserve)
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

// takeWith writes a change with a ticket that is supposed to be the next. Others may take theirs afterwards, even if it panics.
func (j *Journal) takeWith(ctx context.Context, t store.Ticket, until time.Time, actor string, change Change) (*attempt, outcome, error) {
	defer j.supposed.taken()
	a := j.attempt(t, until, change, actor)
	outcome, err := a.take(ctx)
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
		sent := time.Now()
		err := a.send(ctx)
		var moved *store.Moved
		switch {
		case err == nil:
			a.j.supposed.saw(a.ticket.Sequence, sent)
			return landed, nil
		case errors.As(err, &moved):
			a.j.supposed.saw(moved.To, sent)
			return missed, nil
		case errors.Is(err, store.ErrNoAdvance):
			return a.reserveInstead(ctx)
		case store.AsConflict(err) != nil: // its ids are used all the same
			a.j.supposed.saw(store.Sequence{Position: a.ticket.Position - 1, LastID: a.ticket.LastID}, sent)
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

// reserveInstead returns missed in a store that turns out not to take tickets, unless an earlier send of the write has been applied: what the
// store says of this one is nothing about those.
func (a *attempt) reserveInstead(ctx context.Context) (outcome, error) {
	if a.inFlight {
		if outcome, err := a.settle(ctx); outcome != refused {
			return outcome, err
		}
	}
	return missed, nil
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
