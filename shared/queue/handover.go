package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Where an instance waits and nothing better is ready, new tasks are started for it in the write that adds them: one sync from the
// request to the start, and no ready entry. What starts is decided as by a claim, which the one who adds makes in the waiter's place. It
// is done in the plain case only; otherwise the tasks become ready, and the waiter is woken. Where processes share the store, the lines are
// read before, as the claim would do that is spared: what another makes ready meanwhile may come later, as it may after a claim.

// handover is an addition and the start of its first tasks as one part of a write.
type handover struct {
	*addition
	to    *Waiting
	line  layout.Line
	claim *claim
	early *Early
	tried bool  // the starts were prepared
	err   error // why nothing is started; nil: the starts are part of the write
	of    []int // of each start, which task of the addition it is
}

// handOver returns the addition with a claim in the place of the instance that has waited longest; nil if its tasks are to become ready.
func (q *Queue) handOver(ctx context.Context, a *addition) (h *handover) {
	l := a.tasks[0].line
	if !l.ForInstances() || !q.waiters.mayTake(l) || !a.isPlain(l) || !q.strategy.precedes(ctx, []layout.Line{l}, a.best()) {
		return nil
	}
	w, expected := q.waiters.reserve(l)
	if expected != nil {
		w = expected.begun(ctx)
	}
	if w == nil {
		return nil
	}
	defer func() {
		if h == nil { // also if what follows panics
			q.waiters.free(w, l)
		}
	}()
	early := q.strategy.readInPlace(store.WithCompany(ctx, 0), &w.accepts.by, l)
	c := q.claimInPlace(ctx, w, l, a, early)
	if c == nil {
		early.End()
		return nil
	}
	return &handover{addition: a, to: w, line: l, claim: c, early: early, err: errNothing}
}

// isPlain reports whether all tasks are ready at once in one line, of a queue without turns, order and limit, and prefer no instance.
func (a *addition) isPlain(l layout.Line) bool {
	queue := a.set.QueueOf(l.Queue)
	if queue.MaxParallel > 0 || queue.Type == definition.Ordered || queue.Type == definition.RoundRobin {
		return false
	}
	return !slices.ContainsFunc(a.tasks, func(t adding) bool {
		return t.line != l || t.task.State != task.Ready || t.task.Prefer != ""
	})
}

// best returns the least rank that the tasks will have in an unordered queue.
func (a *addition) best() (rank string) {
	for i := range a.tasks {
		t := &a.tasks[i].task
		if r := layout.ByPriority(t.Priority, t.ID.UUID()); rank == "" || r < rank {
			rank = r
		}
	}
	return rank
}

// claimInPlace returns the claim that is made in the place of one that waits; nil if it had better claim by itself.
func (q *Queue) claimInPlace(ctx context.Context, w *Waiting, l layout.Line, a *addition, early *Early) *claim {
	by := w.accepts.by
	by.Early = early
	claims, err := q.claims(ctx, by)
	if err != nil {
		return nil
	}
	n := slices.IndexFunc(claims, func(c *claim) bool { return slices.Contains(c.lines, l) })
	if n < 0 || claims[0].lines[0].Name != "" { // something may be kept for it
		return nil
	}
	c, max := claims[n], w.accepts.max
	if by.Capacity > 0 {
		if c.at = q.slotsOf(&by); early != nil {
			c.at.know(early)
		}
	}
	if max, err = q.freeFor(ctx, c.at, &by, max); err != nil {
		return nil
	}
	ops, _ := a.bounds()
	max = min(max, q.maxClaim, (q.maxOps-ops-1)/opsHandedOver)
	if c.begin(max); max <= 0 || !c.isPlain() {
		return nil
	}
	c.later = false // there are no entries
	return c
}

// opsHandedOver is how many operations more a task has at most that is started when it is added.
const opsHandedOver = 2

// prepare prepares the addition, and the starts once: after a conflict, what they rest on may be gone.
func (h *handover) prepare(ctx context.Context, lost *store.Conflict) (journal.Change, error) {
	change, err := h.addition.prepare(ctx, lost)
	if err != nil {
		return change, err
	}
	if h.tried {
		h.claim.release(ctx)
		h.err = errNothing
		return change, nil
	}
	h.tried = true
	if h.err = h.choose(ctx); h.err == nil {
		change.Events, change.Ops = h.startedAfter(change.Events), h.ops
	}
	return change, nil
}

// choose decides which of the tasks start: the first by rank, as long as nothing that is ready comes before them.
func (h *handover) choose(ctx context.Context) error {
	c := h.claim
	if !h.to.IsQuiet(h.to.reserved) {
		c.by.Early = nil // something has become ready since
	}
	c.prepareAnew(ctx, nil)
	if err := c.readSlots(ctx); err != nil {
		return err
	}
	if err := c.q.mayDecide(ctx); err != nil {
		return err
	}
	h.of = h.of[:0]
	for _, i := range h.byRank() {
		p, t := h.places[i], &h.tasks[i]
		if len(c.starts) == c.want || !c.view.precedes(ctx, p.At.Sort) {
			break
		}
		if p.Limit > 0 || p.Late != "" || t.task.Order != nil {
			break
		}
		copied := t.task
		if err := c.judgeQueued(ctx, *p, &copied, 0, c.q.micro()); err != nil {
			return err
		}
		if len(c.starts) == len(h.of) {
			break // it becomes ready, and another claim deals with it
		}
		c.starts[len(h.of)].payload = t.payload
		h.of = append(h.of, i)
	}
	c.verdicts = verdicts{starts: c.starts}
	if len(c.starts) == 0 {
		return errNothing
	}
	return nil
}

// isOvertaken reports whether another part of the write adds a task to the line that is more urgent than one of these.
func (h *handover) isOvertaken(batch []*joined) bool {
	least := h.tasks[0].task.Priority
	for i := range h.tasks {
		least = min(least, h.tasks[i].task.Priority)
	}
	urgent := func(t adding) bool { return t.line == h.line && t.task.Priority > least }
	for _, j := range batch {
		var other *addition
		switch p := j.part.(type) {
		case *addition:
			other = p
		case *handover:
			other = p.addition
		}
		if other != nil && other != h.addition && slices.ContainsFunc(other.tasks, urgent) {
			return true
		}
	}
	return false
}

// byRank returns which tasks become ready, the first by rank first.
func (h *handover) byRank() (order []int) {
	for i, p := range h.places {
		if p != nil {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return layout.ByRank(*h.places[i], *h.places[j]) })
	return order
}

// startedAfter returns the events of the addition and those of the starts, each of which is brought about by that of its task.
func (h *handover) startedAfter(events []event.Event) []event.Event {
	for i := range h.claim.starts {
		e := startedEvent(&h.claim.starts[i].task)
		n := slices.IndexFunc(events, func(added event.Event) bool { return added.Key == e.Key })
		e.Cause = event.CausedBefore(len(events) - n)
		events = append(events, e)
	}
	return events
}

// ops returns the operations of the addition with those of the starts after it.
func (h *handover) ops(r journal.Receipt) []store.Op {
	return inOneWrite(h.addition.ops(r), h.claim.ops(r))
}

// inOneWrite returns two lists of operations, which would be written one after the other, as those of one write: each item is written
// once, as it is in the end, under the condition of the first. An item that the first makes and the second removes is left out.
func inOneWrite(first, then []store.Op) []store.Op {
	at := make(map[store.Key]int, len(first))
	for i := range first {
		at[first[i].Item.Key] = i
	}
	for _, op := range then {
		n, both := at[op.Item.Key]
		switch {
		case !both:
			first = append(first, op)
		case op.Kind == store.OpDelete:
			first[n].Kind = 0
		default:
			op.Cond = first[n].Cond
			first[n] = op
		}
	}
	return slices.DeleteFunc(first, func(op store.Op) bool { return op.Kind == 0 })
}

func (h *handover) bounds() (ops, bytes int) {
	ops, bytes = h.addition.bounds()
	n := min(h.claim.want, len(h.tasks))
	return ops + n*opsHandedOver + 1, bytes + 1500*n
}

func (h *handover) touches() []string {
	names := h.addition.touches()
	if h.claim.at != nil {
		names = append(names, h.claim.at.Limit)
	}
	return names
}

// handedOver ends a hand-over whose write has ended with err: the waiter gets the leases, or is woken to claim by itself.
func (h *handover) handedOver(ctx context.Context, err error) {
	q := h.q
	h.early.End()
	if err == nil && h.err == nil {
		leases, _ := h.claim.started(ctx, nil)
		for _, i := range h.of {
			h.places[i] = nil // it was never ready
		}
		if h.claim.by.Beside == nil {
			q.watchers.tell(h.claim.by.Instance)
		}
		q.waiters.give(h.to, leases, nil)
		return
	}
	h.claim.release(ctx)
	if err != nil && h.err == nil && !errors.Is(err, errNothing) && !journal.Refused(err) {
		q.waiters.give(h.to, nil, err) // perhaps it has them
		return
	}
	q.waiters.free(h.to, h.line)
}
