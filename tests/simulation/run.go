package simulation

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// patience is how long readers may take to reach the end after the faults have ended.
const patience = 3 * time.Second

// run is one simulated deployment.
type run struct {
	*deployment
	plan  plan
	audit *audit
	homes homes[*process]

	writers, followers sync.WaitGroup

	// The following are guarded by the deployment's mutex.
	end       event.ID // the last id, once it is known
	ended     bool
	acked     event.ID
	emissions []emission
	segments  []segment
	glances   []glance
	snapshots []stamped
}

// Run runs the journal with the plan of a seed.
func Run(t *testing.T, seed uint64, trace func(string)) Report {
	t.Helper()
	return simulate(t, seed, trace, func(d *deployment) {
		r := newRun(d, seed, memory.New(memory.Options{Advances: draw(seed).advances}))
		r.play()
		r.sum()
	})
}

func newRun(d *deployment, seed uint64, s store.Store) *run {
	r := &run{deployment: d, plan: draw(seed)}
	r.audit = newAudit(s, d.report)
	d.serve(r.audit, r.plan.faults)
	r.homes = newHomes(d, r.plan.processes, r.open)
	return r
}

// sum counts what happened.
func (r *run) sum() {
	r.happened["events"], r.happened["voids"] = len(r.audit.labels), r.audit.voids
	r.happened["snapshots"], r.happened["floors"] = len(r.snapshots), len(r.audit.floors)-1
	for _, e := range r.emissions {
		r.happened[e.outcome.String()]++
	}
}

func (r *run) play() {
	r.populate()
	r.writers.Wait()
	r.homes.settle()
	time.Sleep(settling)
	r.findEnd()
	late := time.AfterFunc(patience+longestFreeze, r.cancel)
	r.followers.Wait()
	late.Stop()
	r.aftermath()
	r.homes.close()
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
	for i := range 3 { // which share slots with w0
		r.writer(fmt.Sprint("beside", i), 0, plain)
	}
	for i := range 3 { // and with each other, two of them with one key
		r.writer(fmt.Sprint("keyed", i), 3, once(fmt.Sprint("pair", i/2)))
	}
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

// visitor returns one more process.
func (r *run) visitor(name string) *process { return r.open(r.connect(name), name) }

// closing reports whether sweepers, takers of snapshots and readers of the newest events should end.
func (r *run) closing() bool { return r.is(&r.ended) }

// finished reports whether a reader should end: its cursor is at the end, or its time is up.
func (r *run) finished(cursor event.ID) bool {
	if r.ctx.Err() != nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended && cursor >= r.end
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
