package queue

import (
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/rule"
)

// MaxClaim is how many tasks one write of a claim starts at most in any store: what a write can hold, with all slots of limits. Where a write holds
// more, so does a claim.
const MaxClaim = combineOps / opsOfStart

// opsOfStart is how many operations a start has: on the task, its entry and its other one, and slots of the instance, the queue and a key.
const opsOfStart = 6

const (
	// idleRounds is how many rounds of one claim may neither start nor tidy any entry that they found.
	idleRounds = 50

	// claimFor is how long one claim tidies entries that cannot be started; then another claim goes on. It is less than the
	// length of a lease, since some of the claim's tasks may have been started before.
	claimFor = 10 * time.Second

	// maxReach is how many entries one round picks at most.
	maxReach = windowFill
)

// Claim starts up to max tasks, the first in order that the claimer may run, and returns their leases; none if no task is
// ready. Tasks that have fallen due are ready. The error is [journal.ErrIdempotencyMismatch] if by.Once was used for a claim
// with another content.
func (q *Queue) Claim(ctx context.Context, by Claimer, max int) ([]Lease, error) {
	if by.Capacity > 0 {
		return q.claimInTurn(ctx, by, max)
	}
	return q.claim(ctx, by, nil, max)
}

// claim is Claim; at holds the claimer's slots, nil if it has no capacity limit.
func (q *Queue) claim(ctx context.Context, by Claimer, at *instanceSlots, max int) ([]Lease, error) {
	if at != nil && by.Early == nil {
		by.Early = q.readEarlyFor(ctx, &by, at, max)
		defer by.Early.End()
	}
	max, err := q.freeFor(ctx, at, &by, max)
	if err != nil || max <= 0 {
		return nil, err
	}
	claims, err := q.claims(ctx, by)
	if err != nil {
		return nil, err
	}
	leases, err := q.claimIn(ctx, claims, at, max)
	if err != nil {
		return nil, err
	}
	if len(claims) > 0 && at.isFull() {
		q.passOnLate(ctx, &by, claims[0].rules)
	}
	return leases, nil
}

// claimIn starts up to max tasks by claims of one claimer; the error is nil if some are started.
func (q *Queue) claimIn(ctx context.Context, claims []*claim, at *instanceSlots, max int) (leases []Lease, err error) {
	for _, c := range claims {
		if len(leases) >= max || len(leases) > 0 && !q.now().Before(c.until) {
			break // the claimer has some and asks again
		}
		c.at = at
		started, err := c.inCrowd(ctx, max-len(leases))
		leases = joinedTo(leases, started)
		if err != nil && len(leases) == 0 {
			return nil, err
		}
	}
	return leases, nil
}

// passOnLate is passOn whose errors are left to the sweep.
func (q *Queue) passOnLate(ctx context.Context, by *Claimer, rules *rule.Set) {
	if err := q.passOn(ctx, by, rules); err != nil {
		q.log.Warn("tasks that prefer an instance without a free slot are passed on late", "instance", by.Instance, "error", err)
	}
}

// claims promotes what has fallen due, and returns a claim for each queue that the claimer takes from, preceded by one for each
// line that is kept for the claimer.
func (q *Queue) claims(ctx context.Context, by Claimer) ([]*claim, error) {
	early := by.Early
	if !early.isFresh() {
		by.Early = nil
		early = &Early{due: func() error { _, err := q.Promote(ctx); return err }}
		early.rules = q.readRules(ctx, &by, &early.reads)
		defer early.End()
	}
	if err := early.due(); err != nil {
		return nil, err
	}
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return nil, err
	}
	lines, err := q.linesFor(ctx, by)
	if err != nil {
		return nil, err
	}
	rules, err := early.rules()
	if err != nil {
		return nil, err
	}
	var claims []*claim
	until := q.now().Add(claimFor)
	add := func(l layout.Line) *claim {
		c := &claim{
			q: q, set: set, by: by, lines: []layout.Line{l}, rules: rules, queue: set.QueueOf(l.Queue), until: until,
			slots: q.limits.Begin(),
		}
		claims = append(claims, c)
		return c
	}
	for _, l := range rules.Going(set, by.preferred(rules)) {
		add(l)
	}
	byQueue := map[string]*claim{}
	for _, l := range rules.Going(set, lines) {
		if c := byQueue[l.Queue]; c != nil {
			c.lines = append(c.lines, l)
		} else if c = add(l); l.ForInstances() { // a server takes from one line of each queue
			byQueue[l.Queue] = c
		}
	}
	return claims, nil
}

// claim is one attempt to start tasks of one queue.
type claim struct {
	q     *Queue
	set   *definition.Set
	queue definition.Queue
	by    Claimer
	lines []layout.Line // of the queue, that the claimer takes from
	rules *rule.Set
	until time.Time // when it gives up
	view  claimView
	later bool // the entries of what it starts are removed after its write
	want  int
	reach int // how many entries to pick for them

	picks    []layout.Place
	ahead    map[string]*ahead // what was read ahead of picks, by UUID
	verdicts                   // about the picks
	at       *instanceSlots    // the claimer's slots; nil: it has no capacity limit
	slots    limit.Taking
	tidied   int  // how many entries the last round has removed, moved or ended
	conflict bool // another claimer was quicker
	fresh    bool // the set is the one in force
}

// upTo starts up to max tasks, in as many writes as that takes. What was read ahead of a share may be fewer than there are.
func (c *claim) upTo(ctx context.Context, max int) (leases []Lease, err error) {
	for len(leases) < max {
		c.begin(min(max-len(leases), c.q.maxClaim))
		started, err := c.run(ctx)
		leases = joinedTo(leases, started)
		if fewer := len(started) < c.want; err != nil || fewer && (len(started) == 0 || c.ahead == nil) {
			return leases, err
		}
	}
	return leases, nil
}

// begin resets the claim to look for want tasks to start in one write.
func (c *claim) begin(want int) {
	c.want, c.reach, c.view, c.later = want, want, c.q.strategy.view(c), c.q.strategy.removesLater(c.queue.Name)
	if c.queue.Type == definition.Ordered {
		c.reach, c.later = 1, false // whoever is next reads the first entry and no other
	}
}

// run starts as many tasks as one write can. Rounds that find only held, stale or misplaced entries tidy them, and each next
// round reaches further. After idleRounds without progress, at c.until, or when ctx ends, run notifies another claimer of the
// rest. However late it is, it makes one round: otherwise, with very many empty queues, claims would notify each other for ever.
func (c *claim) run(ctx context.Context) ([]Lease, error) {
	q := c.q
	if c.queue.Type == definition.Ordered { // two claims of this process would choose the same task
		done, err := c.turn(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	work := context.WithoutCancel(ctx) // what is picked is started or put back, even if ctx ends
	met := false                       // a round has found only entries that could not be started
	for idle := 0; idle < idleRounds && ctx.Err() == nil && (!met || q.now().Before(c.until)); met = true {
		leases, over, err := c.round(ctx)
		if over {
			return leases, err
		}
		if !c.goOn(work) {
			idle++
		}
	}
	if met {
		q.notify(work, noticesOf(c.lines)) // what comes behind may be ready
	}
	return nil, nil
}

// turn waits until no other claim of this process chooses from the queue. If ctx ends before, another claimer is notified, since this
// one may have been.
func (c *claim) turn(ctx context.Context) (done func(), err error) {
	done, err = c.q.limited.Lock(ctx, c.queue.Name)
	if err != nil {
		c.q.notify(context.WithoutCancel(ctx), noticesOf(c.lines))
	}
	return done, err
}

// round picks entries once and starts those that may be started; over says that no further round is needed.
func (c *claim) round(ctx context.Context) (leases []Lease, over bool, err error) {
	chosen, err := c.choose(ctx)
	ctx = detached(ctx)
	if err != nil {
		return nil, true, err
	}
	if chosen == nil {
		c.view.handOver(ctx)
		return nil, true, nil
	}
	leases, err = c.settle(ctx, c.q.send(ctx, chosen)[0])
	if len(leases) > 0 {
		c.view.handOver(ctx)
	}
	return leases, err != nil || len(leases) > 0 || c.full, err
}

// choose picks entries and returns the part of a write that starts their tasks; nil if there are none.
//
// Race: of two claims of a queue with a limit, the one with the better picks must get the last slot, and a claimer that is notified
// of a free slot must find what the other puts back. So they choose one after the other if slots are reserved.
func (c *claim) choose(ctx context.Context) (*joined, error) {
	if c.reserves() {
		done, err := c.turn(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	ctx = detached(ctx)
	var err error
	if c.picks, err = c.pick(ctx); err != nil {
		return nil, err
	}
	if len(c.picks) == 0 {
		c.q.crowds.foundNothing(c)
		return nil, nil
	}
	c.starts = c.starts[:0] // of the write before: prepare would take them for an earlier preparation of this one
	chosen := join(ctx, c)
	c.putBack(ctx)
	return chosen, nil
}

// pick returns up to c.reach entries of the claim's lines that no other claimer is starting, the least ranks first.
func (c *claim) pick(ctx context.Context) ([]layout.Place, error) {
	c.ahead = nil
	if c.queue.Type == definition.Ordered {
		return c.first(ctx)
	}
	return c.view.pick(ctx, c.reach)
}

// reserves reports whether the claim reserves slots of the queue's limit before they are written.
func (c *claim) reserves() bool { return c.queue.MaxParallel > 0 && len(c.view.contested()) == 0 }

// settle returns the leases after a write of the starts that has ended with err, and tidies the entries that were not started.
func (c *claim) settle(ctx context.Context, err error) (leases []Lease, _ error) {
	leases, err = c.started(ctx, err)
	if tidyErr := c.tidy(ctx); err == nil {
		err = tidyErr
	}
	c.view.settled(c.picks, without(c.picks, leases))
	if err != nil {
		c.q.strategy.doubt() // what was picked is found again
	}
	return leases, err
}

// without returns the picks without those of which there are leases.
func without(picks []layout.Place, leases []Lease) []layout.Place {
	if len(leases) == len(picks) {
		return nil
	}
	started := make(map[string]bool, len(leases))
	for i := range leases {
		started[leases[i].Task.ID.UUID()] = true
	}
	return slices.DeleteFunc(slices.Clone(picks), func(p layout.Place) bool { return started[p.UUID] })
}

// goOn prepares for another round, and reports whether the last one tidied any entry.
func (c *claim) goOn(ctx context.Context) (progress bool) {
	progress = c.tidied > 0
	if progress {
		c.reach = min(2*c.reach, maxReach)
	}
	if c.conflict || !progress {
		c.q.pause(ctx)
	}
	if c.conflict {
		c.view.rival()
		c.conflict = false
	}
	return progress
}

func noticesOf(lines []layout.Line) []notifier.Notice {
	notices := make([]notifier.Notice, len(lines))
	for i, l := range lines {
		notices[i] = l.Notice()
	}
	return notices
}
