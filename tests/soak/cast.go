package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/tests/process"
)

// runner is a process that runs tasks, from when it could until it was killed.
type runner struct {
	name  string // as the journal says it
	pool  pool
	room  int
	alive span // to is 0 while it lives
}

// cast are the processes.
type cast struct {
	plan   *plan
	server *process.Server
	log    *os.File

	mu      sync.Mutex
	down    spans // when the server was away
	runners []*runner
	workers []*workerProcess
	kills   [2]int // of the server, of workers

	falseStarts int // starts of the server that ended before it was ready; only havoc counts them
}

// mostStarts is how many starts of the server may end before it is ready.
const mostStarts = 100

func micros() int64 { return time.Now().UnixMicro() }

// assemble starts the server and the workers.
func assemble(ctx context.Context, p *plan, r *receiver) (*cast, error) {
	config := filepath.Join(p.Dir, "millrace.yaml")
	if err := os.WriteFile(config, []byte(definitions(r.URL+"/run")), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(p.Dir, "server.log"))
	if err != nil {
		return nil, err
	}
	c := &cast{plan: p, log: log, server: &process.Server{
		Binary: p.Binary, Store: "pebble:" + filepath.Join(p.Dir, "store"), Token: r.token, Log: log,
		Env: []string{"MILLRACE_CONFIG=" + config, fmt.Sprint("MILLRACE_WORKERS=", serverRoom), ""},
	}}
	if err := c.startServer(ctx); err != nil {
		return nil, err
	}
	for n := range p.Workers {
		w := &workerProcess{number: n}
		c.workers = append(c.workers, w)
		if err := c.startWorker(w, r); err != nil {
			return c, err
		}
	}
	return c, nil
}

// startServer begins a new life of the server, which has its own luck.
func (c *cast) startServer(ctx context.Context) error {
	for { // as whoever watches over a server does
		err := c.tryServer(ctx)
		if err == nil {
			break
		}
		if c.falseStarts++; c.falseStarts == mostStarts {
			return err
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unnamed"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runners = append(c.runners, &runner{
		name: fmt.Sprintf("%s/%d", host, c.server.PID()), pool: byServer, room: serverRoom, alive: span{from: micros()},
	})
	return nil
}

// died notes that a runner is no more since a moment.
func (c *cast) died(pool pool, name string, at int64) {
	for _, r := range c.runners {
		if r.pool == pool && r.alive.to == 0 && (name == "" || r.name == name) {
			r.alive.to = at
		}
	}
}

// killServer kills the server and starts it again.
func (c *cast) killServer(ctx context.Context) error {
	at := micros()
	if err := c.server.Kill(); err != nil {
		return err
	}
	c.mu.Lock()
	c.died(byServer, "", at)
	c.kills[0]++
	c.mu.Unlock()
	err := c.startServer(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = append(c.down, span{at, micros()})
	return err
}

func (c *cast) tryServer(ctx context.Context) error {
	faults, err := json.Marshal(c.plan.faults(uint64(c.life() + c.falseStarts)))
	if err != nil {
		return err
	}
	c.server.Env[len(c.server.Env)-1] = "MILLRACE_FAULTS=" + string(faults)
	return c.server.Start(ctx)
}

// workerProcess is a worker, one life after the other.
type workerProcess struct {
	number  int
	life    int
	command *exec.Cmd
	stdin   io.Closer
}

func (w *workerProcess) name() string { return fmt.Sprintf("%s%d.%d", workerPrefix, w.number, w.life) }

func (c *cast) startWorker(w *workerProcess, r *receiver) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w.life++
	w.command = exec.Command(self, "worker")
	w.command.Env = append(os.Environ(), workerURL+"="+c.server.URL(), workerToken+"="+r.token, workerName+"="+w.name(), workerReport+"="+r.URL+"/ran")
	w.command.Stderr = c.log
	if w.stdin, err = w.command.StdinPipe(); err != nil {
		return err
	}
	if err := w.command.Start(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runners = append(c.runners, &runner{name: w.name(), pool: byWorkers, room: capacity, alive: span{from: micros()}})
	return nil
}

// killWorker kills a worker and starts it again.
func (c *cast) killWorker(w *workerProcess, r *receiver) error {
	at := micros()
	if err := w.command.Process.Kill(); err != nil {
		return fmt.Errorf("worker %s: %w", w.name(), err)
	}
	_ = w.command.Wait() // it was killed
	_ = w.stdin.Close()
	c.mu.Lock()
	c.died(byWorkers, w.name(), at)
	c.kills[1]++
	c.mu.Unlock()
	return c.startWorker(w, r)
}

// havoc kills processes until ctx ends: the server and each worker once in every so much time, evenly spread. before is called
// ahead of each kill of the server.
func (c *cast) havoc(ctx context.Context, r *receiver, before func()) error {
	if c.plan.Every == 0 {
		return nil
	}
	beat := c.plan.Every / time.Duration(len(c.workers)+1)
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		var err error
		if which := n % (len(c.workers) + 1); which == 0 {
			before()
			err = c.killServer(context.WithoutCancel(ctx))
		} else {
			err = c.killWorker(c.workers[which-1], r)
		}
		if err != nil {
			return err
		}
	}
}

// dismiss ends all processes, and returns what was wrong with how the server did.
func (c *cast) dismiss() error {
	for _, w := range c.workers {
		_ = w.command.Process.Kill()
		_ = w.command.Wait()
		_ = w.stdin.Close()
	}
	err := c.server.Stop()
	if err != nil {
		err = fmt.Errorf("the server ended badly after SIGTERM: %w", err)
	}
	return errors.Join(err, c.log.Close())
}

// dial returns a client that waits long for a server that is away.
func (c *cast) dial() (*client.Client, error) {
	return c.server.Client(client.Options{Patience: 2 * time.Minute})
}

// stranger returns a client whose token the server does not know.
func (c *cast) stranger() (*client.Client, error) {
	return client.New(client.Options{URL: c.server.URL(), Token: "unknown", Patience: 2 * time.Minute})
}

// life returns which life of the server this is.
func (c *cast) life() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kills[0]
}
