package simulation

import (
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/faulty"
)

// home is a place where processes live, one after the other: when one crashes the next is started a little later.
type home struct {
	run  *run
	name string

	mu      sync.Mutex
	lives   int
	current *process
}

// process is one life: a line to the store, and a journal.
type process struct {
	*journal.Journal
	line    *faulty.Store
	options journal.Options
}

func (p *process) crashed() bool {
	select {
	case <-p.line.Crashed():
		return true
	default:
		return false
	}
}

// process answers the process that lives here now, after the time it takes to start a new one if need be.
func (h *home) process() *process {
	h.mu.Lock()
	crashed := h.current != nil && h.current.crashed()
	h.mu.Unlock()
	if crashed {
		time.Sleep(restart)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current == nil || h.current.crashed() {
		h.close()
		h.start()
	}
	return h.current
}

// restart is how long it takes to start a process after a crash.
const restart = 50 * time.Millisecond

func (h *home) start() {
	h.lives++
	name := fmt.Sprintf("%s.%d", h.name, h.lives)
	line := h.run.service.Process(name)
	if h.run.settled() {
		line.Settle()
	}
	h.current = h.run.open(line, name)
}

// close ends the current life without waiting for what it still does.
func (h *home) close() {
	if life := h.current; life != nil {
		h.run.group.Go(func() { _ = life.Close() })
	}
}

func (h *home) settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.current != nil {
		h.current.line.Settle()
	}
}

// open starts a process over a line.
func (r *run) open(line *faulty.Store, name string) *process {
	c := clock{seed: r.plan.seed, name: name, skew: r.plan.skew, began: r.began}
	o := journal.Options{
		Now: c.now, Folds: []journal.Fold{newest},
		Retention: journal.Retention{Events: r.plan.keep}, Timing: r.plan.timing,
		Jitter: jitter(r.plan.seed, name),
	}
	return &process{Journal: journal.Open(line, o), line: line, options: o}
}

// stateless opens a journal of its own for one request, as a function that was just started does.
func (p *process) stateless() *process {
	return &process{Journal: journal.Open(p.line, p.options), line: p.line, options: p.options}
}
