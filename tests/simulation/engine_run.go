package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
)

// EngineReport is the result of a run of the task engine: violations, and how much happened.
type EngineReport struct {
	Violations []Violation
	Tasks      int
	Happened   map[string]int
	Lines      int
	Digest     uint64 // of the trace; it depends on the seed only
}

// engineRun is one simulated deployment of the task engine.
type engineRun struct {
	plan    enginePlan
	trace   func(string)
	began   time.Time
	ctx     context.Context
	ledger  *ledger
	service *faulty.Service
	homes   []*home[*engine]
	actors  int64 // how many were made so far
	set     declared
	ears    ears

	busy, upkeep, group sync.WaitGroup

	mu         sync.Mutex
	calm       bool // the faults have ended
	over       bool // the producers have ended
	held       map[string]int
	requests   []request
	claimed    []claimed
	completed  []completed
	happened   map[string]int
	violations []Violation
	lines      int
	digest     uint64
}

// RunEngine runs the task engine with the plan of a seed. The trace, if not nil, is called for every step of every request.
func RunEngine(t *testing.T, seed uint64, trace func(string)) EngineReport {
	t.Helper()
	var report EngineReport
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(t *testing.T) {
		r := &engineRun{
			plan: drawEngine(seed), began: time.Now(), trace: trace, ctx: t.Context(), set: declare(),
			held: map[string]int{}, happened: map[string]int{},
		}
		r.ledger = newLedger(memory.New(memory.Options{}), r)
		r.service = faulty.NewService(r.ledger, r.plan.faults, r.step)
		r.play()
		report = EngineReport{
			Violations: r.violations, Tasks: len(r.ledger.order), Happened: r.happened, Lines: r.lines, Digest: r.digest,
		}
	})
	return report
}

func (r *engineRun) play() {
	for i := range r.plan.processes {
		r.homes = append(r.homes, r.home(fmt.Sprintf("p%d", i)))
	}
	for i := range 3 {
		r.producer(fmt.Sprintf("producer%d", i), i)
	}
	for i := range 4 {
		r.worker(fmt.Sprintf("worker%d", i), i)
	}
	r.operator("operator", 1)
	for i := range r.plan.storm {
		r.stormy(fmt.Sprintf("storm%d", i), i)
	}
	if r.plan.seldom {
		r.seldom("seldom", 2)
	}
	r.caretaker("sweep", 2)
	r.caretaker("cron", 0)
	r.busy.Wait()
	r.mark(&r.over)
	r.upkeep.Wait()
	r.mark(&r.calm)
	for _, h := range r.homes {
		h.settle()
	}
	time.Sleep(settling)
	r.backlog()
	r.drain()
	for _, h := range r.homes {
		r.happened["crashes"] += max(h.lives-1, 0)
		h.close()
	}
	r.group.Wait()
	r.verify()
}

func (r *engineRun) mark(flag *bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*flag = true
}

func (r *engineRun) is(flag *bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *flag
}

// count counts one more occurrence of what.
func (r *engineRun) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.happened[what]++
}

func (r *engineRun) step(s faulty.Step) { r.note("%-5s %-44s %s %v", s.Process, s.Call, s.What, s.Err) }

// note adds a line to the run's digest and trace.
func (r *engineRun) note(format string, args ...any) {
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

func (r *engineRun) report(invariant, format string, args ...any) {
	r.note("VIOLATED %s: %s", invariant, fmt.Sprintf(format, args...))
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.violations) < maxViolations {
		r.violations = append(r.violations, Violation{invariant, fmt.Sprintf(format, args...)})
	}
}

// engine is one process between its start and its crash: a connection to the store, a journal, and a queue.
type engine struct {
	*queue.Queue
	wire
	journal *journal.Journal
}

// Close closes the queue, then the journal.
func (e *engine) Close() error { return errors.Join(e.Queue.Close(), e.journal.Close()) }

// home returns a home of that name, which starts engines.
func (r *engineRun) home(name string) *home[*engine] {
	return &home[*engine]{name: name, group: &r.group, start: func(name string) *engine {
		line := r.service.Process(name)
		if r.is(&r.calm) {
			line.Settle()
		}
		return r.open(line, name)
	}}
}

// private is a connection to a store that no other process can reach.
type private struct{ *faulty.Store }

// Exclusive returns true.
func (private) Exclusive() bool { return true }

// open starts an engine over a connection.
func (r *engineRun) open(line *faulty.Store, name string) *engine {
	c := skewed{seed: r.plan.seed, name: name, skew: r.plan.skew, began: r.began}
	if r.plan.alone {
		c.name = "alone" // the machine's clock outlives the process
	}
	var s store.Store = line
	if r.plan.alone {
		s = private{line}
	}
	now, watch := r.clockOf(name, c, s)
	j := journal.Open(s, journal.Options{Now: now, Timing: r.plan.timing, Jitter: jitter(r.plan.seed, name)})
	q := queue.Open(queue.Options{
		Store: s, Journal: j, Definitions: r.set, Clock: watch, Now: nowBy(now, watch), Notifier: &r.ears, Random: &source{dice(r.plan.seed, name+" random")},
		Quiet: quiet,
	})
	return &engine{Queue: q, journal: j, wire: wire{line}}
}
