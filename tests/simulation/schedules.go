package simulation

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	queueview "github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/schedule"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/task"
)

// Each process makes due ticks at intervals of up to lookAfter, for the time ticking.
const (
	lookAfter = 20 * time.Second
	ticking   = 4 * time.Minute
)

// planner is one process that makes ticks, between its start and its crash.
type planner struct {
	*engine
	*schedule.Scheduler
	now func() time.Time
}

// Close ends its engine.
func (p *planner) Close() error { return p.engine.Close() }

// looks are when somebody looked after the schedule without an error.
type looks struct {
	mu sync.Mutex
	at []time.Time
}

// look makes the ticks that are due soon.
func (l *looks) look(r *engineRun, name string, p *planner) {
	made, err := p.Make(r.ctx, p.now().Add(schedule.Ahead))
	r.note("%s: made %d, %v", name, made.Ticks, err)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.at = append(l.at, time.Now())
	}
}

// saw reports whether somebody looked who had to make a tick: from when on it is made ahead, until it counts as late.
func (l *looks) saw(tick time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.at, func(at time.Time) bool {
		return at.After(tick.Add(-schedule.Ahead)) && at.Before(tick.Add(time.Minute))
	})
}

// RunSchedules runs several processes that make the ticks of one schedule for some minutes, in most runs with one clock that is
// wrong. It demands that each tick is exactly one task; none may be dropped that somebody looked for in time. In every other run it is
// the schedule of a collection, whose tasks processes also ask for by hand, and run: of these one at most may be under way.
func RunSchedules(t *testing.T, seed uint64, trace func(string)) Report {
	t.Helper()
	return simulate(t, seed, trace, func(d *deployment) {
		target := definition.Target{Go: "f"}
		set := &definition.Set{
			Jobs:      []definition.Job{{Path: "/tick", Target: target}},
			Schedules: []definition.Schedule{{Name: "s", Cron: "0/5 * * * * ?", Job: "/tick", Misfire: schedule.MisfireSkip}},
		}
		job := "/tick"
		if seed%2 == 1 {
			set = &definition.Set{
				Lease:     leaseLength,
				Sources:   map[string]definition.Source{"S": {Target: target, Collections: []definition.Collection{{Name: "C"}}}},
				Schedules: []definition.Schedule{{Name: "s", Cron: "0/5 * * * * ?", Job: collection, Misfire: schedule.MisfireSkip}},
			}
			job = collection
		}
		r := newEngineRun(d, drawSchedules(seed), declared{set})
		r.tick(job)
		r.happened["ticks"] = len(r.ledger.order)
	})
}

// collection is the path of the collection of a source, of which one task is under way at most.
const collection = "/sources/S/C"

// drawSchedules returns a plan with several processes; in four runs of five the clock of one of them is wrong.
func drawSchedules(seed uint64) enginePlan {
	p := drawFaults(seed)
	for n := uint64(1); p.alone; n++ { // a single process has no other clock to compare with
		p = drawFaults(seed + n<<32)
	}
	p.seed, p.skew = seed, 0
	d := dice(seed, "schedules")
	by := []time.Duration{0, 15 * time.Minute, 30 * time.Second, -30 * time.Second, -15 * time.Minute}
	p.wrong = wrong{home: "p0", by: by[d.IntN(len(by))], from: time.Duration(d.Int64N(int64(ticking)))}
	if d.IntN(2) == 0 {
		p.wrong.from = 0
	}
	return p
}

// tick has every process make the ticks of a job until the time is over.
func (r *engineRun) tick(job string) {
	homes := newHomes(r.deployment, r.plan.processes, r.planner)
	var all looks
	for _, h := range homes {
		luck := dice(r.plan.seed, h.name+" looks")
		r.busy.Go(func() {
			for time.Since(r.began) < ticking {
				all.look(r, h.name, h.now())
				if job == collection {
					r.work(h.name, h.now(), luck.IntN(4), luck)
				}
				time.Sleep(time.Duration(luck.Int64N(int64(lookAfter))))
			}
		})
	}
	r.busy.Wait()
	homes.settle()
	for _, h := range homes {
		all.look(r, h.name, h.now())
	}
	time.Sleep(settling)
	r.verifyTicks(homes[0].now(), job, &all)
	if job == collection {
		r.verifyOne(homes[0].now())
	}
	homes.close()
}

// work asks for a task of the collection by hand, runs one, or makes what has fallen due ready.
func (r *engineRun) work(name string, p *planner, what int, luck *rand.Rand) {
	switch what {
	case 0:
		e, err := p.Enqueue(r.ctx, nil, queue.SyncTask("S", "C", 300))
		r.note("%s: asked for %v, %v", name, e.Tasks, err)
	case 1:
		leases, err := p.Claim(r.ctx, queue.Claimer{}, 1)
		for i := range leases {
			ends := []queue.Outcome{queue.OK, queue.Failed, queue.Again}
			_, err = p.Complete(r.ctx, leases[i].Token, queue.Result{Outcome: ends[luck.IntN(len(ends))], RetryDelay: time.Duration(luck.Int64N(int64(lookAfter)))})
		}
		r.note("%s: ran %d, %v", name, len(leases), err)
	default:
		_, err := p.Promote(r.ctx)
		r.note("%s: promoted, %v", name, err)
	}
}

// verifyOne demands that one task of the collection at most is under way, of those whose time has come.
func (r *engineRun) verifyOne(p *planner) {
	now := p.now().UnixMicro()
	if _, err := p.Promote(r.ctx); err != nil {
		r.report("liveness", "what is due cannot be made ready when all is quiet: %v", err)
		return
	}
	page, err := p.Queue.List(r.ctx, queueview.Listing{Group: queue.SourcePath("S"), Limit: 1000})
	if err != nil {
		r.report("liveness", "the tasks cannot be listed when all is quiet: %v", err)
		return
	}
	var under []string
	for i := range page.Tasks {
		if t := &page.Tasks[i]; !t.State.Final() && t.NotBefore <= now {
			under = append(under, string(t.ID))
		}
	}
	if len(under) > 1 {
		r.report("tick", "%d tasks of the collection are under way: %v", len(under), under)
	}
}

// planner starts a process that makes ticks, over a connection.
func (r *engineRun) planner(line *faulty.Store, name string) *planner {
	now, watch := r.clockOf(name, skewed{seed: r.plan.seed, name: name, began: r.began}, line)
	e := r.open(line, name)
	return &planner{engine: e, now: nowBy(now, watch), Scheduler: schedule.Open(schedule.Options{
		Store: line, Journal: e.journal, Queue: e.Queue, Definitions: r.set, Clock: watch, Now: nowBy(now, watch),
	})}
}

// verifyTicks demands exactly one task for each tick of a job from the first one up to now, if it was looked for in time.
func (r *engineRun) verifyTicks(p *planner, job string, all *looks) {
	page, err := p.times(r.ctx, job)
	if err != nil {
		r.report("liveness", "the ticks cannot be listed when all is quiet: %v", err)
		return
	}
	seen := map[time.Time]bool{}
	first := time.Time{}
	for _, at := range page {
		if seen[at] {
			r.report("tick", "the tick of %v is two tasks", at.Sub(r.began))
		}
		if seen[at] = true; first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if first.IsZero() || first.Sub(r.began) > ticking/2 { // the schedule begins with the first call of Make that succeeds
		r.report("tick", "the first tick is that of %v", first.Sub(r.began))
		return
	}
	for at := first; at.Before(time.Now()); at = at.Add(5 * time.Second) {
		if !seen[at] && all.saw(at) {
			r.report("tick", "the tick of %v was dropped", at.Sub(r.began))
		}
	}
}

// times returns the times of the ticks of a job, in order.
func (p *planner) times(ctx context.Context, job string) (times []time.Time, err error) {
	group := job
	if job == collection {
		group = queue.SourcePath("S")
	}
	page, err := p.Queue.List(ctx, queueview.Listing{Group: group, Limit: 1000, Match: func(t *task.Task) bool { return t.Schedule != "" }})
	for i := range page.Tasks {
		times = append(times, time.UnixMicro(page.Tasks[i].ID.Time()))
	}
	return times, err
}
