package simulation

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/faulty"
)

// The protocol's durations, scaled down so that a run lasts seconds. They keep their order: RemoveAfter exceeds Age,
// signatureLife and the skew of clocks together, and the longest freeze exceeds RemoveAfter.
const (
	grace         = 60 * time.Millisecond
	age           = 400 * time.Millisecond
	removeAfter   = 1500 * time.Millisecond
	signatureLife = 600 * time.Millisecond
	longestFreeze = 3500 * time.Millisecond
)

var timing = journal.Timing{
	Grace: grace, Age: age, RemoveAfter: removeAfter, Poll: 20 * time.Millisecond, Call: 200 * time.Millisecond, Reserve: time.Millisecond,
}

// plan is what a seed determines about a run of the journal.
type plan struct {
	seed      uint64
	processes int
	appends   int           // per writer
	keep      int64         // events that retention keeps
	upkeep    time.Duration // a sweeper's longest pause
	large     bool          // some appends take more than one item
	think     time.Duration // a writer's longest pause between appends
	skew      time.Duration // of clocks, either way
	run       int64         // slots in a row that share a partition
	beside    int           // appends of a process that are written side by side
	advances  bool          // writes may take their ticket themselves
	faults    faulty.Faults
}

// draw draws each kind of fault independently: a run in which only some of them happen, but often, finds what a mixture of all
// hides.
func draw(seed uint64) plan {
	d := dice(seed, "plan")
	some := likelihoods(d)
	p := plan{
		seed:      seed,
		processes: 3 + d.IntN(4),
		appends:   4 + d.IntN(9),
		keep:      int64(2 + d.IntN(1<<(2+d.IntN(4)))),
		upkeep:    time.Duration(30+d.IntN(250)) * time.Millisecond,
		think:     time.Duration(10+d.IntN(150)) * time.Millisecond,
		large:     d.IntN(16) == 0,
		skew:      time.Duration(d.IntN(300)) * time.Millisecond,
	}
	way := faulty.Spread{Min: 500 * time.Microsecond, Max: 6 * time.Millisecond, Rare: some(0.1), RareMax: 240 * time.Millisecond}
	p.faults = faulty.Faults{
		Seed: seed, There: way, Back: way,
		Timeout: time.Duration(20+d.IntN(100)) * time.Millisecond, SignatureLife: signatureLife,
		LoseRequest: some(0.05), LoseAnswer: some(0.05), Busy: some(0.05), Unavailable: some(0.03),
		Twice: some(0.1), Waste: some(0.1), Echo: some(0.1), EchoWithin: time.Second,
		Lag: time.Duration(some(30)) * time.Millisecond, Apart: time.Duration(some(14)) * time.Millisecond,
		Freeze: some(0.02), FreezeOnWire: some(0.04),
		Frozen: faulty.Spread{Min: 200 * time.Millisecond, Max: 900 * time.Millisecond, Rare: some(0.6), RareMax: longestFreeze},
		Crash:  some(0.01),
		Untold: dice(seed, "untold").IntN(6) == 0,
	}
	p.run, p.beside = journal.ShortRun, 1
	if seed%4 == 3 {
		l := dice(seed, "layout")
		p.run = []int64{journal.LongRun, journal.PageRun}[l.IntN(2)]
		p.beside = []int{1, 2, 16}[l.IntN(3)]
	}
	if p.advances = seed%4 == 2; p.advances {
		p.faults.NoAdvance = likelihoods(dice(seed, "no advance"))(0.2)
	}
	return p
}

// likelihoods returns a function that draws how likely a fault is: 0 in one case of three, and less than most in the others.
func likelihoods(d *rand.Rand) func(most float64) float64 {
	return func(most float64) float64 {
		if d.IntN(3) == 0 {
			return 0
		}
		return most * d.Float64()
	}
}

// dice returns the random source of an actor.
func dice(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// jitter returns the random pauses of a process.
func jitter(seed uint64, name string) func(time.Duration) time.Duration {
	var mu sync.Mutex
	d := dice(seed, name)
	return func(ceiling time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(d.Int64N(int64(ceiling)))
	}
}

// skewed is a process's wall clock, off by a skew that changes every 700 ms, also backwards.
type skewed struct {
	seed  uint64
	name  string
	skew  time.Duration
	began time.Time
}

func (c skewed) now() time.Time {
	now := time.Now()
	phase := uint64(now.Sub(c.began) / (700 * time.Millisecond))
	d := dice(c.seed+phase<<32, c.name)
	offset := time.Duration(0)
	if c.skew > 0 {
		offset = time.Duration(d.Int64N(int64(2*c.skew))) - c.skew
		if d.IntN(4) == 0 {
			offset -= 400 * time.Millisecond
		}
	}
	return now.Add(offset)
}
