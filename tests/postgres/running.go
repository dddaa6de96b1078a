package postgres

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// startTime is how long a program may take to accept connections.
const startTime = time.Minute

// running is a program that says so on its standard error when it accepts connections.
type running struct {
	process *os.Process
	ended   chan struct{}
	last    string // what it said last, once it has ended
}

// start returns when the program has said that it is ready.
func start(c *exec.Cmd, says string) (*running, error) {
	notes, err := c.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	r, ready := &running{process: c.Process, ended: make(chan struct{})}, make(chan struct{})
	go func() {
		for lines, started := bufio.NewScanner(notes), false; lines.Scan(); {
			if r.last = lines.Text(); strings.Contains(r.last, says) && !started {
				started = true
				close(ready)
			}
		}
		_ = c.Wait()
		close(r.ended)
	}()
	select {
	case <-ready:
		return r, nil
	case <-r.ended:
		return nil, fmt.Errorf("it has ended: %s", r.last)
	case <-time.After(startTime):
		r.end(os.Kill)
		return nil, errors.New("it does not start within a minute")
	}
}

// end sends the signal, and returns when the program has ended.
func (r *running) end(by os.Signal) {
	if r != nil {
		_ = r.process.Signal(by)
		<-r.ended
	}
}
