package simulation

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/store/faulty"
)

// The engine's durations, scaled down like the journal's.
const (
	leaseLength = 600 * time.Millisecond
	retryDelay  = 120 * time.Millisecond
	longestWait = 2 * time.Second // the longest delay of a task
	quiet       = 2 * time.Second // after which an empty line is forgotten: more than clock skew and the time of a write together
)

// enginePlan is what a seed determines about a run of the task engine.
type enginePlan struct {
	seed      uint64
	alone     bool // one process, whose store no other process can reach
	processes int
	requests  int           // per producer
	think     time.Duration // an actor's longest pause
	skew      time.Duration // of clocks, either way
	rules     bool          // operators pause and block
	storm     int           // how many more workers wake at the same moments
	seldom    bool          // an actor uses a queue about as often as it is forgotten
	parts     bool          // lines lie in several parts
	onePart   bool          // or cannot, since the store has no partitions
	heap      bool          // in the end, many paused tasks lie before one that is not paused
	backlog   int           // how many tasks wait in the end whose notifications were lost
	awake     time.Duration // how long an invocation that is woken for them may run
	wrong     wrong
	faults    faulty.Faults
}

// drawEngine returns the plan of a seed.
func drawEngine(seed uint64) enginePlan {
	p := drawFaults(seed)
	drawWrong(&p)
	return p
}

// drawFaults draws each kind of fault independently, as draw does. A process that has the store to itself has no network: its
// requests fail and it crashes, but no request is applied late.
func drawFaults(seed uint64) enginePlan {
	d := dice(seed, "engine")
	some := likelihoods(d)
	p := enginePlan{
		seed:      seed,
		alone:     d.IntN(3) == 0,
		processes: 2 + d.IntN(3),
		requests:  4 + d.IntN(6),
		think:     time.Duration(20+d.IntN(150)) * time.Millisecond,
		skew:      time.Duration(d.IntN(250)) * time.Millisecond,
		rules:     d.IntN(3) > 0,
	}
	if d := dice(seed, "backlog"); d.IntN(4) == 0 {
		p.backlog, p.awake = 10+d.IntN(20), time.Duration(200+d.IntN(1500))*time.Millisecond
	}
	way := faulty.Spread{Min: 500 * time.Microsecond, Max: 6 * time.Millisecond}
	p.faults = faulty.Faults{
		Seed: seed, There: way, Back: way, Timeout: time.Duration(20+d.IntN(100)) * time.Millisecond,
		SignatureLife: signatureLife,
		Busy:          some(0.05), Unavailable: some(0.03), Crash: some(0.008),
	}
	if d.IntN(5) == 0 {
		p.storm = 6 + d.IntN(7)
	}
	p.seldom, p.heap = d.IntN(8) == 0, d.IntN(8) == 0
	if p.alone {
		p.processes = 1
		return p
	}
	p.parts = dice(seed, "parts").IntN(2) == 0
	p.onePart = !p.parts && dice(seed, "one part").IntN(2) == 0
	p.faults.There.Rare, p.faults.There.RareMax = some(0.1), 240*time.Millisecond
	p.faults.Back = p.faults.There
	p.faults.LoseRequest, p.faults.LoseAnswer = some(0.04), some(0.04)
	p.faults.Twice, p.faults.Waste = some(0.1), some(0.1)
	p.faults.Echo, p.faults.EchoWithin = some(0.1), time.Second
	p.faults.Lag = time.Duration(some(30)) * time.Millisecond
	p.faults.Apart = time.Duration(some(60)) * time.Millisecond
	p.faults.Freeze, p.faults.FreezeOnWire = some(0.01), some(0.02)
	p.faults.Frozen = faulty.Spread{Min: 200 * time.Millisecond, Max: 900 * time.Millisecond}
	return p
}

// declared is the set of definitions of every run: one queue of each policy, two with MaxParallel. Instances run jobs of two queues.
type declared struct{ set *definition.Set }

// Current returns the set.
func (d declared) Current(context.Context) (*definition.Set, error) { return d.set, nil }

// limits are those of the queues that have one.
var limits = map[string]int{"strict": 1, "few": 2, "fair": 3}

// roomy ends the names of instances that run at most room tasks at once.
const (
	roomy = "@instance"
	room  = 2
)

func declare() declared {
	here := definition.Target{Go: "f"}
	job := func(path, queue string, attempts int) definition.Job {
		return definition.Job{
			Path: path, Queue: queue, Target: here, Attempts: attempts, RetryDelay: retryDelay, Lease: leaseLength,
		}
	}
	far, next := job("/far/few", "few", 3), job("/far/strict", "strict", 3)
	wide, main := job("/far/wide", "wide", 3), job("/far/main", "main", 3)
	for _, j := range []*definition.Job{&far, &next, &wide, &main} {
		j.Target = definition.Target{Instances: true}
	}
	return declared{&definition.Set{
		Jobs: []definition.Job{
			job("/plain", "main", 3), job("/single", "main", 1), job("/strict", "strict", 3), job("/few", "few", 2),
			job("/fair/a", "fair", 2), job("/fair/b", "fair", 2), far, next, wide, main, job("/seldom", "seldom", 2), job("/heap", "main", 1),
		},
		Queues: []definition.Queue{
			{Name: "strict", Type: definition.Ordered}, {Name: "few", MaxParallel: limits["few"]},
			{Name: "fair", Type: definition.RoundRobin, MaxParallel: limits["fair"], Weights: map[string]int{"/fair/a": 3}},
		},
		Lease: leaseLength,
	}}
}
