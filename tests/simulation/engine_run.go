package simulation

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
)

// engineRun is one simulated deployment of the task engine.
type engineRun struct {
	*deployment
	plan   enginePlan
	ledger *ledger
	homes  homes[*engine]
	actors int64 // how many were made so far
	set    declared
	ears   ears

	busy, upkeep sync.WaitGroup

	// The following are guarded by the deployment's mutex.
	over      bool // the producers have ended
	held      map[string]int
	requests  []request
	claimed   []claimed
	completed []completed
}

// RunEngine runs the task engine with the plan of a seed.
func RunEngine(t *testing.T, seed uint64, trace func(string)) Report {
	t.Helper()
	return simulate(t, seed, trace, func(d *deployment) {
		r := newEngineRun(d, drawEngine(seed), declare())
		r.homes = newHomes(d, r.plan.processes, r.open)
		r.play()
		r.happened["tasks"] = len(r.ledger.order)
	})
}

func newEngineRun(d *deployment, p enginePlan, set declared) *engineRun {
	r := &engineRun{deployment: d, plan: p, set: set, held: map[string]int{}}
	r.ledger = newLedger(memory.New(memory.Options{}), r)
	d.serve(r.ledger, p.faults)
	return r
}

func (r *engineRun) play() {
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
	if r.plan.parts {
		r.grower("grower", 1)
	}
	r.caretaker("sweep", 2)
	r.caretaker("cron", 0)
	r.busy.Wait()
	r.mark(&r.over)
	r.upkeep.Wait()
	r.homes.settle()
	time.Sleep(settling)
	r.backlog()
	r.drain()
	r.homes.close()
	r.verify()
}

// engine is one process between its start and its crash: a connection to the store, a journal, and a queue.
type engine struct {
	*queue.Queue
	wire
	journal *journal.Journal
}

// Close closes the queue, then the journal.
func (e *engine) Close() error { return errors.Join(e.Queue.Close(), e.journal.Close()) }

// private is a connection to a store that no other process can reach.
type private struct{ *faulty.Store }

// Exclusive returns true.
func (private) Exclusive() bool { return true }

// storeOf returns the store that a process of this run has by a connection.
func (r *engineRun) storeOf(line *faulty.Store) store.Store {
	if r.plan.alone {
		return private{line}
	}
	return line
}

// open starts an engine over a connection.
func (r *engineRun) open(line *faulty.Store, name string) *engine {
	c := skewed{seed: r.plan.seed, name: name, skew: r.plan.skew, began: r.began}
	if r.plan.alone {
		c.name = "alone" // the machine's clock outlives the process
	}
	s := r.storeOf(line)
	now, watch := r.clockOf(name, c, s)
	j := journal.Open(s, journal.Options{Now: now, Timing: timing, Jitter: jitter(r.plan.seed, name), Folds: projection.Folds()})
	q := queue.Open(queue.Options{
		Store: s, Journal: j, Definitions: r.set, Clock: watch, Now: nowBy(now, watch), Notifier: &r.ears, Random: &source{dice(r.plan.seed, name+" random")},
		Quiet: quiet, SharedAt: 1, Lasting: r.plan.parts, OnePart: r.plan.onePart,
	})
	return &engine{Queue: q, journal: j, wire: wire{line}}
}
