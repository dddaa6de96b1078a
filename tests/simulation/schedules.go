package simulation

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	queueview "github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/schedule"
	"github.com/millrace/millrace/shared/store/faulty"
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
// wrong. It demands that each tick is exactly one task; none may be dropped that somebody looked for in time.
func RunSchedules(t *testing.T, seed uint64, trace func(string)) Report {
	t.Helper()
	return simulate(t, seed, trace, func(d *deployment) {
		r := newEngineRun(d, drawSchedules(seed), declared{&definition.Set{
			Jobs:      []definition.Job{{Path: "/tick", Target: definition.Target{Go: "f"}}},
			Schedules: []definition.Schedule{{Name: "s", Cron: "0/5 * * * * ?", Job: "/tick", Misfire: schedule.MisfireSkip}},
		}})
		r.tick()
		r.happened["ticks"] = len(r.ledger.order)
	})
}

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

// tick has every process make ticks until the time is over.
func (r *engineRun) tick() {
	homes := newHomes(r.deployment, r.plan.processes, r.planner)
	var all looks
	for _, h := range homes {
		luck := dice(r.plan.seed, h.name+" looks")
		r.busy.Go(func() {
			for time.Since(r.began) < ticking {
				all.look(r, h.name, h.now())
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
	r.verifyTicks(homes[0].now(), &all)
	homes.close()
}

// planner starts a process that makes ticks, over a connection.
func (r *engineRun) planner(line *faulty.Store, name string) *planner {
	now, watch := r.clockOf(name, skewed{seed: r.plan.seed, name: name, began: r.began}, line)
	e := r.open(line, name)
	return &planner{engine: e, now: nowBy(now, watch), Scheduler: schedule.Open(schedule.Options{
		Store: line, Journal: e.journal, Queue: e.Queue, Definitions: r.set, Clock: watch, Now: nowBy(now, watch),
	})}
}

// verifyTicks demands exactly one task for each tick from the first one up to now, if it was looked for in time.
func (r *engineRun) verifyTicks(p *planner, all *looks) {
	page, err := p.times(r.ctx, "/tick")
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
	page, err := p.Queue.List(ctx, queueview.Listing{Group: job, Limit: 1000})
	for i := range page.Tasks {
		times = append(times, time.UnixMicro(page.Tasks[i].ID.Time()))
	}
	return times, err
}
