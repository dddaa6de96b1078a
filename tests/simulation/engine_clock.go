package simulation

import (
	"strings"
	"time"

	"github.com/millrace/millrace/shared/clock"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// wrong is a clock that is off by much, in some runs: that of one process among several, until the faults end, or that of the only
// process, until the end of the run. All other clocks of such a run are right, so that decisions by time can be checked.
type wrong struct {
	home string        // of the process whose clock it is
	by   time.Duration // 0: no clock is off by more than the plan's skew
	from time.Duration // since the run began
}

// drawWrong makes one clock wrong in one run of five. It has a random source of its own, so that other runs stay as they are.
func drawWrong(p *enginePlan) {
	d := dice(p.seed, "wrong clock")
	if d.IntN(5) > 0 {
		return
	}
	by := []time.Duration{15 * time.Minute, 30 * time.Second, -30 * time.Second, -15 * time.Minute}
	p.wrong = wrong{home: "p0", by: by[d.IntN(len(by))], from: time.Duration(d.IntN(1500)) * time.Millisecond}
	p.skew = 0
	if p.alone { // without crashes: a restarted process does not know that its clock has jumped
		p.wrong.by, p.faults.Crash = p.wrong.by.Abs(), 0
		return
	}
	p.wrong.home = []string{"p0", "p1", "p2"}[d.IntN(min(p.processes, 3))]
	if d.IntN(2) == 0 {
		p.wrong.from = 0
	}
}

// clockOf returns the clock of a process, and the watch that compares it, which is nil if no clock of the run is wrong.
func (r *engineRun) clockOf(name string, right skewed, s store.Store) (now func() time.Time, watch *clock.Watch) {
	w := r.plan.wrong
	if w.by == 0 {
		return right.now, nil
	}
	now = right.now
	if strings.HasPrefix(name, w.home+".") {
		now = func() time.Time { return right.now().Add(r.wrongBy()) }
	}
	return now, clock.Open(s, clock.Options{Now: now})
}

// nowBy returns the clock that a queue uses: that of its watch, if it has one.
func nowBy(now func() time.Time, watch *clock.Watch) func() time.Time {
	if watch == nil {
		return now
	}
	return watch.Now
}

// wrongBy returns by how much the clock that is wrong differs now.
func (r *engineRun) wrongBy() time.Duration {
	if time.Since(r.began) < r.plan.wrong.from || !r.plan.alone && r.is(&r.calm) {
		return 0
	}
	return r.plan.wrong.by
}

// timekeeper checks decisions by time, in runs in which one clock is wrong.
type timekeeper struct {
	run   *engineRun
	until map[string]time.Time // the expiry of each lease as it was last written, by token
}

// off is how much a process that uses the store's time instead of its own clock may still be off: the store's date may be that old,
// and its response takes time.
const off = 3 * time.Second

// lease records a lease that was written, and demands that an expiry that has changed is at most off away from now.
func (k *timekeeper) lease(token string, expires time.Time) {
	if k.run.plan.wrong.by == 0 {
		return
	}
	if k.run.plan.alone && expires.After(time.Now().Add(off)) {
		expires = expires.Add(-k.run.plan.wrong.by)
	}
	if expires.Equal(k.until[token]) {
		return // a request to stop does not change the expiry, even of a lease that is over
	}
	if left := time.Until(expires); left.Abs() > off {
		k.run.report("clock", "the lease %s was written to end %v from now", token, left)
	}
	k.until[token] = expires
}

// expiryOf returns the expiry in a lease's item.
func expiryOf(item *store.Item) time.Time {
	var lease layout.Lease
	if err := layout.Decode(item, &lease); err != nil {
		return time.Time{}
	}
	return time.UnixMicro(lease.Expires)
}

// step checks that a lease is not ended before its time, and that no task is started before its own.
func (k *timekeeper) step(from, to *task.Task) {
	if k.run.plan.wrong.by == 0 {
		return
	}
	ended := from.State == task.Running && strings.HasPrefix(to.Message, "the lease ran out")
	if left := time.Until(k.until[from.Lease]); ended && left > 0 {
		k.run.report("clock", "the lease %s was ended %v before its time", from.Lease, left)
	}
	if early := time.Until(time.UnixMicro(from.NotBefore)); !k.run.plan.alone && to.State == task.Running && early > off/2 {
		k.run.report("clock", "task %s was started %v before its time", to.ID, early)
	}
}
