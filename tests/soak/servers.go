package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"

	"github.com/millrace/millrace/tests/process"
)

// mostStarts is how many starts of servers may end before they are ready.
const mostStarts = 100

// serverProcess is a server, one life after the other.
type serverProcess struct {
	*process.Server
	cast   *cast
	number int
	lives  atomic.Int64
	down   spans
}

func newServer(c *cast, number int, store, config string) *serverProcess {
	return &serverProcess{cast: c, number: number, Server: &process.Server{
		Binary: c.plan.Binary, Store: store, Token: c.receiver.token, Log: c.log,
		Env: []string{"MILLRACE_CONFIG=" + config, fmt.Sprint("MILLRACE_WORKERS=", serverRoom), ""},
	}}
}

// start begins a new life, and tries again as a supervisor does.
func (s *serverProcess) start(ctx context.Context) error {
	for {
		err := s.try(ctx)
		if err == nil {
			break
		}
		if s.cast.falseStarts++; s.cast.falseStarts == mostStarts || ctx.Err() != nil {
			return err
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unnamed"
	}
	s.cast.born(runner{name: s.runner(host), pool: byServer, room: serverRoom})
	return nil
}

// try starts the server once, with random faults of its own.
func (s *serverProcess) try(ctx context.Context) error {
	luck := uint64(1000*s.number) + uint64(s.lives.Load()) + uint64(s.cast.falseStarts)
	faults, err := json.Marshal(s.cast.plan.faults(luck))
	if err != nil {
		return err
	}
	s.Env[len(s.Env)-1] = "MILLRACE_FAULTS=" + string(faults)
	return s.Start(ctx)
}

// runner returns what the journal calls the server.
func (s *serverProcess) runner(host string) string { return fmt.Sprintf("%s/%d", host, s.PID()) }

// kill kills the server and starts it again.
func (s *serverProcess) kill(ctx context.Context) error {
	at := micros()
	host, err := os.Hostname()
	if err != nil {
		host = "unnamed"
	}
	if err := s.Kill(); err != nil {
		return err
	}
	s.cast.died(s.runner(host), at, 0)
	s.lives.Add(1)
	err = s.start(ctx)
	s.cast.mu.Lock()
	defer s.cast.mu.Unlock()
	s.down = append(s.down, span{at, micros()})
	return err
}

// balancer passes connections on to servers, by turns, and leaves out those that do not respond.
type balancer struct {
	url      string
	listener net.Listener
	turn     atomic.Int64
}

// balance starts a balancer before the servers.
func balance(servers []*serverProcess) (*balancer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &balancer{url: "http://" + listener.Addr().String(), listener: listener}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go b.pass(connection, servers)
		}
	}()
	return b, nil
}

// pass connects a client with the first server that accepts, until either leaves.
func (b *balancer) pass(client net.Conn, servers []*serverProcess) {
	defer client.Close()
	first := int(b.turn.Add(1))
	for i := range servers {
		s := servers[(first+i)%len(servers)]
		server, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
		if err != nil {
			continue
		}
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		}()
		_, _ = io.Copy(client, server)
		return
	}
}

func (b *balancer) close() { _ = b.listener.Close() }
