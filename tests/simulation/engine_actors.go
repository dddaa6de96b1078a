package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// source is a random source with a seed.
type source struct{ *rand.Rand }

var sourceLock sync.Mutex

// Read fills b.
func (s *source) Read(b []byte) (int, error) {
	sourceLock.Lock()
	defer sourceLock.Unlock()
	for i := range b {
		b[i] = byte(s.Uint32())
	}
	return len(b), nil
}

// request is one Enqueue, and what it returned.
type request struct {
	labels  []string // of its tasks
	once    bool
	outcome Outcome
	answer  queue.Enqueued
}

// claimed is a lease that a claim returned.
type claimed struct {
	lease queue.Lease
	began time.Time // when the claim was called
}

// completed is a completion, and what it returned.
type completed struct {
	lease   queue.Lease
	message string
	refused bool // the lease was not valid
	known   bool
	state   task.State
}

// actor is a client of the engine, in one home, with a random source of its own.
type actor struct {
	run  *engineRun
	home *home[*engine]
	name string
	luck *rand.Rand
	turn int64 // unique among the actors
}

func (r *engineRun) actor(name string, at int) *actor {
	r.actors++
	return &actor{run: r, home: r.homes.at(at), name: name, luck: dice(r.plan.seed, name), turn: r.actors}
}

// rest sleeps for a random time up to most.
func (a *actor) rest(most time.Duration) {
	time.Sleep(time.Duration(a.luck.Int64N(int64(most))) + time.Nanosecond)
}

// meet sleeps as rest does, and sometimes until the next multiple of meeting, when other actors wake too.
func (a *actor) meet(most time.Duration) {
	a.rest(most)
	if a.chance(35) {
		gone := time.Since(a.run.began)
		time.Sleep(gone.Truncate(meeting) + meeting - gone)
		a.part()
	}
}

// part sleeps for a time that no other actor sleeps for, so that actors whose calls returned at one instant continue in an order
// that the seed determines.
func (a *actor) part() { time.Sleep(time.Duration(a.luck.Int64N(500)*turns + a.turn)) }

// turns exceeds the number of actors.
const turns = 40

// meeting is the interval at which actors meet.
const meeting = 80 * time.Millisecond

func (a *actor) chance(percent int) bool { return a.luck.IntN(100) < percent }

// producer starts an actor that enqueues.
func (r *engineRun) producer(name string, at int) {
	a := r.actor(name, at)
	r.busy.Go(func() {
		for n := range r.plan.requests {
			a.meet(r.plan.think)
			a.enqueue(n)
		}
	})
}

func (a *actor) enqueue(n int) {
	count := 1
	if a.chance(30) {
		count += a.luck.IntN(4)
	}
	q := request{once: a.chance(20)}
	burden := a.burden()
	if burden == heavy && !q.once {
		count = 2 * heavies // together they are too large for one write
	}
	var news []queue.New
	for i := range count {
		label := fmt.Sprintf("%s-%d-%d", a.name, n, i)
		if q.once {
			label = fmt.Sprintf("once-%d-%d", n, i)
		}
		q.labels = append(q.labels, label)
		n := a.invent(label, q.once)
		if !q.once {
			n.Payload = burden.on(n.Payload)
		}
		news = append(news, n)
	}
	var once *queue.Once
	tries := 1
	if q.once {
		once = &journal.Idempotency{Scope: "s", Key: fmt.Sprint(n, count), Fingerprint: [32]byte{1}}
		q.labels = append(q.labels, fmt.Sprint(count))
		tries = 6
	}
	for range tries {
		e := a.home.now()
		answer, err := e.Enqueue(a.run.ctx, once, news...)
		a.part()
		if isNew := func(t queue.Added) bool { return !t.Existing }; !q.once && (err != nil || slices.ContainsFunc(answer.Tasks, isNew)) {
			a.run.verifyBurden("an enqueue", burden, e, err)
		}
		a.run.notBusy("enqueue", err)
		if q.outcome = judge(e, err); q.outcome == Acknowledged {
			q.answer = answer
			break
		}
		a.rest(100 * time.Millisecond)
	}
	a.run.note("%s: enqueue %v: %v", a.name, q.labels, q.outcome)
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	a.run.requests = append(a.run.requests, q)
}

func judge(e *engine, err error) Outcome {
	switch {
	case e.crashed() || errors.Is(err, journal.ErrUnknownOutcome):
		return Unknown
	case err == nil:
		return Acknowledged
	default:
		return Refused
	}
}

// invent returns a random task. With plain, it depends on the label only, so that it can be enqueued again.
func (a *actor) invent(label string, plain bool) queue.New {
	n := queue.New{Dialect: task.Job, Job: "/plain", Payload: []byte(`"` + label + `"`)}
	if plain {
		return n
	}
	n.Job = []string{"/plain", "/plain", "/single", "/strict", "/strict", "/few", "/far/few", "/far/strict", "/fair/a", "/fair/b"}[a.luck.IntN(10)]
	n.Priority = int64(a.luck.IntN(3))
	ordered := strings.HasSuffix(n.Job, "/strict")
	if !ordered && a.chance(25) {
		n.NotBefore = time.Now().Add(time.Duration(a.luck.Int64N(int64(longestWait))))
	}
	switch {
	case a.chance(40):
		n.Unique = n.Job + fmt.Sprint(a.luck.IntN(2))
	case !ordered && a.chance(25):
		n.Concurrency = &task.Concurrency{Key: "k", Limit: 1}
	}
	if a.chance(10) {
		n.Payload = append(append([]byte(`"`+label), padding[8:1000]...), '"')
	}
	return n
}

// worker starts an actor that claims and runs tasks until the producers have ended.
func (r *engineRun) worker(name string, at int) {
	a := r.actor(name, at)
	r.upkeep.Go(func() {
		for !r.is(&r.over) {
			a.meet(r.plan.think)
			a.work(1 + a.luck.IntN(3))
		}
	})
}

// stormy starts a worker that wakes at the same moments as the others of its kind, within microseconds.
func (r *engineRun) stormy(name string, at int) {
	a := r.actor(name, at)
	r.upkeep.Go(func() {
		for !r.is(&r.over) {
			gone := time.Since(r.began)
			time.Sleep(gone.Truncate(stormEvery) + stormEvery - gone)
			a.part()
			r.count("stormed")
			a.work(1)
		}
	})
}

// stormEvery is the interval at which the stormy workers wake.
const stormEvery = 300 * time.Millisecond

// seldom starts an actor that uses a queue of its own, with pauses about as long as the engine remembers a queue that is empty.
func (r *engineRun) seldom(name string, at int) {
	a := r.actor(name, at)
	r.busy.Go(func() {
		for n := range 3 {
			label := fmt.Sprintf("%s-%d", name, n)
			_, err := a.home.now().Enqueue(r.ctx, nil, queue.New{Dialect: task.Job, Job: "/seldom", Payload: []byte(`"` + label + `"`)})
			a.part()
			r.notBusy("enqueue", err)
			r.note("%s: enqueue %s: %v", a.name, label, err)
			time.Sleep(quiet * 4 / 5)
			a.rest(quiet / 2)
		}
	})
}

// notBusy reports a call that failed with ErrBusy: the engine must repeat what the store throttles.
func (r *engineRun) notBusy(doing string, err error) {
	if errors.Is(err, store.ErrBusy) {
		r.report("busy", "%s: %v", doing, err)
	}
}

// work claims up to max tasks and runs them.
func (a *actor) work(max int) {
	e := a.home.now()
	for _, l := range a.claim(e, max) {
		a.execute(e, l)
	}
}

// claimer returns a claimer that is an instance, or a worker of the server.
func (a *actor) claimer() queue.Claimer {
	if a.chance(30) {
		return queue.Claimer{Instance: a.name + roomy, Capacity: room, Jobs: []string{"/far/*"}}
	}
	return queue.Claimer{Instance: a.name, Queues: []string{"main", "strict", "few", "fair"}[a.luck.IntN(4):]}
}

func (a *actor) claim(e *engine, max int) []queue.Lease {
	by, began, held := a.claimer(), time.Now(), a.run.rulesInForce()
	leases, err := e.Claim(a.run.ctx, by, max)
	a.part()
	if e.crashed() {
		return nil
	}
	a.run.notBusy("claim", err)
	a.run.given(leases, began, held)
	a.run.note("%s: claimed %d, %v", a.name, len(leases), err)
	return leases
}

// given checks and records the leases that a claim returned.
func (r *engineRun) given(leases []queue.Lease, began time.Time, held map[string]int) {
	now := r.rulesInForce()
	for _, l := range leases {
		r.count("started")
		if n, was := held[l.Task.Job]; was && now[l.Task.Job] == n {
			r.report("rule", "a task of %s was started by a claim that began after the rule", l.Task.Job)
		}
		if len(l.Task.Payload) == 0 {
			r.report("payload", "task %s was started without its payload", l.Task.ID)
		}
		r.mu.Lock()
		r.claimed = append(r.claimed, claimed{l, began})
		r.mu.Unlock()
	}
}

// execute runs a task: it succeeds, fails, takes too long, or is forgotten.
func (a *actor) execute(e *engine, l queue.Lease) {
	if a.chance(15) {
		a.run.count("forgotten")
		return
	}
	for a.chance(40) {
		a.rest(leaseLength / 2)
		if e = a.remote(e); e.crashed() {
			return
		}
		alive, err := e.Heartbeat(a.run.ctx, l.Token, queue.Beat{Progress: &queue.Progress{Step: 1}, Lines: a.lines()})
		a.run.notBusy("beat", err)
		a.run.verifyBurden("a heartbeat", light, e, err)
		if errors.Is(err, queue.ErrStale) {
			break
		}
		if alive.Stop && a.chance(50) {
			a.complete(e, l, queue.Result{Outcome: queue.Cancel})
			return
		}
	}
	if a.chance(20) {
		a.run.count("late")
		a.rest(3 * leaseLength)
	}
	if e = a.remote(e); e.crashed() {
		return
	}
	outcome := []queue.Outcome{queue.OK, queue.OK, queue.OK, queue.Failed, queue.Failed, queue.Thrown, queue.Cancel, queue.Again}[a.luck.IntN(8)]
	a.complete(e, l, queue.Result{Outcome: outcome})
}

// remote returns e, or the engine of a random process: a worker behind a load balancer may reach another one with each call.
func (a *actor) remote(e *engine) *engine {
	if len(a.run.homes) == 1 || a.chance(70) {
		return e
	}
	return a.run.homes[a.luck.IntN(len(a.run.homes))].now()
}

func (a *actor) complete(e *engine, l queue.Lease, result queue.Result) {
	result.Message = fmt.Sprintf("%s %d", a.name, a.luck.Uint64())
	burden := light
	if result.Outcome == queue.OK {
		burden = a.burden()
		result.Output = burden.on([]byte(`"done"`))
	}
	c := completed{lease: l, message: result.Message}
	var err error
	var leases []queue.Lease
	began, held := time.Now(), a.run.rulesInForce()
	if a.chance(40) {
		c.state, leases, err = e.CompleteAndClaim(a.run.ctx, l.Token, result, a.claimer(), 2)
	} else {
		c.state, err = e.Complete(a.run.ctx, l.Token, result)
	}
	a.part()
	if e.crashed() {
		return
	}
	a.run.notBusy("complete", err)
	a.run.verifyBurden("a completion", burden, e, err)
	if errors.Is(err, queue.ErrInvalid) { // then the worker reports a failure without output
		result.Outcome, result.Output = queue.Failed, nil
		c.state, err = e.Complete(a.run.ctx, l.Token, result)
		if a.part(); e.crashed() {
			return
		}
	}
	c.known = err == nil
	c.refused = errors.Is(err, queue.ErrStale) || errors.Is(err, queue.ErrNoLease)
	if errors.Is(err, queue.ErrNoLease) {
		a.run.report("lease", "the token of %s was issued, and the engine knows nothing of it", l.Task.ID)
	}
	a.run.note("%s: completed %s as %s: %s %v", a.name, l.Task.ID, result.Outcome, c.state, err)
	a.run.given(leases, began, held)
	a.run.mu.Lock()
	a.run.completed = append(a.run.completed, c)
	a.run.mu.Unlock()
	for _, next := range leases {
		a.execute(e, next)
	}
}

// ruled are the paths for which operators set rules.
var ruled = []string{"/plain", "/few", "/fair/a"}

// rulesInForce returns the paths that a rule surely holds, each with the number of its latest change.
func (r *engineRun) rulesInForce() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := map[string]int{}
	for path, n := range r.held {
		if n%2 == 1 {
			held[path] = n
		}
	}
	return held
}

// ruling records that a path's rule is in force, or is about to change. The number of a path is odd while its rule is in force.
func (r *engineRun) ruling(path string, inForce bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if odd := r.held[path]%2 == 1; odd != inForce {
		r.held[path]++
	}
}

// operator starts an actor that stops tasks, and sets and lifts rules.
func (r *engineRun) operator(name string, at int) {
	a := r.actor(name, at)
	r.busy.Go(func() {
		for range 2 * r.plan.requests {
			a.rest(r.plan.think)
			if r.plan.rules && a.chance(60) {
				a.rule(ruled[a.luck.IntN(len(ruled))], a.chance(60))
			} else {
				a.stop()
			}
		}
	})
}

func (a *actor) rule(path string, on bool) {
	e := a.home.now()
	kind := rule.Pause
	if a.chance(30) {
		kind = rule.Block
	}
	a.run.ruling(path, false)
	err := e.SetRule(a.run.ctx, path, kind, on)
	a.part()
	a.run.notBusy("rule", err)
	a.run.note("%s: %s %s %v: %v", a.name, kind, path, on, err)
	if on && judge(e, err) == Acknowledged {
		a.run.count("ruled")
		a.run.ruling(path, true)
	}
}

func (a *actor) stop() {
	tasks := a.run.ledger.unfinished()
	if len(tasks) == 0 {
		return
	}
	id := tasks[a.luck.IntN(len(tasks))].ID
	running, err := a.home.now().Stop(a.run.ctx, id)
	a.part()
	a.run.notBusy("stop", err)
	a.run.count("stopped")
	a.run.note("%s: stop %s: %v %v", a.name, id, running, err)
}

// caretaker starts an actor that sweeps, or one that promotes due tasks and notifies workers of them.
func (r *engineRun) caretaker(kind string, at int) {
	a := r.actor(kind, at)
	r.upkeep.Go(func() {
		for !r.is(&r.over) {
			a.rest(4 * r.plan.think)
			e := a.home.now()
			if kind == "sweep" {
				swept, err := e.Sweep(r.ctx)
				r.notBusy("sweep", err)
				for range swept.Lost {
					r.count("lost")
				}
				continue
			}
			_, err := e.Promote(r.ctx)
			r.notBusy("promote", err)
			_, err = e.NotifyDue(r.ctx, time.Now().Add(longestWait))
			r.notBusy("notice", err)
		}
	})
}
