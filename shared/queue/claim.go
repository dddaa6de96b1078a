package queue

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// MaxClaim is how many tasks one write of a claim starts at most: what a write to the store can hold, with all permits.
const MaxClaim = 15

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
func (q *Queue) claim(ctx context.Context, by Claimer, at *room, max int) ([]Lease, error) {
	max, err := q.roomFor(ctx, at, &by, max)
	if err != nil || max <= 0 {
		return nil, err
	}
	claims, err := q.claims(ctx, by)
	if err != nil {
		return nil, err
	}
	var leases []Lease
	for _, c := range claims {
		if len(leases) >= max || len(leases) > 0 && !q.now().Before(c.until) {
			break // the claimer has some and asks again
		}
		c.permits.at = at
		started, err := c.upTo(ctx, max-len(leases))
		leases = append(leases, started...)
		if err != nil && len(leases) == 0 {
			return nil, err
		}
	}
	if len(claims) > 0 && at.isFull() {
		if err := q.passOn(ctx, &by, claims[0].rules); err != nil {
			q.log.Warn("tasks that prefer an instance without room are passed on late", "instance", by.Instance, "error", err)
		}
	}
	return leases, nil
}

// CompleteAndClaim is [Queue.Complete] and then [Queue.Claim], in one write where possible, for a worker that goes on with
// the next task at once. The error is that of the completion; tasks may be claimed even so. If it returns no lease, tasks
// may still be ready: only Claim says that none is.
func (q *Queue) CompleteAndClaim(ctx context.Context, token string, r Result, by Claimer, max int) (task.State, []Lease, error) {
	e, err := q.ending(ctx, token, r, 0)
	if err != nil {
		return "", nil, err
	}
	next, chosen := q.nextClaim(ctx, by, max)
	if next == nil {
		state, err := e.ended(ctx, q.write(ctx, e)[0])
		return state, nil, err
	}
	errs := q.send(ctx, join(ctx, e), chosen)
	leases, claimErr := next.started(ctx, errs[1])
	cleanErr := next.clean(context.WithoutCancel(ctx))
	next.handOver(ctx)
	if claimErr != nil || cleanErr != nil {
		q.log.Warn("the next task was not claimed", "error", errors.Join(claimErr, cleanErr))
	}
	state, err := e.ended(ctx, errs[0])
	return state, leases, err
}

// nextClaim returns a claim that has chosen tasks, and its part of a write; nil if it finds none at once.
func (q *Queue) nextClaim(ctx context.Context, by Claimer, max int) (*claim, *joined) {
	if by.Capacity > 0 {
		return nil, nil // the slot that is given back now is not free yet
	}
	claims, err := q.claims(ctx, by)
	if err != nil {
		return nil, nil // Claim will say so
	}
	for _, c := range claims {
		if c.queue.MaxParallel > 0 && !c.reserves() {
			continue // likewise
		}
		c.begin(min(max, MaxClaim))
		chosen, err := c.choose(ctx)
		switch {
		case err != nil || chosen == nil:
		case chosen.over: // nothing of it can be started
			_, err := c.started(ctx, chosen.err)
			if err := errors.Join(err, c.clean(context.WithoutCancel(ctx))); err != nil {
				q.log.Warn("the next task was not claimed", "queue", c.queue.Name, "error", err)
			}
		default:
			return c, chosen
		}
	}
	return nil, nil
}

// claims promotes what has fallen due, and returns a claim for each queue that the claimer takes from, preceded by one for each
// line that is kept for the claimer.
func (q *Queue) claims(ctx context.Context, by Claimer) ([]*claim, error) {
	if _, err := q.Promote(ctx); err != nil {
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
	rules, err := q.rules.read(ctx, q)
	if err != nil {
		return nil, err
	}
	var claims []*claim
	until := q.now().Add(claimFor)
	add := func(line string) *claim {
		c := &claim{
			q: q, set: set, by: by, lines: []string{line}, rules: rules, queue: set.QueueOf(queueOf(line)), until: until,
		}
		if c.queue.MaxParallel > 0 && c.queue.Type != definition.Ordered && q.store.Exclusive() {
			c.permits.shared = &q.permits
		}
		claims = append(claims, c)
		return c
	}
	for _, line := range rules.going(set, rules.preferring(&by)) {
		add(line)
	}
	byQueue := map[string]*claim{}
	for _, line := range rules.going(set, lines) {
		name, _, forInstances := splitLine(line)
		if c := byQueue[name]; c != nil {
			c.lines = append(c.lines, line)
		} else if c = add(line); forInstances { // a server takes from one line of each queue
			byQueue[name] = c
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
	lines []string // of the queue, that the claimer takes from
	rules ruleSet
	until time.Time // when it gives up
	want  int
	reach int   // how many entries to pick for them
	ahead ahead // how far the lines have been read, where other processes claim too

	picks    []place
	starts   []start
	stale    []*staleEntry
	held     []holding    // that a rule or a limit holds
	strays   []stray      // misplaced: they belong to another line
	left     []place      // not tried: enough are started, the limit of the queue is reached, or their time has not come
	ends     []*finishing // tasks that end without being started
	tidied   int          // how many of these the last round has removed, moved or ended
	full     bool         // a limit is reached that concerns all of them
	load     int          // operations of the starts
	permits  permitPool   // slots that may be taken
	order    int64        // version of the item that counts the starts of an ordered queue, see first
	conflict bool         // another claimer was quicker
	fresh    bool         // the set is the one in force
}

// upTo starts up to max tasks, in as many writes as that takes.
func (c *claim) upTo(ctx context.Context, max int) (leases []Lease, err error) {
	for len(leases) < max {
		c.begin(min(max-len(leases), MaxClaim))
		started, err := c.run(ctx)
		if leases = append(leases, started...); err != nil || len(started) < c.want {
			return leases, err
		}
	}
	return leases, nil
}

// begin resets the claim to look for want tasks to start in one write.
func (c *claim) begin(want int) {
	c.want, c.reach, c.ahead = want, want, ahead{}
	if c.queue.Type == definition.Ordered {
		c.reach = 1
	}
}

// run starts as many tasks as one write can. Rounds that find only held, stale or misplaced entries tidy them, and each next
// round reaches further. After idleRounds without progress, at c.until, or when ctx ends, run notifies another claimer of the
// rest. However late it is, it makes one round: otherwise, with very many empty queues, claims would notify each other for ever.
func (c *claim) run(ctx context.Context) ([]Lease, error) {
	q := c.q
	if c.queue.Type == definition.Ordered && q.store.Exclusive() {
		defer q.limited.lock(c.queue.Name)() // two claims of this process would choose the same task
	}
	work := context.WithoutCancel(ctx) // what is picked is started or put back, even if ctx ends
	met := false                       // a round has found only entries that could not be started
	for idle := 0; idle < idleRounds && ctx.Err() == nil && (!met || q.now().Before(c.until)); met = true {
		leases, over, err := c.round(work)
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

// round picks entries once and starts those that may be started; over says that no further round is needed.
func (c *claim) round(ctx context.Context) (leases []Lease, over bool, err error) {
	chosen, err := c.choose(ctx)
	if err != nil {
		return nil, true, err
	}
	if chosen == nil {
		c.handOver(ctx)
		return nil, true, nil
	}
	leases, err = c.started(ctx, c.q.send(ctx, chosen)[0])
	if cleanErr := c.clean(ctx); err == nil {
		err = cleanErr
	}
	if len(leases) > 0 {
		c.handOver(ctx)
	}
	return leases, err != nil || len(leases) > 0 || c.full, err
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
		c.q.rivals.met(c.queue.Name, c.q.micro())
		c.conflict = false
	}
	return progress
}

// handOver notifies other claimers if the claim has read past more entries than it has tidied.
func (c *claim) handOver(ctx context.Context) {
	if len(c.ahead.passed) > 0 || c.ahead.more {
		c.q.notify(ctx, noticesOf(c.lines))
	}
}

func noticesOf(lines []string) []notifier.Notice {
	notices := make([]notifier.Notice, len(lines))
	for i, line := range lines {
		notices[i] = notifier.Notice{Queue: line}
	}
	return notices
}

// reserves reports whether the claim reserves slots of the queue's limit in memory, so that other claims of this process need
// not wait until it is written.
func (c *claim) reserves() bool { return c.permits.shared != nil }

// choose picks entries and returns the part of a write that starts their tasks; nil if there are none.
//
// Race: of two claims of a queue with a limit, the one with the better picks must get the last slot, and a claimer that is notified
// of a free slot must find what the other puts back. So they choose one after the other.
func (c *claim) choose(ctx context.Context) (*joined, error) {
	if c.reserves() {
		defer c.q.limited.lock(c.queue.Name)()
	}
	var err error
	if c.picks, err = c.pick(ctx); err != nil || len(c.picks) == 0 {
		return nil, err
	}
	c.starts = c.starts[:0] // of the write before: prepare would take them for an earlier preparation of this one
	chosen := join(ctx, c)
	c.putBack(ctx)
	return chosen, nil
}

// putBack puts back entries that were not tried, and notifies claimers that may have missed them meanwhile.
func (c *claim) putBack(ctx context.Context) {
	left := c.left
	c.left = nil
	if len(left) == 0 {
		return
	}
	if !c.q.store.Exclusive() {
		c.q.unmark(ctx, left)
		return
	}
	var notices []notifier.Notice
	for _, p := range left {
		c.q.windows.of(p.line()).add(p)
		if !c.full && len(notices) < mostNotices {
			notices = append(notices, notifier.Notice{Queue: p.line()})
		}
	}
	c.q.notify(ctx, notices)
}

// unreserve gives back the slots that were reserved and not taken, and notifies claimers that found none free meanwhile.
func (c *claim) unreserve(ctx context.Context) {
	reserved := c.permits.reserved
	c.permits.reserved = nil
	if c.q.permits.unreserve(reserved) {
		c.q.notify(ctx, c.q.noticesFor(ctx, c.lines[0]))
	}
}

// started returns the leases after a write that has ended with err.
func (c *claim) started(ctx context.Context, err error) ([]Lease, error) {
	if err != nil {
		defer c.unreserve(ctx)
		if errors.Is(err, errNothing) {
			return nil, nil
		}
		c.stale, c.held, c.strays, c.left, c.ends = nil, nil, nil, nil, nil
		c.q.forget() // what was picked is found again
		return nil, err
	}
	leases := make([]Lease, len(c.starts))
	for i := range c.starts {
		s := &c.starts[i]
		leases[i] = Lease{Token: s.token, Task: s.task, Expires: time.UnixMicro(s.lease.Expires), Length: s.lease.Length}
		if s.task.Apart > 0 {
			leases[i].Task.Payload = s.payload
		}
		c.q.leases.keep(s)
		c.q.permits.change(s.lease.Permits, true)
		c.q.wakeForLease(s.lease.Expires)
	}
	c.permits.at.begin()
	c.q.permits.unreserve(c.permits.reserved)
	c.permits.reserved = nil
	if c.queue.Type == definition.RoundRobin {
		last := c.starts[len(c.starts)-1].place.key.Sort
		_ = c.q.virtual.started(ctx, c.q, c.queue.Name, last) // a hint; the next start writes it again
	}
	return leases, nil
}

// clean puts back entries that were not tried, ends tasks that are not to be started, removes stale entries, and moves those
// that are held or misplaced.
func (c *claim) clean(ctx context.Context) (err error) {
	q := c.q
	defer func() {
		if err != nil {
			q.forget() // what was picked and not dealt with is found again
		}
	}()
	c.tidied = 0
	if len(c.left) > 0 {
		c.putBack(ctx)
		if c.reserves() { // a slot may have become free while these entries were taken
			q.notify(ctx, q.noticesFor(ctx, c.lines[0]))
		}
	}
	if err := c.end(ctx); err != nil {
		return err
	}
	removed := q.discard(ctx, c.stale)
	c.tidied += removed
	c.conflict = c.conflict || removed < len(c.stale)
	if err := c.hold(ctx); err != nil {
		return err
	}
	c.tidied += len(c.strays)
	return q.rehome(ctx, c.strays)
}

// end ends the tasks that are not to be started any more, many in one write.
func (c *claim) end(ctx context.Context) error {
	if len(c.ends) == 0 {
		return nil
	}
	parts := make([]part, len(c.ends))
	for i, f := range c.ends {
		parts[i] = f
	}
	for _, err := range c.q.write(ctx, parts...) {
		switch {
		case err == nil:
			c.tidied++
		case !errors.Is(err, ErrFinished) && !errors.Is(err, errRunning) && !errors.Is(err, ErrNoTask):
			return err
		}
	}
	return nil
}

// hold moves entries that a rule or a limit holds. If a rule has changed, the claim reads the rules again and starts over.
func (c *claim) hold(ctx context.Context) error {
	moved, lifted, err := c.q.hold(ctx, c.held)
	c.tidied += moved
	c.conflict = c.conflict || moved < len(c.held)
	if err == nil && lifted {
		c.ahead = ahead{}
		c.rules, err = c.q.rules.read(ctx, c.q)
	}
	return err
}

// discard removes stale entries, unless a newer one has taken the key, and returns how many it has removed.
func (q *Queue) discard(ctx context.Context, stale []*staleEntry) (removed int) {
	if err := writeBundles(ctx, q, stale, nothingElse); err != nil {
		q.forget() // they will be met again
		return 0
	}
	for _, s := range stale {
		if !s.gone {
			removed++
		}
	}
	return removed
}

// Race: the items of a write may become visible one by one, so that a new entry may be read before its task. The removal
// has the condition that the task is as it was read, which fails while such a write is under way.
func (s *staleEntry) ops() []store.Op {
	if s.gone {
		return nil
	}
	seen := store.Absent
	if s.task != nil {
		seen = store.VersionIs(s.task.Version)
	}
	return []store.Op{store.Delete(s.key, store.VersionIs(s.version)), store.Check(taskKey(s.UUID), seen)}
}

func (s *staleEntry) meet(store.OpKind, *store.Item) { s.gone = true }
