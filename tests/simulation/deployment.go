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

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
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
	Happened   map[string]int // how often each thing happened; "steps" are the lines of the trace
	Digest     uint64         // of the trace, 0 without one; it depends on the seed only
}

// maxViolations is how many violations are kept: later ones are mostly consequences of the first.
const maxViolations = 10

// settling is how long a request that is under way can still be applied after the faults have ended.
const settling = signatureLife + 100*time.Millisecond

// deployment is what every run has: a store behind a bad network, a trace of what is done with it, and what was found wrong.
type deployment struct {
	trace   func(string)
	began   time.Time
	ctx     context.Context
	cancel  context.CancelFunc
	service *faulty.Service

	group sync.WaitGroup // of the closing of processes

	mu         sync.Mutex
	calm       bool // the faults have ended
	happened   map[string]int
	violations []Violation
	lines      int
	digest     uint64
}

// simulate plays one run in virtual time; all randomness of the product comes from the seed. The trace, if not nil, is called for
// every step of every request.
func simulate(t *testing.T, seed uint64, trace func(string), play func(*deployment)) Report {
	t.Helper()
	var report Report
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(t *testing.T) {
		d := &deployment{trace: trace, began: time.Now(), happened: map[string]int{}}
		d.ctx, d.cancel = context.WithCancel(t.Context())
		defer d.cancel()
		play(d)
		d.happened["steps"] = d.lines
		report = Report{Violations: d.violations, Happened: d.happened, Digest: d.digest}
	})
	return report
}

// serve puts the network with its faults in front of a store.
func (d *deployment) serve(s store.Store, faults faulty.Faults) {
	d.service = faulty.NewService(s, faults, d.step)
}

// connect returns the connection of a process to the store, without faults once they have ended.
func (d *deployment) connect(name string) *faulty.Store {
	line := d.service.Process(name)
	if d.is(&d.calm) {
		line.Settle()
	}
	return line
}

func (d *deployment) mark(flag *bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*flag = true
}

func (d *deployment) is(flag *bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return *flag
}

// count counts one more occurrence of what.
func (d *deployment) count(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.happened[what]++
}

// step traces a step of a request.
func (d *deployment) step(s faulty.Step) {
	d.note("%-5s %-44s %s %v", s.Process, s.Call, s.What, s.Err)
}

// note adds a line to the run's trace and its digest; without a trace it is only counted, since writing it takes a tenth of a run.
func (d *deployment) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lines++; d.trace == nil {
		return
	}
	line := fmt.Sprintf("%12v ", time.Since(d.began)) + strings.TrimSuffix(fmt.Sprintf(format, args...), " <nil>")
	for _, b := range []byte(line) {
		d.digest = (d.digest ^ uint64(b)) * 1099511628211
	}
	d.trace(line)
}

func (d *deployment) report(invariant, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	d.note("VIOLATED %s: %s", invariant, what)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.violations) < maxViolations {
		d.violations = append(d.violations, Violation{invariant, what})
	}
}
