package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// An instance whose tasks have ended wants the next ones in their place. The ends and these starts go in one write where that changes
// nothing but the time: where the ends make no other task ready, and the starts take no slot but the instance's own. Everything else
// is written in turn, the ends first.

// CompleteAllAndClaim is [Queue.CompleteAll] and then [Queue.Claim] of the same instance, in one write where possible. by has a
// [Beside], which is written with each of them. If fewer than all ends are returned, the error is of the ends, and nothing was claimed;
// otherwise it is of the claim.
func (q *Queue) CompleteAllAndClaim(ctx context.Context, all []Completion, by Claimer, max int) ([]Ended, []Lease, error) {
	ctx = detached(ctx)
	s, err := q.gather(ctx, by.Instance, all, by.Beside)
	if err != nil {
		return nil, nil, err
	}
	if len(s.ends) < len(all) || by.Capacity <= 0 || by.Once != nil || !s.makeNothingReady() {
		by.Next.forgo()
		ended, err := q.completeFrom(ctx, s, by.Instance, all)
		if err != nil {
			return ended, nil, err
		}
		by.Early = nil // the ends may have changed what it has read
		leases, err := q.Claim(ctx, by, max)
		return ended, leases, err
	}
	mine := &asking{by: by, max: max, ends: s}
	if err := q.askings.Do(ctx, by.Instance, mine); err != nil {
		return nil, nil, err
	}
	if mine.endErr != nil {
		return nil, nil, mine.endErr
	}
	return s.ends, mine.leases, mine.err
}

// makeNothingReady reports whether the ends are ones after which no other task is ready that was not before: of finished tasks that
// are no steps of orders, and that have held no slot but their instance's.
func (s *endings) makeNothingReady() bool {
	live := s.live()
	for i, e := range s.all {
		if s.ends[i].Err != nil {
			continue
		}
		if e.place != nil || e.task.Order != nil || e.result.Outcome == typed.Lost || e.task.Unique != "" {
			return false
		}
		own := layout.InstanceLimit(e.held.Instance)
		if slices.ContainsFunc(e.held.Slots, func(s limit.Slot) bool { return s.Limit != own }) {
			return false
		}
	}
	return live > 0
}

// slots returns the slots that the ends give back.
func (s *endings) slots() (all []limit.Slot) {
	for i, e := range s.all {
		if s.ends[i].Err == nil {
			all = append(all, e.held.Slots...)
		}
	}
	return all
}

// turnOver ends attempts of an instance and starts tasks in their place, and then claims what it has room for beyond that. It is made
// in the instance's turn.
func (q *Queue) turnOver(ctx context.Context, a *asking) {
	at := q.slotsOf(&a.by)
	at.freed = a.ends.slots()
	lines := q.waiters.looking(a.by.Instance)
	defer func() { q.looked(at, &a.by, lines, a.leases, a.max) }()
	mark := q.Mark()
	if a.by.Early != nil {
		mark = a.by.Early.mark
	}
	c, none := q.inTheirPlace(ctx, at, &a.by, a.ends, a.max)
	if !none {
		a.by.Next.forgo()
	}
	if c == nil {
		a.endErr = q.writeEndings(ctx, a.ends)
	} else {
		a.leases, a.endErr = q.writeTurnover(ctx, &turnover{ends: a.ends, claim: c, most: c.opsBeside(at.others())})
	}
	if a.endErr != nil {
		return
	}
	if at.freed = nil; len(a.leases) >= a.max {
		if at.isFull() {
			q.passOnLate(ctx, &a.by, c.rules)
		}
		return
	}
	at.forget()
	if enough := 2*len(a.leases) >= a.max; len(lines) == 0 && (enough || none && q.IsQuiet(a.by, mark)) {
		return // it has enough to do until it asks again, which costs less than another write; or there is still nothing
	}
	a.by.Next.forgo()
	more, err := q.claim(ctx, a.by, at, a.max-len(a.leases))
	if a.leases = joinedTo(a.leases, more); len(a.leases) == 0 {
		a.err = err
	}
}

// inTheirPlace returns a claim that has picked tasks to be started in one write with ends; nil if there are none, or if they had better
// be claimed afterwards.
func (q *Queue) inTheirPlace(ctx context.Context, at *instanceSlots, by *Claimer, s *endings, max int) (c *claim, none bool) {
	room, first := q.maxOps-s.ops, *by
	by.Early = nil // what is claimed beyond that is read anew
	if startsIn(room, 0) <= 0 {
		return nil, false
	}
	slots := q.readAhead(ctx, at, first.Early)
	claims, err := q.claims(ctx, first)
	if slots(); err != nil {
		return nil, false // the claim that follows says so
	}
	if max, err = q.freeFor(ctx, at, by, max); err != nil || max <= 0 {
		return nil, false
	}
	others := at.others()
	if max = min(max, q.maxClaim, startsIn(room, others)); max <= 0 {
		return nil, false
	}
	for _, c := range claims {
		c.at, c.by.Beside = at, nil // the ends have it
		if c.begin(max); !c.isPlain() {
			return nil, false
		}
	}
	for _, c := range claims {
		if c.picks, err = c.pick(ctx); err != nil {
			return nil, false
		}
		if len(c.picks) == 0 {
			continue
		}
		if c.takesItsOwn() && c.opsBeside(others) <= room && !slices.ContainsFunc(c.touches(), func(name string) bool { return s.names[name] }) {
			return c, false
		}
		c.left = c.picks
		c.putBack(ctx)
		return nil, false
	}
	return nil, true
}

// startsIn returns how many starts have at most so many operations in a write whose ends give back all of the instance's slots but others:
// the task and its entry, and a slot unless it is one that goes from an end to a start.
func startsIn(ops, others int) int {
	if n := ops / 3; n <= others {
		return n
	}
	return (ops - others) / 2
}

// opsBeside returns the most operations that the picks have in a write whose ends give back all of the instance's slots but others.
func (c *claim) opsBeside(others int) (ops int) {
	for i := range c.picks {
		ops += c.opsOf(&c.picks[i])
	}
	return ops - max(0, len(c.picks)-others)
}

// isPlain reports whether the starts of a claim take no slots of the queue's, nor a place in its order that another process may take.
// The instance's own slots may be taken by a claim that it makes of another process: then the ends are written alone.
func (c *claim) isPlain() bool {
	return c.queue.MaxParallel == 0 && c.queue.Type != definition.Ordered
}

// turnover is ends of attempts of an instance and starts of others in their place, as one part of a write.
type turnover struct {
	ends  *endings
	claim *claim
	most  int   // operations of the starts
	tried bool  // the starts were prepared
	err   error // why nothing is started; nil: the starts are part of the write
}

// writeTurnover writes a turnover, and returns the leases. Where something stands against it, the ends are written without the starts.
func (q *Queue) writeTurnover(ctx context.Context, t *turnover) ([]Lease, error) {
	err := q.write(ctx, t)[0]
	switch {
	case err == nil:
		t.ends.beside.Written()
	case errors.Is(err, errNothing):
		t.giveUp(ctx)
		err = nil
	case journal.Refused(err):
		t.giveUp(ctx)
	}
	settle := err
	if journal.Refused(err) {
		settle, err = nil, q.writeEndings(ctx, t.ends)
	} else {
		t.ends.note(ctx, err)
	}
	if settle == nil {
		settle = t.err
	}
	leases, settleErr := t.claim.settle(ctx, settle)
	t.claim.view.handOver(ctx)
	if settleErr != nil && err == nil {
		q.log.Warn("the next tasks were not claimed with the ends of others", "error", settleErr)
	}
	return leases, err
}

// prepare prepares the ends, and the starts once: after a conflict, what they rest on may be gone.
func (t *turnover) prepare(ctx context.Context, lost *store.Conflict) (journal.Change, error) {
	change, err := t.ends.prepare(ctx, lost)
	if err != nil {
		return change, err
	}
	if t.tried {
		t.giveUp(ctx)
		return change, nil
	}
	t.tried = true
	starts, err := t.claim.prepare(ctx, nil)
	if t.err = err; err == nil {
		change.Events, change.Ops = append(change.Events, starts.Events...), t.ops
	}
	return change, nil
}

// giveUp leaves the picked tasks to another claim.
func (t *turnover) giveUp(ctx context.Context) {
	t.claim.release(ctx)
	t.claim.verdicts = verdicts{left: t.claim.picks}
	t.err = errNothing
}

// ops returns the operations of the ends and of the starts after them. A slot that goes from the one to the other is the end's as long
// as its lease is.
func (t *turnover) ops(r journal.Receipt) []store.Op {
	ops := inOneWrite(t.ends.endOps(r), t.claim.ops(r))
	leases := make([]Lease, len(t.claim.starts))
	for i := range leases {
		leases[i] = t.claim.starts[i].leased()
	}
	return append(ops, t.ends.beside.EndedAndStarted(t.ends.told(), leases))
}

func (t *turnover) bounds() (ops, bytes int) {
	ops, bytes = t.ends.bounds()
	_, moreBytes := t.claim.bounds()
	return ops + t.most, bytes + moreBytes
}

func (t *turnover) touches() []string { return append(t.ends.touches(), t.claim.touches()...) }

// private returns true: so are the ends, and a claim with others is none for a turnover.
func (t *turnover) private() bool { return true }
