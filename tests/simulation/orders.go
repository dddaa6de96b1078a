package simulation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
)

// orderRun is one simulated deployment in which orders move.
type orderRun struct {
	*engineRun
	watch *orderWatch
	homes homes[*mover]
	defs  *redefined
	moves string         // "orders", or "forks", for which sweeps read the journal
	help  func(m *mover) // does in the end what steps do not, in each round; nil: nothing

	// The following are guarded by the deployment's mutex.
	asked  []asked
	labels int
	views  []view
	parts  []part
}

// mover is one process between its start and its crash.
type mover struct {
	*engine
	orders *order.Engine
	now    func() time.Time
}

// Close ends its engine.
func (m *mover) Close() error { return m.engine.Close() }

// RunOrders moves orders along chains, in several processes or in one that has the store to itself, while operators act on them.
func RunOrders(t *testing.T, seed uint64, trace func(string)) Report {
	t.Helper()
	return simulate(t, seed, trace, func(d *deployment) {
		newOrderRun(d, drawOrders(seed), newRedefined(chainSet)).play()
	})
}

func newOrderRun(d *deployment, p enginePlan, defs *redefined) *orderRun {
	e := &engineRun{deployment: d, plan: p, held: map[string]int{}}
	e.ledger = newLedger(memory.New(memory.Options{}), e)
	r := &orderRun{engineRun: e, defs: defs, moves: "orders"}
	r.watch = newOrderWatch(e.ledger)
	d.serve(r.watch, e.plan.faults)
	r.homes = newHomes(d, e.plan.processes, r.open)
	return r
}

// drawOrders returns the plan of a seed.
func drawOrders(seed uint64) enginePlan {
	p := drawFaults(seed)
	p.heap, p.backlog, p.seldom = false, 0, false
	return p
}

// open starts a process over a connection.
func (r *orderRun) open(line *faulty.Store, name string) *mover {
	c := skewed{seed: r.plan.seed, name: name, skew: r.plan.skew, began: r.began}
	s := r.storeOf(line)
	if r.plan.alone {
		c.name = "alone" // the machine's clock outlives the process
	}
	j := journal.Open(s, journal.Options{Now: c.now, Timing: timing, Jitter: jitter(r.plan.seed, name), Folds: projection.Folds()})
	o := order.Open(order.Options{Store: s, Journal: j, Definitions: r.defs, Now: c.now})
	q := queue.Open(queue.Options{
		Store: s, Journal: j, Definitions: r.defs, Now: c.now, Notifier: &r.ears, Random: &source{dice(r.plan.seed, name+" random")},
		Quiet: quiet, Steps: o,
	})
	o.Use(q)
	return &mover{engine: &engine{Queue: q, journal: j, wire: wire{line}}, orders: o, now: c.now}
}

// notBusy reports a call that failed with ErrBusy, unless it reads the journal: who calls that tries again.
func (r *orderRun) notBusy(doing string, err error) {
	if doing != "match" && doing != "act on many" && doing != "sweep of forks" {
		r.engineRun.notBusy(doing, err)
	}
}

func (r *orderRun) play() {
	for i := range 3 {
		r.adder(fmt.Sprintf("adder%d", i), i)
	}
	for i := range 3 {
		r.stepper(fmt.Sprintf("stepper%d", i), i)
	}
	for i := range 2 {
		r.repairer(fmt.Sprintf("repairer%d", i), i+1)
	}
	r.foreman("foreman", 0, 100)
	r.planner("planner", 1)
	r.keeper("keeper0", 2)
	r.keeper("keeper1", 3)
	r.viewer("viewer", 0)
	r.parter("parter", 1)
	r.busy.Wait()
	r.mark(&r.over)
	r.upkeep.Wait()
	r.homes.settle()
	time.Sleep(settling)
	r.settle()
	r.homes.close()
	r.verify()
}

// caller returns an actor in the run's homes.
func (r *orderRun) caller(name string, at int) *caller {
	return &caller{actor: r.actor0(name), run: r, home: r.homes.at(at)}
}

func (r *orderRun) actor0(name string) *actor {
	r.actors++
	return &actor{run: r.engineRun, name: name, luck: dice(r.plan.seed, name), turn: r.actors}
}

// redefined is a set of definitions that changes under way.
type redefined struct {
	set     func(n int) *definition.Set // the n-th one
	mu      sync.Mutex
	is      *definition.Set
	was     *definition.Set
	changed time.Time
	n       int
}

func newRedefined(set func(n int) *definition.Set) *redefined {
	return &redefined{set: set, is: set(0), was: set(0)}
}

// chains returns the paths of all chains.
func (d *redefined) chains() (paths []string) {
	for _, c := range d.set(0).JobChains {
		paths = append(paths, c.Path)
	}
	return paths
}

// nodes returns the ids of all nodes, in all versions.
func (d *redefined) nodes() (ids []string) {
	for n := range 2 {
		for _, c := range d.set(n).JobChains {
			for _, node := range c.Nodes {
				if !slices.Contains(ids, node.ID) {
					ids = append(ids, node.ID)
				}
			}
		}
	}
	return ids
}

// staleDefinitions is how long processes may go by the set before.
const staleDefinitions = 150 * time.Millisecond

// Current returns the set, or for a short time the one before.
func (d *redefined) Current(context.Context) (*definition.Set, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.changed) < staleDefinitions {
		return d.was, nil
	}
	return d.is, nil
}

// Refresh returns the set in force.
func (d *redefined) Refresh(context.Context) (*definition.Set, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.is, nil
}

// change declares the next version of the chains.
func (d *redefined) change() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	d.was, d.is, d.changed = d.is, d.set(d.n), time.Now()
}

// The chains of every run.
const (
	lineChain  = "/c/line"
	fewChain   = "/c/few"
	otherChain = "/d/one"
	fewOrders  = 2 // max_orders of fewChain
	visitsMost = 6 // max_visits of lineChain
)

var chainPaths = []string{lineChain, fewChain, otherChain}

// backJob sets back twice; the third setback in a row is an error.
var backJob = definition.Job{
	Path: "/back", Queue: "main", Target: definition.Target{Go: "f"}, Attempts: 1, Lease: leaseLength,
	Setbacks: []definition.Setback{{Count: 1, Delay: 100 * time.Millisecond}, {Count: 2, Delay: 250 * time.Millisecond, IsMaximum: true}},
}

// chainSet returns the n-th set of definitions; sets with even numbers are the same.
func chainSet(n int) *definition.Set {
	job := func(path string, attempts int) definition.Job {
		return definition.Job{
			Path: path, Queue: "main", Target: definition.Target{Go: "f"}, Attempts: attempts, RetryDelay: retryDelay, Lease: leaseLength,
		}
	}
	line := definition.JobChain{Path: lineChain, MaxVisits: visitsMost, Nodes: []definition.Node{
		{ID: "A", Job: "/s", Next: "B", Error: "bad"},
		{ID: "B", Job: "/back", Next: "C", Error: "bad", OnError: definition.ErrorSetsBack},
		{ID: "C", Job: "/twice", Next: "good", Error: "bad", OnError: definition.ErrorSuspends, On: map[string]string{"7..9": "A", "5": "bad"}},
		{ID: "good"}, {ID: "bad"},
	}}
	few := definition.JobChain{Path: fewChain, MaxOrders: fewOrders, Nodes: []definition.Node{
		{ID: "A", Job: "/s", Next: "B", Error: "bad"},
		{ID: "B", Job: "/s", Next: "good", Error: "bad", Delay: 80 * time.Millisecond}, {ID: "good"}, {ID: "bad"},
	}}
	other := definition.JobChain{Path: otherChain, Nodes: []definition.Node{{ID: "A", Job: "/s"}, {ID: "B", Job: "/twice"}}}
	if n%2 == 1 {
		line.Nodes[1].Next = "X"
		line.Nodes = append(line.Nodes, definition.Node{ID: "X", Job: "/s", Next: "C", Error: "A", Delay: 50 * time.Millisecond})
		few.Nodes[1].Delay = 0
		other.Nodes = append(other.Nodes, definition.Node{ID: "end"})
	}
	return &definition.Set{
		Jobs:      []definition.Job{job("/s", 1), job("/twice", 2), backJob},
		JobChains: []definition.JobChain{line, few, other},
		Lease:     leaseLength,
	}
}

// events reads the whole journal.
func (r *orderRun) events() (all []event.Event) {
	j := journal.Open(r.storeOf(r.connect("reader")), journal.Options{Timing: timing, Jitter: jitter(r.plan.seed, "reader")})
	defer func() { _ = j.Close() }()
	for after := event.ID(0); ; {
		answer, err := j.ReadAfter(r.ctx, journal.Request{After: after, Limit: 500, Causes: true})
		if err != nil {
			r.report("liveness", "the journal cannot be read when all is quiet: %v", err)
			return all
		}
		if len(answer.Events) == 0 {
			return all
		}
		all, after = append(all, answer.Events...), answer.LastEventID
	}
}
