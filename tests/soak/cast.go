package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace/millrace/client"
)

// runner is a process that runs tasks, from when it could until it was killed.
type runner struct {
	name  string // as in the journal's events
	pool  pool
	room  int
	alive span // to is 0 while it lives
}

// cast are the processes.
type cast struct {
	plan     *plan
	receiver *receiver
	log      *os.File
	url      string // of the server, or of the balancer before several
	store    *storeProcess
	balancer *balancer

	mu      sync.Mutex
	runners []*runner
	servers []*serverProcess
	workers []*workerProcess
	kills   [2]int // of servers and their store, of workers

	falseStarts int // starts of servers that ended before they were ready; only havoc counts them
}

func micros() int64 { return time.Now().UnixMicro() }

// assemble starts the servers and the workers.
func assemble(ctx context.Context, p *plan, r *receiver) (*cast, error) {
	config := filepath.Join(p.Dir, "millrace.yaml")
	if err := os.WriteFile(config, []byte(definitions(r.URL+"/run")), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(p.Dir, "server.log"))
	if err != nil {
		return nil, err
	}
	c := &cast{plan: p, receiver: r, log: log}
	url, dir := "", filepath.Join(p.Dir, "store")
	if url = "pebble:" + dir; p.Servers > 1 {
		if c.store, err = startStore(dir, log); err != nil {
			return c, err
		}
		url = "remote:" + c.store.address
	}
	for n := range p.Servers {
		s := newServer(c, n, url, config)
		c.servers = append(c.servers, s)
		if err := s.start(ctx); err != nil {
			return c, err
		}
	}
	if c.url = c.servers[0].URL(); p.Servers > 1 {
		if c.balancer, err = balance(c.servers); err != nil {
			return c, err
		}
		c.url = c.balancer.url
	}
	for n := range p.Workers {
		w := &workerProcess{cast: c, number: n}
		c.workers = append(c.workers, w)
		if err := w.start(); err != nil {
			return c, err
		}
	}
	return c, nil
}

// born notes that a runner has been started.
func (c *cast) born(r runner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.alive = span{from: micros()}
	c.runners = append(c.runners, &r)
}

// died notes that a runner has ended at a moment.
func (c *cast) died(name string, at int64, which int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.runners {
		if r.name == name && r.alive.to == 0 {
			r.alive.to = at
		}
	}
	c.kills[which]++
}

// down returns when no server was there, until now.
func (c *cast) down(began int64) spans {
	end := micros()
	var up []spans
	for _, s := range c.servers {
		up = append(up, spans{{began, end}}.without(union(s.down)))
	}
	return nowhere(up, began, end)
}

// havoc kills processes until ctx ends: each once in every so much time, evenly spread. Of several servers the first is left
// alone, so that there is one whose memory shows what grows over its life. before is called ahead of each kill of a server.
func (c *cast) havoc(ctx context.Context, before func()) error {
	if c.plan.Every == 0 {
		return nil
	}
	calls := context.WithoutCancel(ctx)
	var kills []func() error
	for _, w := range c.workers {
		kills = append(kills, w.kill)
	}
	for _, s := range c.servers[min(1, len(c.servers)-1):] {
		kills = append(kills, func() error { before(); return s.kill(calls) })
	}
	if c.store != nil {
		kills = append(kills, func() error { before(); return c.store.kill() })
	}
	ticker := time.NewTicker(c.plan.Every / time.Duration(len(kills)))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := kills[n%len(kills)](); err != nil {
			return err
		}
	}
}

// dismiss ends all processes, and returns what was wrong with how the servers did.
func (c *cast) dismiss() (err error) {
	for _, w := range c.workers {
		_ = w.end()
	}
	for _, s := range c.servers {
		if bad := s.Stop(); bad != nil {
			err = errors.Join(err, fmt.Errorf("server %d ended badly after SIGTERM: %w", s.number, bad))
		}
	}
	if c.balancer != nil {
		c.balancer.close()
	}
	if c.store != nil {
		_ = c.store.end()
	}
	return errors.Join(err, c.log.Close())
}

// dial returns a client that waits long for a server that is away.
func (c *cast) dial(token string) (*client.Client, error) {
	return client.New(client.Options{URL: c.url, Token: token, Patience: 2 * time.Minute})
}

// sampler returns a sampler of all servers.
func (c *cast) sampler(l *ledger) (*sampler, error) {
	s := &sampler{ledger: l}
	for _, server := range c.servers {
		direct, err := server.Client(client.Options{Patience: -1})
		if err != nil {
			return nil, err
		}
		s.members = append(s.members, &member{c: direct, life: server.lives.Load})
	}
	return s, nil
}
