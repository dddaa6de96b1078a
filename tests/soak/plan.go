package main

import (
	"time"

	"github.com/millrace/millrace/shared/store/faulty"
)

// plan is what the flags say.
type plan struct {
	Binary   string        `json:"-"`       // millrace, built with the tag faults
	Lasting  time.Duration `json:"lasting"` // of the load; what is under way then may end
	Rate     float64       `json:"rate"`    // requests for tasks a second; as many emits, and a quarter of it of stream appends
	Every    time.Duration `json:"every"`   // between two kills of the server; each worker is killed as often
	Workers  int           `json:"workers"` // processes
	Servers  int           `json:"servers"` // processes; above 1 they share a store, which is a process of its own
	Seed     uint64        `json:"seed"`    // of the faults
	Faults   float64       `json:"faults"`  // chance that a call of the store is turned away
	Slack    time.Duration `json:"slack"`   // how late a task may be beyond what its rules explain
	Tolerate float64       `json:"tolerate"`
	Dir      string        `json:"-"`
}

// The parts of the configuration that judgements rest on.
const (
	lease        = 4 * time.Second // of tasks
	retryDelay   = 200 * time.Millisecond
	attempts     = 31              // of handlers and jobs
	capacity     = 8               // of a worker process
	serverRoom   = 16              // tasks that a server runs at once
	longestWork  = 2 * time.Second // of any task but those that wait to be stopped
	longestStop  = 8 * time.Second // after which those end by themselves
	keptEvents   = 50_000          // of the journal
	drainTime    = 2 * time.Minute // for what is under way when the load ends
	sampleEvery  = 10 * time.Second
	shortSamples = 2 * time.Second
)

// faults returns the faults of a server's store in one of the server's lives. A store of its own reports the outcome of each call;
// a shared one also loses calls and responses, and repeats some.
func (p *plan) faults(life uint64) faulty.Faults {
	way := faulty.Spread{Rare: p.Faults, RareMax: 200 * time.Millisecond}
	f := faulty.Faults{Seed: p.Seed + life, InTurn: true, There: way, Back: way, Busy: p.Faults, Unavailable: p.Faults / 2}
	if p.Servers > 1 {
		f.Timeout = 500 * time.Millisecond
		f.LoseRequest, f.LoseAnswer, f.Twice, f.Waste, f.Echo, f.EchoWithin = p.Faults/4, p.Faults/4, p.Faults, p.Faults, p.Faults, time.Second
	}
	return f
}

// bucket is the stretch of time that a row of the table of growth is about: a life of the server, where it is killed.
func (p *plan) bucket() time.Duration {
	if p.Every > 0 {
		return p.Every
	}
	return p.Lasting / 12
}
