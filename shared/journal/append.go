package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// Receipt says where an append went. Its events become visible once all older appends have ended.
type Receipt struct {
	Position int64    // of the slot, from 1
	FirstID  event.ID // the events' ids are FirstID, FirstID+1, … in their order
	Count    int      // of events; may be 0
	Replayed bool     // this is the receipt of an earlier append with the same Idempotency
}

// EventIDs returns the ids of the appended events in their order.
func (r Receipt) EventIDs() []event.ID {
	ids := make([]event.ID, r.Count)
	for i := range ids {
		ids[i] = r.FirstID + event.ID(i)
	}
	return ids
}

// Change is what a journalled write does: events, and changes of other items, all or nothing.
type Change struct {
	// Events are written in one slot, at most 2.7 MiB of them; their ids are set by the append.
	Events []event.Event

	// Ops returns the changes of other items, each under a condition on what was read before. Items are given the
	// slot's position as their Version, so that item order is journal order. An operation of any kind whose item has a
	// Version already stands outside that order: for items that are also changed without the journal, such as leases.
	// It is called again, with another receipt, where another process was quicker with the position; the slice is the append's.
	// Nil: only the events are written.
	Ops func(Receipt) []store.Op
}

// Prepare reads what a change rests on and returns the change. It is called again when what it read has changed
// meanwhile; lost is nil at first, and then says which of Ops failed and what was found.
type Prepare func(ctx context.Context, lost *store.Conflict) (Change, error)

const (
	maxTries = 30 // tickets that one append takes before it gives up as contended
	maxSends = 4  // sends of one request to a store that cannot be reached
)

// Write appends events together with changes of other items: all or nothing. It takes a new ticket when what prepare
// read has changed; the error is [ErrUnavailable] after 30 of them. A store that stays busy or away ends it after
// Timing.Append, with [ErrUnavailable] or [ErrUnknownOutcome]. It is not undone by the end of ctx once it has begun.
func (j *Journal) Write(ctx context.Context, prepare Prepare) (Receipt, error) {
	if err := ctx.Err(); err != nil {
		return Receipt{}, err
	}
	until, actor := time.Now().Add(j.timing.Append), Actor(ctx)
	ctx, cancel := j.bound(context.WithoutCancel(ctx), until) // a writer that has a ticket decides its slot, even if its caller has gone
	defer cancel()
	receipt, err := j.writeUntil(ctx, until, actor, prepare)
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnknownOutcome) { // it was read for too long
		err = fmt.Errorf("%w: %s are over: %s", ErrUnavailable, j.timing.Append, err.Error())
	}
	return receipt, err
}

// bound returns ctx with a deadline where other processes share the store. An embedded store keeps nobody waiting within a call.
func (j *Journal) bound(ctx context.Context, until time.Time) (context.Context, context.CancelFunc) {
	if j.store.Exclusive() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, until)
}

func (j *Journal) writeUntil(ctx context.Context, until time.Time, actor string, prepare Prepare) (Receipt, error) {
	j.writing.Add(1)
	defer j.writing.Add(-1)
	var lost *store.Conflict
	for try := 0; try < maxTries && !over(until); try++ {
		// Rule (fence): what the write rests on is read first, the ticket taken after.
		change, err := prepare(ctx, lost)
		if err != nil {
			return Receipt{}, err
		}
		a, outcome, err := j.writeOnce(ctx, until, actor, change)
		switch {
		case outcome == landed:
			j.tail.filled(slot{position: a.ticket.Position, last: event.ID(a.ticket.LastID), events: a.events})
			j.announce(ctx, a.events)
			return a.receipt, nil
		case err != nil:
			return Receipt{}, err
		}
		lost = a.lost
		j.pause(ctx, try)
	}
	return Receipt{}, fmt.Errorf("%w: contended", ErrUnavailable)
}

// reserve takes a ticket. Repeating it only wastes positions.
func (j *Journal) reserve(ctx context.Context, until time.Time, ids int) (store.Ticket, error) {
	defer j.supposed.reserve()()
	for try := 0; ; try++ {
		t, err := j.store.Reserve(ctx, j.keys.sequencer(), ids, j.now().UnixMicro())
		if err == nil {
			j.supposed.saw(t.Sequence, t.Sent)
			return t, nil
		}
		patience := maxSends
		if errors.Is(err, store.ErrBusy) { // others are taking tickets, which ends soon
			patience = maxTries
		}
		if errors.Is(err, store.ErrClock) || errors.Is(err, store.ErrClosed) || try >= patience || over(until) {
			return t, j.unavailable("take a ticket", err)
		}
		j.pause(ctx, try)
	}
}

// outcome of one attempt with one ticket. Everything but landed and refused comes with an error.
type outcome int

const (
	undecided outcome = iota
	landed
	refused // the slot is known to hold something else, and nothing of the write was or will be applied
	missed  // the write would have taken its ticket itself, and another has it; likewise
)

// attempt is one ticket's append.
type attempt struct {
	j       *Journal
	ticket  store.Ticket
	until   time.Time // when it gives up
	write   store.Write
	slotOp  int // index of the slot among the ops
	events  []event.Event
	receipt Receipt
	lost    *store.Conflict // of the conditions other than the slot's
	// inFlight: an earlier send may have been applied, or may still be. Until the slot is known, nothing is.
	inFlight bool
	invalid  error
}

func (j *Journal) attempt(t store.Ticket, until time.Time, change Change, actor string) *attempt {
	events := make([]event.Event, len(change.Events))
	copy(events, change.Events)
	for i := range events {
		events[i].ID = event.ID(t.FirstID) + event.ID(i)
		settle(&events[i], actor)
	}
	a := &attempt{
		j: j, ticket: t, until: until, events: events,
		receipt: Receipt{Position: t.Position, FirstID: event.ID(t.FirstID), Count: len(events)},
	}
	value := encodeSlot(t.Position, event.ID(t.LastID), event.ID(t.FirstID), events)
	if len(value) > maxSlot {
		a.invalid = fmt.Errorf("%w: %d bytes", ErrTooLarge, len(value))
		return a
	}
	ops := j.keys.slotOps(t.Position, value)
	if change.Ops != nil {
		changed := change.Ops(a.receipt)
		a.fence(changed)
		ops = append(changed, ops...)
	}
	a.slotOp = len(ops) - 1
	// Rule (age): no slot is written on knowledge older than Age.
	a.write = store.Write{Token: j.token(), Ops: ops, NotAfter: t.Sent.Add(j.timing.Age)}
	return a
}

// fence gives the changed items the slot's position as their version. Rule (fence): a ticket that is not above the
// version it replaces is not used, or item order would not be journal order. Items that are also changed without the
// journal have a version of their own and no place in that order.
func (a *attempt) fence(ops []store.Op) {
	for i := range ops {
		if ops[i].Item.Version != 0 {
			continue
		}
		if version, ok := ops[i].Cond.Version(); ok && version >= a.ticket.Position {
			a.invalid = fmt.Errorf("journal: item %v has version %d, at or above the ticket's %d",
				ops[i].Item.Key, version, a.ticket.Position)
		}
		ops[i].Item.Version = a.ticket.Position
	}
}

// run writes the slot, or decides it by a void if it can: a slot that nobody will write makes every reader wait for the
// grace. Once the time for the append is over, it sends nothing but the void.
func (a *attempt) run(ctx context.Context) (outcome, error) {
	if a.invalid != nil {
		_, _ = a.abandon(ctx)
		return undecided, a.invalid
	}
	for try := 0; ; try++ {
		err := a.send(ctx)
		if err == nil {
			return landed, nil
		}
		if result, decided := a.judge(err, try); decided {
			return result, nil
		} else if result == refused || over(a.until) {
			return a.abandon(ctx)
		}
		a.j.pause(ctx, try)
	}
}

// judge says whether err decides the attempt, and otherwise whether to give the slot up (refused) or to send again.
// Rule (only the slot decides): a timeout, throttling, a conflict on another item are no outcome.
func (a *attempt) judge(err error, try int) (result outcome, decided bool) {
	if conflict := store.AsConflict(err); conflict != nil {
		if _, failed := conflict.At(a.slotOp); failed {
			return refused, true // another write's: were it this one's, the store would have returned success
		}
		a.lost = conflict
		return refused, false
	}
	switch {
	case errors.Is(err, store.ErrBusy):
		return undecided, false
	case errors.Is(err, store.ErrUnknown):
		a.inFlight = true
		return undecided, false
	case errors.Is(err, store.ErrUnavailable) && try < maxSends:
		return undecided, false
	default: // too late, gone for good, invalid
		if errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClosed) {
			a.invalid = err
		}
		return refused, false
	}
}

func (a *attempt) send(ctx context.Context) error {
	return a.j.call(ctx, a.write)
}

// call writes, within Timing.Call where other processes share the store. A conflict says what was found where there must
// be nothing, even if the store does not.
func (j *Journal) call(ctx context.Context, w store.Write) error {
	if j.store.Exclusive() {
		return j.store.Write(ctx, w)
	}
	ctx, cancel := context.WithTimeout(ctx, j.timing.Call)
	defer cancel()
	err := j.store.Write(ctx, w)
	if conflict := store.AsConflict(err); conflict != nil {
		return j.told(ctx, w, conflict)
	}
	return err
}

// abandon decides the attempt by writing a void into its own slot. Rule (only the slot decides): what the slot then holds
// is the outcome, since an earlier send of the write may have landed, or may be about to.
func (a *attempt) abandon(ctx context.Context) (outcome, error) {
	if !a.inFlight && (errors.Is(a.invalid, store.ErrUnavailable) || errors.Is(a.invalid, store.ErrClosed)) {
		return refused, a.failure() // nothing was sent that could land, and a void would not get through either
	}
	if least := time.Now().Add(a.j.timing.Call); a.until.Before(least) {
		a.until = least
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), a.until)
	defer cancel()
	last := event.ID(a.ticket.FirstID - 1)
	ops := a.j.keys.slotOps(a.ticket.Position, void(last))
	held, err := a.j.writeVoid(ctx, ops, known{floor: 0, notAfter: a.write.NotAfter}, a.ticket.Position)
	switch {
	case err == nil && held == nil: // the void is there
		a.j.tail.filled(slot{position: a.ticket.Position, last: last})
		return refused, a.failure()
	case err == nil && held.Token == a.write.Token && a.write.Token != "":
		return landed, nil
	case err == nil:
		return refused, a.failure()
	case !a.inFlight: // nothing of mine was ever applied; the hole is for readers to fill
		return refused, a.j.unavailable("write a slot", cmp.Or(a.invalid, err))
	default:
		return undecided, fmt.Errorf("%w: position %d: %w", ErrUnknownOutcome, a.ticket.Position, err)
	}
}

// failure returns the error of an attempt that is definitely not applied; nil if it is worth trying with another ticket.
func (a *attempt) failure() error {
	if a.invalid == nil || errors.Is(a.invalid, ErrTooLarge) {
		return a.invalid
	}
	return a.j.unavailable("write a slot", a.invalid)
}

// writeVoid writes a void as long as k permits it, and reads the sequencer again when that is over. It returns the item
// that the slot holds instead, nil if the void was written.
func (j *Journal) writeVoid(ctx context.Context, ops []store.Op, k known, position int64) (*store.Item, error) {
	token := j.token()
	for try := 0; try < 3*maxSends; try++ {
		err := j.call(ctx, store.Write{Token: token, Ops: ops, NotAfter: k.notAfter})
		if err == nil {
			return nil, nil
		}
		if conflict := store.AsConflict(err); conflict != nil {
			found, _ := conflict.At(0)
			return found, nil
		}
		if errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrInvalid) {
			return nil, err
		}
		if errors.Is(err, store.ErrTooLate) || time.Now().After(k.notAfter) {
			fresh, err := j.know(ctx)
			if err == nil && fresh.floor >= position {
				return j.evicted(ctx, position)
			}
			if err == nil {
				k = fresh // a read that failed permits nothing
				continue
			}
		}
		if j.pause(ctx, try); ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("%w: a void at %d", store.ErrUnavailable, position)
}

// evicted reads a slot below the floor, which must not be written again. The error is [store.ErrUnknown] if it was removed.
func (j *Journal) evicted(ctx context.Context, position int64) (*store.Item, error) {
	items, err := j.store.Get(ctx, j.keys.slot(position))
	if err != nil {
		return nil, err
	}
	if items[0] == nil {
		return nil, fmt.Errorf("%w: position %d lies below the floor", store.ErrUnknown, position)
	}
	return items[0], nil
}

// unavailable wraps an error of the store so that callers need not know the store's errors; ErrClosed after Close.
func (j *Journal) unavailable(doing string, err error) error {
	if j.ctx.Err() != nil {
		return fmt.Errorf("%w: %s: %w", ErrClosed, doing, err)
	}
	return Failure(doing, err)
}

// over reports whether a time has passed.
func over(until time.Time) bool { return !time.Now().Before(until) }

// pause waits after a try: a random time, up to 4 ms at first and twice as long with each try, at most 512 ms.
func (j *Journal) pause(ctx context.Context, try int) {
	ceiling := 4 * time.Millisecond << min(try, 7)
	rest(ctx, j.jitter(ceiling)+time.Microsecond)
}
