package simulation

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
)

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant string
	What      string
}

// String returns both on one line.
func (v Violation) String() string { return v.Invariant + ": " + v.What }

// Report is the result of a run: violations, and how much happened.
type Report struct {
	Violations []Violation
	Events     int // on the journal in the end
	Voids      int // slots without events
	Outcomes   map[Outcome]int
	Torn       int
	Snapshots  int
	Floors     int    // moves of the floor
	Crashes    int    // of processes
	Lines      int    // of the trace
	Digest     uint64 // of the trace; it depends on the seed only
}

// maxViolations is how many violations are kept: later ones are mostly consequences of the first.
const maxViolations = 10

// settling is how long a request that is under way can still be applied after the faults have ended.
const settling = signatureLife + 100*time.Millisecond

// patience is how long readers may take to reach the end after the faults have ended.
const patience = 3 * time.Second

// run is one simulated deployment.
type run struct {
	plan    plan
	trace   func(string)
	began   time.Time
	ctx     context.Context
	cancel  context.CancelFunc
	audit   *audit
	service *faulty.Service
	homes   []*home[*process]

	writers, followers, group sync.WaitGroup

	mu         sync.Mutex
	calm       bool     // the faults have ended
	end        event.ID // the last id, once it is known
	ended      bool
	acked      event.ID
	emissions  []emission
	segments   []segment
	glances    []glance
	snapshots  []stamped
	torn       int
	violations []Violation
	lines      int
	digest     uint64
}

// Run runs the journal with the plan of a seed. The trace, if not nil, is called for every step of every request.
func Run(t *testing.T, seed uint64, trace func(string)) Report {
	t.Helper()
	var report Report
	cryptotest.SetGlobalRandom(t, seed) // the journal's tokens
	synctest.Test(t, func(t *testing.T) {
		r := &run{plan: draw(seed), began: time.Now(), trace: trace}
		r.ctx, r.cancel = context.WithCancel(t.Context())
		r.audit = newAudit(memory.New(memory.Options{}), r.report)
		r.service = faulty.NewService(r.audit, r.plan.faults, r.step)
		r.play()
		report = r.sum()
	})
	return report
}

// sum returns the result of the run.
func (r *run) sum() Report {
	report := Report{
		Violations: r.violations, Events: len(r.audit.labels), Voids: r.audit.voids, Outcomes: map[Outcome]int{},
		Torn: r.torn, Snapshots: len(r.snapshots), Floors: len(r.audit.floors) - 1, Lines: r.lines, Digest: r.digest,
	}
	for _, e := range r.emissions {
		report.Outcomes[e.outcome]++
	}
	for _, h := range r.homes {
		report.Crashes += h.lives - 1
	}
	return report
}

// step traces a step of a request.
func (r *run) step(s faulty.Step) {
	r.note("%-5s %-44s %s %v", s.Process, s.Call, s.What, s.Err)
}

// note adds a line to the run's digest and trace.
func (r *run) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines++
	line := fmt.Sprintf("%12v ", time.Since(r.began)) + strings.TrimSuffix(fmt.Sprintf(format, args...), " <nil>")
	for _, b := range []byte(line) {
		r.digest = (r.digest ^ uint64(b)) * 1099511628211
	}
	if r.trace != nil {
		r.trace(line)
	}
}

func (r *run) play() {
	for i := range r.plan.processes {
		r.homes = append(r.homes, r.home(fmt.Sprintf("p%d", i)))
	}
	r.populate()
	r.writers.Wait()
	r.settle()
	r.findEnd()
	late := time.AfterFunc(patience+longestFreeze, r.cancel)
	r.followers.Wait()
	late.Stop()
	r.aftermath()
	for _, h := range r.homes {
		h.close()
	}
	r.group.Wait()
	r.verify()
}

// populate starts all writers, readers, sweepers and takers of snapshots.
func (r *run) populate() {
	r.writer("w0", 0, plain)
	r.writer("w1", 1, plain)
	r.writer("w2", 2, once("twin"))
	r.writer("w3", 3, once("twin"))
	r.writer("w4", 4, change)
	r.writer("w5", 5, change)
	r.writer("w6", 6, change)
	r.reader("all", 0, habit{pause: 10 * time.Millisecond})
	r.reader("few", 1, habit{limit: 3, pause: 40 * time.Millisecond, path: "/k/0"})
	r.reader("one", 2, habit{limit: 1, pause: 15 * time.Millisecond})
	r.reader("item", 3, habit{path: "/item/A", pause: 100 * time.Millisecond})
	r.reader("slow", 4, habit{stateless: true, limit: 7, pause: 120 * time.Millisecond})
	r.reader("stream", 5, habit{stream: true, pause: 60 * time.Millisecond})
	r.backward("newest", 0, habit{limit: 5, pause: 200 * time.Millisecond})
	r.sweeper("sweep0", 1)
	r.sweeper("sweep1", 2)
	r.collector("snap", 3)
}

// settle ends the faults, and waits for requests that are under way.
func (r *run) settle() {
	r.mu.Lock()
	r.calm = true
	r.mu.Unlock()
	for _, h := range r.homes {
		h.settle()
	}
	time.Sleep(settling)
}

func (r *run) settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calm
}

// findEnd finds the last id of the journal.
func (r *run) findEnd() {
	p := r.visitor("end")
	defer func() { _ = p.Close() }()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	end, err := p.Snapshot(ctx, newest.Name, func(string, []byte) {})
	if err != nil {
		r.report("liveness", "no snapshot can be had when all is quiet: %v", err)
	}
	r.mu.Lock()
	r.ended, r.end = true, end
	r.mu.Unlock()
}

// visitor returns a process without faults.
func (r *run) visitor(name string) *process {
	line := r.service.Process(name)
	line.Settle()
	return r.open(line, name)
}

// closing reports whether sweepers, takers of snapshots and readers of the newest events should end.
func (r *run) closing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// finished reports whether a reader should end: its cursor is at the end, or its time is up.
func (r *run) finished(cursor event.ID) bool {
	if r.ctx.Err() != nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended && cursor >= r.end
}

func (r *run) report(invariant, format string, args ...any) {
	r.note("VIOLATED %s: %s", invariant, fmt.Sprintf(format, args...))
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.violations) < maxViolations {
		r.violations = append(r.violations, Violation{invariant, fmt.Sprintf(format, args...)})
	}
}

func (r *run) emitted(e emission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.emissions = append(r.emissions, e)
	if e.outcome == Acknowledged {
		r.acked = max(r.acked, e.receipt.FirstID+event.ID(e.receipt.Count)-1)
	}
}

// newestAck returns the largest id that was acknowledged so far.
func (r *run) newestAck() event.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.acked
}

func (r *run) delivered(s segment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.segments = append(r.segments, s)
}

func (r *run) tore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.torn++
}

func (r *run) looked(g glance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.glances = append(r.glances, g)
}

func (r *run) taken(s stamped) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.snapshots = append(r.snapshots, s)
}
