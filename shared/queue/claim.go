package queue

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/shared/bell"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// MaxClaim is how many tasks one claim may start: what one write to the store can hold, permits and all.
const MaxClaim = 15

// rounds bounds how often one claim looks again where what it found could not be started.
const rounds = 50

// Claim starts up to max tasks, the best that the claimer may run, and answers their leases; none where none is ready.
// What has fallen due is ready.
func (q *Queue) Claim(ctx context.Context, by Claimer, max int) ([]Lease, error) {
	defer q.oneByOne(by)()
	at, max, err := q.roomFor(ctx, by, max)
	if err != nil || max <= 0 {
		return nil, err
	}
	claims, err := q.claims(ctx, by)
	if err != nil {
		return nil, err
	}
	var leases []Lease
	for _, c := range claims {
		if len(leases) >= max {
			break
		}
		c.permits.at = at
		c.want = min(max-len(leases), MaxClaim)
		started, err := c.run(context.WithoutCancel(ctx)) // what is picked is started or put back, whoever still listens
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

// CompleteAndClaim is [Queue.Complete] and then [Queue.Claim], in one write where that can be: for a worker that goes on
// with the next task at once. The error is that of the completion; it does not keep tasks from being claimed. No lease
// does not mean that no task is ready: Claim says so.
func (q *Queue) CompleteAndClaim(ctx context.Context, token string, r Result, by Claimer, max int) (task.State, []Lease, error) {
	e, err := q.ending(ctx, token, r, 0)
	if err != nil {
		return "", nil, err
	}
	next := q.nextClaim(ctx, by, max)
	if next == nil {
		state, err := e.ended(ctx, q.write(ctx, e)[0])
		return state, nil, err
	}
	errs := q.write(ctx, e, next)
	leases, claimErr := next.started(ctx, errs[1])
	if cleanErr := next.clean(context.WithoutCancel(ctx)); claimErr != nil || cleanErr != nil {
		q.log.Warn("the next task was not claimed", "error", errors.Join(claimErr, cleanErr))
	}
	state, err := e.ended(ctx, errs[0])
	return state, leases, err
}

// nextClaim answers a claim that has picks; nil where none is found at once.
func (q *Queue) nextClaim(ctx context.Context, by Claimer, max int) *claim {
	if by.Capacity > 0 {
		return nil // the place that is given back now is not free yet
	}
	claims, err := q.claims(ctx, by)
	if err != nil {
		return nil // Claim will say so
	}
	for _, c := range claims {
		if c.queue.MaxParallel > 0 {
			continue // likewise
		}
		c.want = min(max, MaxClaim)
		if c.picks, err = c.pick(ctx); err == nil && len(c.picks) > 0 {
			return c
		}
	}
	return nil
}

// claims answers a claim of each queue that the claimer takes from, after making ready what has fallen due; first of all one of
// each line that is kept for it.
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
	add := func(line string) *claim {
		c := &claim{q: q, set: set, by: by, lines: []string{line}, rules: rules, queue: set.QueueOf(queueOf(line))}
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
		} else if c = add(line); forInstances { // of those that servers take from, each queue has one
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
	want  int

	picks    []place
	starts   []start
	stale    []staleEntry
	held     []holding   // that a rule or a limit keeps
	strays   []stray     // that wait for others to run them
	left     []place     // not tried: the limit of the queue is reached, or their time has not come
	ends     []unstarted // that are not to be started any more
	full     bool        // a limit is reached that concerns all of them
	load     int         // operations of what is to be started
	permits  permitPool  // that may be taken
	order    int64       // version of the item that counts the starts of an ordered queue, see first
	conflict bool        // somebody else was quicker
	fresh    bool        // the set is the one in force
}

// unstarted is a queued task that ends without being started.
type unstarted struct {
	id   task.ID
	step task.Step
	why  string
}

// staleEntry is one whose task is not what the entry was made for.
type staleEntry struct {
	place
	task *store.Item // as it was read; nil: there is none
}

// start is one task to be started.
type start struct {
	place   place
	task    task.Task
	before  int64 // the task's version
	version int64 // afterwards
	lease   lease
	token   string
	values  struct{ task, lease []byte } // of their items
	payload json.RawMessage              // where it is kept apart
	unique  store.Op                     // that takes the unique key late; of no kind if none is taken
	guard   store.Op                     // see guardHolder; of no kind if there is nothing to guard
}

func (c *claim) run(ctx context.Context) ([]Lease, error) {
	q := c.q
	if c.queue.MaxParallel > 0 && q.store.Exclusive() {
		defer q.limited.lock(c.queue.Name)() // two claims of this process would choose the same permits
	}
	for range rounds {
		picks, err := c.pick(ctx)
		if err != nil || len(picks) == 0 {
			return nil, err
		}
		c.picks = picks
		leases, err := c.start(ctx)
		if cleanErr := c.clean(ctx); err == nil {
			err = cleanErr
		}
		if err != nil || len(leases) > 0 || c.full {
			return leases, err
		}
		if c.conflict {
			q.pause(ctx)
		}
	}
	for i := range c.strays {
		q.ring(ctx, []bell.Ring{{Queue: c.strays[i].line()}}) // what comes behind it may be ready
	}
	return nil, nil
}

// start starts what it can of the picks, in one write.
func (c *claim) start(ctx context.Context) ([]Lease, error) {
	return c.started(ctx, c.q.write(ctx, c)[0])
}

// started answers the leases of a write that has ended with that error.
func (c *claim) started(ctx context.Context, err error) ([]Lease, error) {
	if err != nil {
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
		c.q.wake(s.lease.Expires)
	}
	if c.queue.Type == definition.RoundRobin {
		last := c.starts[len(c.starts)-1].place.key.Sort
		_ = c.q.virtual.started(ctx, c.q, c.queue.Name, last) // a hint; the next start tells again
	}
	return leases, nil
}

func (c *claim) bounds() (ops, bytes int) {
	for i := range c.picks {
		ops += c.opsOf(&c.picks[i])
	}
	return min(ops, combineOps), 1500 * len(c.picks)
}

// private: a task that was picked is this claim's, unless it is removed meanwhile; so are an instance's places, whose claims
// come one by one, where there is no other process. Places of other limits and unique keys are not.
func (c *claim) private() bool {
	return (c.permits.at == nil || c.q.store.Exclusive()) && c.queue.MaxParallel == 0 &&
		!slices.ContainsFunc(c.picks, func(p place) bool { return p.Limit > 0 || p.Late != "" })
}

// opsOf answers how many operations the start of a pick has at most.
func (c *claim) opsOf(p *place) int {
	ops := 3
	if c.permits.at != nil {
		ops++
	}
	if c.queue.MaxParallel > 0 {
		ops++
	}
	if c.takesOrder() {
		ops++
	}
	if p.Limit > 0 {
		ops++
	}
	if p.Late != "" {
		ops += 2
	}
	return ops + len(p.twin())
}

// touches names what it picked, and the limits and the unique keys of which it takes places.
func (c *claim) touches() []string {
	var names []string
	if c.permits.at != nil {
		names = append(names, c.permits.at.what)
	}
	if c.queue.MaxParallel > 0 {
		names = append(names, queueLimit(c.queue.Name))
	}
	for i := range c.picks {
		names = append(names, c.picks[i].UUID)
		if p := &c.picks[i]; p.Limit > 0 {
			names = append(names, keyLimit(p.Key))
		}
		if p := &c.picks[i]; p.Late != "" {
			names = append(names, p.Late)
		}
	}
	return names
}

// prepare reads the picks' tasks and sorts them into what can be started and what cannot.
func (c *claim) prepare(ctx context.Context, lost *store.Conflict) (journal.Change, error) {
	c.starts, c.stale, c.held, c.left, c.ends, c.full, c.load = c.starts[:0], nil, nil, nil, nil, false, 0
	c.strays = nil
	c.conflict = c.conflict || lost != nil
	if lost != nil && c.queue.Type == definition.Ordered {
		return journal.Change{}, errNothing // another may be the first now
	}
	if lost != nil {
		c.permits.at.forget()
		c.q.permits.forget()
	}
	if err := c.permits.read(ctx, c.q, &c.queue, c.picks); err != nil {
		return journal.Change{}, err
	}
	keys := make([]store.Key, len(c.picks))
	for i := range c.picks {
		keys[i] = taskKey(c.picks[i].UUID)
	}
	items, err := c.q.store.Get(ctx, keys...)
	if err != nil {
		return journal.Change{}, unavailable("read tasks", err)
	}
	now := c.q.micro()
	for i := range c.picks {
		if err := c.judge(ctx, c.picks[i], items[i], now); err != nil {
			return journal.Change{}, err
		}
	}
	if len(c.starts) == 0 {
		return journal.Change{}, errNothing
	}
	if err := c.fetchPayloads(ctx); err != nil {
		return journal.Change{}, err
	}
	change := journal.Change{Events: make([]event.Event, len(c.starts)), Ops: c.ops}
	for i := range c.starts {
		change.Events[i] = startedEvent(&c.starts[i].task)
	}
	return change, nil
}

// fetchPayloads reads the payloads that are kept apart before their tasks are started: a start is an attempt.
func (c *claim) fetchPayloads(ctx context.Context) (err error) {
	for i := range c.starts {
		s := &c.starts[i]
		if s.task.Apart == 0 {
			continue
		}
		if s.payload, err = c.q.payload(ctx, s.task.ID.UUID()); err != nil {
			return err
		}
	}
	return nil
}

// judge decides about one pick.
func (c *claim) judge(ctx context.Context, p place, item *store.Item, now int64) error {
	if item == nil || item.Version != p.Of {
		c.stale = append(c.stale, staleEntry{p, item})
		c.conflict = c.conflict || item == nil || item.Version < p.Of // perhaps its write is not wholly visible yet
		return nil
	}
	var t task.Task
	if err := decode(item, &t); err != nil {
		return err
	}
	if !t.State.Queued() {
		c.stale = append(c.stale, staleEntry{p, item})
		return nil
	}
	if c.full || c.load+c.opsOf(&p) > combineOps {
		c.left = append(c.left, p)
		return nil
	}
	return c.judgeQueued(ctx, p, &t, item.Version, now)
}

// judgeQueued decides about a pick whose task waits.
func (c *claim) judgeQueued(ctx context.Context, p place, t *task.Task, version, now int64) error {
	line, job, declared, err := c.homeOf(ctx, &p, t)
	if err != nil {
		return err
	}
	switch {
	case c.rules.holds(t.Job):
		c.held = append(c.held, holding{p, ruleHold(t.Job), c.rules[t.Job].key()})
	case p.NotBefore > now: // in an ordered queue nothing overtakes it
		c.left, c.full = append(c.left, p), true
	case line != p.home() && !declared && t.Dialect != task.Job:
		c.ends = append(c.ends, unstarted{t.ID, task.Miss, "its job is no longer declared"})
	case line != p.home():
		c.strays = append(c.strays, stray{p, line})
	case t.Late && t.Attempt == 0:
		return c.admitLate(ctx, p, t, version, job, now)
	default:
		c.admit(p, t, version, job, now)
	}
	return nil
}

// admitLate starts a task that takes its unique key only now, unless another has it.
func (c *claim) admitLate(ctx context.Context, p place, t *task.Task, version int64, job definition.Job, now int64) error {
	key := uniqueKey(t.Job, t.Unique)
	items, err := c.q.store.Get(ctx, key)
	if err != nil {
		return unavailable("look up a unique key", err)
	}
	cond, guard := store.Absent, store.Op{}
	if items[0] != nil {
		holder, seen, err := c.q.load(ctx, task.ID(items[0].Value).UUID())
		if err != nil && !errors.Is(err, ErrNoTask) {
			return err
		}
		if err == nil && !holder.State.Final() || c.takes(key) {
			c.ends = append(c.ends, unstarted{t.ID, task.Drop, "another one was under way: " + string(items[0].Value)})
			return nil
		}
		cond, guard = store.VersionIs(items[0].Version), guardHolder(items[0], seen)
	}
	if c.takes(key) {
		c.left = append(c.left, p)
		return nil
	}
	before := len(c.starts)
	c.admit(p, t, version, job, now)
	if len(c.starts) > before {
		c.starts[before].unique = store.Put(store.Item{Key: key, Value: []byte(t.ID)}, cond)
		c.starts[before].guard = guard
	}
	return nil
}

// takes reports whether a start of this claim takes that unique key.
func (c *claim) takes(key store.Key) bool {
	for i := range c.starts {
		if c.starts[i].unique.Item.Key == key {
			return true
		}
	}
	return false
}

// admit starts a task if the limits allow it.
func (c *claim) admit(p place, t *task.Task, version int64, job definition.Job, now int64) {
	permits, missing := c.permits.take(&c.queue, t.Concurrency)
	switch missing {
	case limitQueue, limitInstance:
		c.left, c.full = append(c.left, p), true
		return
	case limitKey:
		if t.Concurrency.Skip {
			c.ends = append(c.ends, unstarted{t.ID, task.Drop, "the one before was still running"})
			return
		}
		c.held = append(c.held, holding{place: p, hold: limitHold(t.Concurrency.Key)})
		return
	}
	s := start{place: p, task: *t, before: version, token: c.q.newToken(p.UUID, t.Attempt+1)}
	s.task.State, _ = t.State.After(task.Start) // the state is a queued one
	s.task.Attempt++
	s.task.Started, s.task.Instance, s.task.Lease, s.task.Message = now, c.by.Instance, s.token, ""
	s.lease = lease{
		UUID: p.UUID, Job: t.Job, Line: p.home(), Instance: c.by.Instance, Length: job.Lease,
		Expires: now + job.Lease.Microseconds(), Permits: permits,
	}
	s.values.task, s.values.lease = encode(&s.task), encode(&s.lease)
	c.starts = append(c.starts, s)
	c.load += c.opsOf(&p)
}

func (c *claim) ops(r journal.Receipt) []store.Op {
	ops := make([]store.Op, 0, 4*len(c.starts)+1)
	for i := range c.starts {
		s := &c.starts[i]
		s.version = r.Position
		ops = append(ops,
			store.Put(store.Item{Key: taskKey(s.lease.UUID), Value: s.values.task}, store.VersionIs(s.before)),
			store.Delete(s.place.key, store.Always),
			store.Put(store.Item{Key: leaseKey(s.token), Version: 1, Value: s.values.lease}, store.Always),
		)
		ops = append(ops, s.place.twin()...)
		for _, op := range []store.Op{s.unique, s.guard} {
			if op.Kind != 0 {
				ops = append(ops, op)
			}
		}
		for _, permit := range s.lease.Permits {
			ops = append(ops, store.Put(store.Item{Key: permit.key(), Value: []byte(s.token)}, store.Absent))
		}
	}
	if c.takesOrder() && len(c.starts) > 0 {
		cond := store.Absent
		if c.order > 0 {
			cond = store.VersionIs(c.order)
		}
		ops = append(ops, store.Put(store.Item{Key: orderKey(c.queue.Name)}, cond))
	}
	return ops
}

// clean removes stale entries, moves those that are held, and puts back what was not tried.
func (c *claim) clean(ctx context.Context) (err error) {
	q := c.q
	defer func() {
		if err != nil {
			q.forget() // what was picked and not dealt with is found again
		}
	}()
	if q.store.Exclusive() {
		for _, p := range c.left {
			q.windows.of(p.line()).add(p)
		}
	}
	for _, end := range c.ends {
		err := q.finish(ctx, end.id, end.step, end.why)
		if err != nil && !errors.Is(err, ErrFinished) && !errors.Is(err, errRunning) {
			return err
		}
	}
	q.discard(ctx, c.stale)
	if err := q.hold(ctx, c.held); err != nil {
		return err
	}
	return q.rehome(ctx, c.strays)
}

// discard removes entries that mean nothing any more, unless a newer one stands there.
//
// Race: what a write changes may become visible one by one, so that a new entry may be seen before its task. The removal
// rests on the task as it was read, which no write that is under way lets pass.
func (q *Queue) discard(ctx context.Context, stale []staleEntry) {
	for _, s := range stale {
		seen := store.Absent
		if s.task != nil {
			seen = store.VersionIs(s.task.Version)
		}
		ops := []store.Op{store.Delete(s.key, store.VersionIs(s.version)), store.Check(taskKey(s.UUID), seen)}
		err := q.store.Write(ctx, store.Write{Token: q.token(), Ops: ops})
		if err != nil && store.AsConflict(err) == nil {
			q.forget() // it will be met again
		}
	}
}

func startedEvent(t *task.Task) event.Event {
	fields := append(make([]byte, 0, 64), `"attempt":`...)
	fields = strconv.AppendInt(fields, int64(t.Attempt), 10)
	if t.Instance != "" {
		fields = appendText(append(fields, `,"instance":`...), t.Instance)
	}
	return event.Event{Type: "TaskStarted", Key: keyOf(t), Fields: fields}
}
