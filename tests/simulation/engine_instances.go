package simulation

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/task"
)

// shifts is how many times instances work in one run; the processes are killed in between, and leave tasks behind.
const shifts = 2

// RunInstances runs the task engine with instances that wait for tasks, and that repeat claims with idempotency keys, and checks
// "woken" and "repeated" beside what RunEngine checks.
//
// A run is not a function of its seed alone: who waits is woken by others, and goes on together with them in one instant of virtual
// time, in the order in which Go's scheduler has them run.
func RunInstances(t *testing.T, seed uint64, trace func(string)) Report {
	t.Helper()
	return simulate(t, seed, trace, func(d *deployment) {
		r := newEngineRun(d, drawInstances(seed), declare())
		r.homes = newHomes(d, r.plan.processes, r.open)
		r.homes.settle()
		r.instances()
		r.drain()
		r.homes.close()
		r.verify()
		r.happened["tasks"] = len(r.ledger.order)
	})
}

// drawInstances returns the plan of a seed. In two runs of three, one process has the store to itself.
func drawInstances(seed uint64) enginePlan {
	p := drawFaults(seed)
	p.heap = false
	if p.alone = dice(seed, "instances").IntN(3) > 0; p.alone {
		p.processes = 1
		p.faults = faulty.Faults{Seed: seed, There: p.faults.There, Back: p.faults.Back} // nothing else reaches its store
	}
	return p
}

// soonest is more than a write takes: what is due when its write ends is promoted while the writer goes on, in no certain order.
const soonest = 50 * time.Millisecond

// many is the capacity of the instances that run more tasks than room.
const many = 6

// shift is a time in which instances wait for tasks, claim them with idempotency keys, and repeat claims as if their responses were
// lost. It has no faults of the store, so that nothing makes a process forget what it keeps of the store's content.
type shift struct {
	*engineRun
	watch   *vigil
	over    chan struct{} // closed when the instances stop
	working sync.WaitGroup
}

// instances lets instances work in shifts.
func (r *engineRun) instances() {
	producers := []*actor{r.actor("orders0", 0), r.actor("orders1", 1)}
	operator := r.actor("foreman", 2)
	instances := make([]*actor, 6)
	for i := range instances {
		instances[i] = r.actor(fmt.Sprintf("instance%d", i), i)
	}
	for n := range shifts {
		r.shift(n, producers, operator, instances)
		for _, h := range r.homes {
			h.now().line.Crash()
		}
	}
	r.count("shifts")
}

func (r *engineRun) shift(n int, producers []*actor, operator *actor, instances []*actor) {
	s := &shift{engineRun: r, over: make(chan struct{})}
	s.watch = newVigil(s)
	ctx, end := context.WithCancel(r.ctx)
	if r.plan.alone {
		e := r.homes[0].now()
		s.working.Go(func() { e.Run(ctx) })
		time.Sleep(10 * time.Millisecond)
	}
	var busy sync.WaitGroup
	for _, a := range producers {
		busy.Go(func() { s.order(a, n) })
	}
	busy.Go(func() { s.oversee(operator) })
	for i, a := range instances {
		s.working.Go(func() { s.serve(a, claimerOf(i)) })
	}
	s.working.Go(s.watch.look)
	busy.Wait()
	time.Sleep(5 * s.watch.patience) // what is left over is run to its end
	close(s.over)
	end()
	s.working.Wait()
}

// claimerOf returns the claimer of an instance; two pairs of actors are one instance each, and so claim at the same time.
func claimerOf(i int) queue.Claimer {
	switch i {
	case 0, 1:
		return queue.Claimer{Instance: "a" + roomy, Capacity: room, Jobs: []string{"/far/*"}}
	case 2, 3:
		return queue.Claimer{Instance: "b@many", Capacity: many, Jobs: []string{"/far/few", "/far/wide", "/far/strict"}}
	case 4:
		return queue.Claimer{Instance: "c@many", Capacity: many, Jobs: []string{"/far/main", "/far/wide"}}
	default:
		return queue.Claimer{Instance: "d" + roomy, Capacity: room, Jobs: []string{"/far/strict", "/far/main"}}
	}
}

// farJobs are the jobs that instances run, each in a queue of its own.
var farJobs = []string{"/far/few", "/far/strict", "/far/wide", "/far/main"}

// order enqueues tasks for instances, some for later, and stops some of them in the moment in which instances claim them.
func (s *shift) order(a *actor, n int) {
	for round := range 6 {
		a.rest(700 * time.Millisecond)
		news := make([]queue.New, 2+a.luck.IntN(6))
		if a.chance(50) {
			news = s.alike(a, fmt.Sprintf("%s-%d-%d", a.name, n, round))
		}
		for i := range news {
			if news[i].Job != "" {
				continue
			}
			label := fmt.Sprintf("%s-%d-%d-%d", a.name, n, round, i)
			one := queue.New{Dialect: task.Job, Job: farJobs[a.luck.IntN(len(farJobs))], Payload: []byte(`"` + label + `"`)}
			ordered := one.Job == "/far/strict"
			if !ordered && a.chance(25) {
				one.NotBefore = time.Now().Add(soonest + time.Duration(a.luck.Int64N(int64(longestWait))))
			}
			if !ordered && a.chance(25) {
				one.Concurrency = &task.Concurrency{Key: one.Job, Limit: 1}
			}
			news[i] = one
		}
		answer, err := a.home.now().Enqueue(s.ctx, nil, news...)
		a.part()
		s.demand("tasks cannot be enqueued", err)
		var stops sync.WaitGroup
		for i, added := range answer.Tasks {
			if wait := time.Duration(a.luck.Int64N(int64(25*time.Millisecond)) + int64(i)); a.chance(40) {
				stops.Go(func() {
					time.Sleep(wait)
					_, _ = a.home.now().Stop(s.ctx, added.Task.ID)
				})
			}
		}
		stops.Wait()
		a.part()
	}
}

// alike returns tasks of one job that may be started for who waits, in the write that adds them.
func (s *shift) alike(a *actor, label string) []queue.New {
	job := []string{"/far/wide", "/far/main"}[a.luck.IntN(2)]
	news := make([]queue.New, 1+a.luck.IntN(4))
	for i := range news {
		news[i] = queue.New{Dialect: task.Job, Job: job, Priority: int64(a.luck.IntN(3)), Payload: fmt.Appendf(nil, `"%s-%d"`, label, i)}
	}
	return news
}

// oversee pauses jobs and suspends queues, each for a while.
func (s *shift) oversee(a *actor) {
	for range 4 {
		a.rest(700 * time.Millisecond)
		job := farJobs[a.luck.IntN(len(farJobs))]
		set := func(on bool) error { return a.home.now().SetRule(s.ctx, job, rule.Pause, on) }
		if a.chance(40) || job == "/far/strict" { // a task that is held leaves its place
			set = func(on bool) error { return a.home.now().Suspend(s.ctx, job[len("/far/"):], on) }
		}
		s.watch.shut(job, true)
		s.note("%s: %s is held", a.name, job)
		s.demand("a job cannot be held", set(true))
		a.part()
		a.rest(time.Second)
		s.demand("a job cannot be resumed", set(false))
		a.part()
		s.note("%s: %s goes on", a.name, job)
		s.watch.shut(job, false)
	}
}

// demand reports an error of a call that must succeed, since all is quiet.
func (r *engineRun) demand(what string, err error) {
	if err != nil {
		r.report("liveness", "%s when all is quiet: %v", what, err)
	}
}

// isOver reports whether the instances stop.
func (s *shift) isOver() bool { return isClosed(s.over) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// serve is an instance: it waits for tasks, claims them and runs them.
func (s *shift) serve(a *actor, by queue.Claimer) {
	a.part()
	for n := 0; !s.isOver(); n++ {
		e := a.home.now()
		w := e.Wait(by)
		if a.chance(75) {
			by.Once = &queue.Once{Scope: "s", Key: fmt.Sprintf("%s %d %d", a.name, n, time.Since(s.began))}
		} else {
			by.Once = nil
		}
		leases := s.claim(a, by, 2+a.luck.IntN(4))
		if len(leases) > 0 {
			w.End()
			s.work(a, leases)
			continue
		}
		if a.chance(75) {
			w.Accept(accepting(by), 1+a.luck.IntN(4))
		}
		s.wait(a, w, by)
	}
}

// accepting returns the claimer without an idempotency key.
func accepting(by queue.Claimer) queue.Claimer {
	by.Once = nil
	return by
}

// wait waits for a task, but not for long, as a client whose request ends without one; who is woken may have left, too.
func (s *shift) wait(a *actor, w *queue.Waiting, by queue.Claimer) {
	began, held := time.Now(), s.rulesInForce()
	s.watch.waits(a.name, by)
	s.note("%s: waits in %s", a.name, a.home.name)
	select {
	case <-w.Ready():
	case <-s.over:
	case <-time.After(3*time.Second + time.Duration(a.luck.Int64N(int64(7*time.Second)))):
	}
	woken := isClosed(w.Ready()) // also if the shift is over, so that the seed alone determines it
	s.watch.goesOn(a.name)
	a.part()
	if woken && a.chance(90) {
		s.count("woken")
		w.Looks()
	} else {
		w.End()
	}
	leases, err := w.Leases()
	s.demand("a task cannot be started when it is added", err)
	if len(leases) > 0 {
		s.note("%s: was given %d", a.name, len(leases))
		s.given(leases, began, held)
		s.work(a, leases)
	}
}

// claim claims tasks. A claim with an idempotency key may be repeated, in any process, afterwards or while it is under way.
func (s *shift) claim(a *actor, by queue.Claimer, max int) []queue.Lease {
	var first, again []queue.Lease
	repeated := by.Once != nil && a.chance(50)
	e := a.home.now()
	if repeated && a.chance(50) {
		var calls sync.WaitGroup
		calls.Go(func() {
			before := by
			before.Once = &queue.Once{Scope: "s", Key: by.Once.Key + " before"}
			leases := s.ask(e, before, 1)
			s.forgotten(len(leases))
		})
		calls.Go(func() {
			time.Sleep(100 * time.Microsecond)
			first = s.ask(e, by, max)
		})
		time.Sleep(200 * time.Microsecond)
		again = s.ask(e, by, max)
		calls.Wait()
		a.part()
	} else {
		first = s.ask(e, by, max)
		a.part()
		if repeated {
			again = s.ask(a.remote(e), by, max)
			a.part()
		}
	}
	s.note("%s: claimed %d, then %d, of %d", a.name, len(first), len(again), max)
	if repeated {
		s.count("repeated")
		s.verifyRepeated(a, first, again)
	}
	if len(first) == 0 {
		first = again
	}
	return first
}

// forgotten counts leases whose tasks nobody runs.
func (s *shift) forgotten(n int) {
	for range n {
		s.count("forgotten")
	}
}

// ask is one call of Claim, which must succeed.
func (s *shift) ask(e *engine, by queue.Claimer, max int) []queue.Lease {
	began, held := time.Now(), s.rulesInForce()
	leases, err := e.Claim(s.ctx, by, max)
	s.demand("a claim fails", err)
	var started []queue.Lease
	for _, l := range leases {
		if !l.Replayed {
			started = append(started, l)
		}
	}
	s.given(started, began, held)
	return leases
}

// verifyRepeated demands that a repeated claim has returned those leases of the first that are still held, and no others.
func (s *shift) verifyRepeated(a *actor, first, again []queue.Lease) {
	held := map[string]bool{}
	for _, l := range first {
		if s.ledger.leased(l.Token) {
			held[l.Token] = true
		}
	}
	if len(held) == 0 {
		return
	}
	for _, l := range again {
		if s.ledger.leased(l.Token) && !held[l.Token] {
			s.report("repeated", "%s has task %s by a repeated claim, and not by the first", a.name, l.Task.ID)
		}
		delete(held, l.Token)
	}
	for token := range held {
		s.report("repeated", "%s has the lease %s by a claim, and not by the repeated one", a.name, token)
	}
}

// work runs the tasks of a claim, one after the other. Some are forgotten, and their leases run out.
func (s *shift) work(a *actor, leases []queue.Lease) {
	for _, l := range leases {
		if a.chance(15) {
			s.forgotten(1)
			continue
		}
		a.rest(150 * time.Millisecond)
		outcome := []queue.Outcome{queue.OK, queue.OK, queue.Failed, queue.Failed, queue.Thrown, queue.Again}[a.luck.IntN(6)]
		result := queue.Result{Outcome: outcome}
		if a.chance(50) {
			result.RetryDelay = soonest + time.Duration(a.luck.Int64N(int64(2*time.Second)))
		}
		var stops sync.WaitGroup
		if key := l.Task.Concurrency; key != nil && a.chance(50) {
			wait := time.Duration(a.luck.Int64N(int64(25 * time.Millisecond)))
			stops.Go(func() { s.stopNext(a, key.Key, wait) })
		}
		state, err := a.remote(a.home.now()).Complete(s.ctx, l.Token, result)
		stops.Wait()
		a.part()
		s.note("%s: completed %s as %s: %s %v", a.name, l.Task.ID, outcome, state, err)
	}
}

// stopNext stops, after a while, the first task that waits for a slot of a concurrency key, perhaps when it has just got one.
func (s *shift) stopNext(a *actor, key string, wait time.Duration) {
	time.Sleep(wait)
	now := time.Now().UnixMicro()
	for _, t := range s.ledger.unfinished() {
		if t.Concurrency != nil && t.Concurrency.Key == key && t.State.Queued() && t.NotBefore <= now {
			_, _ = a.home.now().Stop(s.ctx, t.ID)
			return
		}
	}
}
