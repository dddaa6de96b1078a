package simulation

import (
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/store/faulty"
)

// home runs processes one after the other: when one crashes, the next is started a little later.
type home[L life] struct {
	name  string
	start func(line *faulty.Store, name string) L
	in    *deployment

	mu      sync.Mutex
	lives   int
	current L
}

// homes are all homes of a run.
type homes[L life] []*home[L]

// newHomes returns n homes whose processes start starts.
func newHomes[L life](d *deployment, n int, start func(line *faulty.Store, name string) L) homes[L] {
	hs := make(homes[L], n)
	for i := range hs {
		hs[i] = &home[L]{name: fmt.Sprintf("p%d", i), start: start, in: d}
	}
	return hs
}

// at returns the home of the actor with that number: actors share homes evenly.
func (hs homes[L]) at(actor int) *home[L] { return hs[actor%len(hs)] }

// settle ends the faults of all processes.
func (hs homes[L]) settle() {
	for _, h := range hs {
		h.in.mark(&h.in.calm)
		h.settle()
	}
}

// close closes all processes, waits for them, and counts the crashes.
func (hs homes[L]) close() {
	for _, h := range hs {
		h.in.happened["crashes"] += max(h.lives-1, 0)
		h.close()
	}
	for _, h := range hs {
		h.in.group.Wait()
	}
}

// life is a process between its start and its crash.
type life interface {
	crashed() bool
	settle()
	Close() error
}

// restart is how long it takes to start a process after a crash.
const restart = 50 * time.Millisecond

// now returns the running process. If it has crashed, now waits for the time of a restart and starts a new one.
func (h *home[L]) now() L {
	h.mu.Lock()
	crashed := h.lives > 0 && h.current.crashed()
	h.mu.Unlock()
	if crashed {
		time.Sleep(restart)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lives == 0 || h.current.crashed() {
		h.close()
		h.lives++
		name := fmt.Sprintf("%s.%d", h.name, h.lives)
		h.current = h.start(h.in.connect(name), name)
	}
	return h.current
}

// close closes the current process, without waiting for it.
func (h *home[L]) close() {
	if h.lives == 0 {
		return
	}
	ending := h.current
	h.in.group.Go(func() { _ = ending.Close() })
}

func (h *home[L]) settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lives > 0 {
		h.current.settle()
	}
}

// wire is a process's connection to the store; the end of the connection is the crash of the process.
type wire struct{ line *faulty.Store }

func (w wire) crashed() bool {
	select {
	case <-w.line.Crashed():
		return true
	default:
		return false
	}
}

func (w wire) settle() { w.line.Settle() }
