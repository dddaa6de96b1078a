package simulation

import (
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/faulty"
)

// process is one process between its start and its crash: a connection to the store, and a journal.
type process struct {
	*journal.Journal
	wire
	options journal.Options
}

// open starts a process over a connection.
func (r *run) open(line *faulty.Store, name string) *process {
	c := skewed{seed: r.plan.seed, name: name, skew: r.plan.skew, began: r.began}
	o := journal.Options{
		Now: c.now, Folds: []journal.Fold{newest},
		Retention: journal.Retention{Events: r.plan.keep}, Timing: timing,
		Jitter: jitter(r.plan.seed, name), Chunk: 4, Run: r.plan.run, Writers: r.plan.beside,
	}
	return &process{Journal: journal.Open(line, o), wire: wire{line}, options: o}
}

// stateless returns a process with a new journal for one request, as in a function that was just started.
func (p *process) stateless() *process {
	return &process{Journal: journal.Open(p.line, p.options), wire: p.wire, options: p.options}
}
