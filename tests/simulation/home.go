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
	start func(name string) L
	group *sync.WaitGroup // of the closing of earlier processes

	mu      sync.Mutex
	lives   int
	current L
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
		h.current = h.start(fmt.Sprintf("%s.%d", h.name, h.lives))
	}
	return h.current
}

// close closes the current process, without waiting for it.
func (h *home[L]) close() {
	if h.lives == 0 {
		return
	}
	ending := h.current
	h.group.Go(func() { _ = ending.Close() })
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
