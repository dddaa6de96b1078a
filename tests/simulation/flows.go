package simulation

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
)

// flowRun is one simulated deployment in which orders fork and join, ask persons, wait for events and times, and take locks.
type flowRun struct {
	*orderRun

	// The following are guarded by the deployment's mutex.
	acts []act
}

// act is an act on many orders.
type act struct {
	label string // the actor of its events
	id    string
	kind  order.ActKind
}

// RunFlows moves orders along chains of nodes of every kind, in several processes or in one that has the store to itself, while
// operators act on some orders, and on many at once.
func RunFlows(t *testing.T, seed uint64, trace func(string)) Report {
	t.Helper()
	return simulate(t, seed, trace, func(d *deployment) {
		r := &flowRun{orderRun: newOrderRun(d, drawFlows(seed), newRedefined(flowSet))}
		r.help, r.moves = r.helpOut, "forks"
		r.play()
	})
}

// drawFlows returns the plan of a seed: one of other faults than those of chains of jobs.
func drawFlows(seed uint64) enginePlan { return drawOrders(seed + 1<<40) }

func (r *flowRun) play() {
	for i := range 2 {
		r.starter(fmt.Sprintf("starter%d", i), i)
	}
	for i := range 3 {
		r.stepper(fmt.Sprintf("stepper%d", i), i)
	}
	r.repairer("repairer", 1)
	r.foreman("foreman", 0, 40)
	r.answerer("answerer", 2)
	r.carrier("carrier", 1)
	r.chief("chief", 0)
	for i := range 2 {
		r.keeper(fmt.Sprintf("keeper%d", i), 2+i)
		r.matcher(fmt.Sprintf("matcher%d", i), i)
	}
	r.viewer("viewer", 0)
	r.parter("parter", 1)
	r.busy.Wait()
	r.mark(&r.over)
	r.upkeep.Wait()
	r.homes.settle()
	time.Sleep(settling)
	r.endActs()
	r.settle()
	r.watch.checkNoLocks()
	r.verify()
	r.homes.close()
}

// The chains of every run.
const (
	forkChain = "/f/fork"
	waitChain = "/f/wait"
	loopChain = "/f/loop"

	poolHolders = 2 // max_shared of the lock pool
	eachNeeded  = 2 // how many children of the node each must succeed
)

// flowSet returns the n-th set of definitions; sets with even numbers are the same.
func flowSet(n int) *definition.Set {
	job := func(path string, attempts int) definition.Job {
		return definition.Job{
			Path: path, Queue: "main", Target: definition.Target{Go: "f"}, Attempts: attempts, RetryDelay: retryDelay, Lease: leaseLength,
		}
	}
	alone, shared := definition.NodeLock{Name: "alone"}, definition.NodeLock{Name: "pool", Shared: true}
	fork := definition.JobChain{Path: forkChain, MaxVisits: 3, Nodes: []definition.Node{
		{ID: "all", Error: "each", Next: "each", Fork: &definition.Fork{Branches: map[string][]definition.Node{
			"a": {{ID: "a1", Job: "/s", Locks: []definition.NodeLock{alone}}, {ID: "a2", Job: "/twice"}},
			"b": {{ID: "b1", Wait: &definition.Wait{For: 60 * time.Millisecond}}, {ID: "b2", Job: "/s", Locks: []definition.NodeLock{shared}}},
		}}},
		{ID: "each", Next: "last", Error: "bad", Join: &definition.Join{AtLeast: eachNeeded}, Fork: &definition.Fork{
			Each: "list", Job: "/s", OnFailed: definition.FailedCancels,
		}},
		{ID: "last", Job: "/s", Error: "bad"}, {ID: "good"}, {ID: "bad"},
	}}
	wait := definition.JobChain{Path: waitChain, Timeout: 4 * time.Second, Nodes: []definition.Node{
		{ID: "ask", Prompt: &definition.Prompt{
			Role: "operator", Deadline: 400 * time.Millisecond, Default: "both", Answers: map[string]string{"yes": "event", "no": "bad"},
		}},
		{ID: "event", Error: "bad", Wait: &definition.Wait{
			Event: parcel, Path: parcels, Where: map[string]any{"order": "${id}"}, Timeout: 700 * time.Millisecond,
		}},
		{ID: "time", Error: "bad", Wait: &definition.Wait{For: 90 * time.Millisecond}},
		{ID: "some", Job: "/s", Error: "bad", Locks: []definition.NodeLock{shared}},
		{ID: "both", Job: "/s", Error: "bad", Locks: []definition.NodeLock{alone, {Name: "pool"}}},
		{ID: "good"}, {ID: "bad"},
	}}
	loop := definition.JobChain{Path: loopChain, MaxVisits: 3, Timeout: 2 * time.Second, MaxOrders: fewOrders, Nodes: []definition.Node{
		{ID: "one", Job: "/s", Error: "one", Timeout: 300 * time.Millisecond, On: map[string]string{"7..9": "bad"}},
		{ID: "choose", Prompt: &definition.Prompt{Role: "operator", Answers: map[string]string{"again": "one", "go": "good"}}, Error: "bad"},
		{ID: "good"}, {ID: "bad"},
	}}
	if n%2 == 1 {
		fork.Nodes[2].Delay, loop.Nodes[0].Timeout = 50*time.Millisecond, 0
	}
	return &definition.Set{
		Jobs: []definition.Job{job("/s", 1), job("/twice", 2)}, JobChains: []definition.JobChain{fork, wait, loop},
		Locks: []definition.Lock{{Name: "alone"}, {Name: "pool", MaxShared: poolHolders}}, Lease: leaseLength,
	}
}
