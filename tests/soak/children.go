package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/pebble"
	"github.com/millrace/millrace/shared/store/remote"
)

// child is another process of this program, in another role. It ends when its standard input does, at the latest when this process
// has ended.
type child struct {
	command *exec.Cmd
	stdin   io.Closer
}

// spawn runs this program with other arguments.
func (c *child) spawn(log io.Writer, env []string, args ...string) (io.Reader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c.command = exec.Command(self, args...)
	c.command.Env, c.command.Stderr = append(os.Environ(), env...), log
	if c.stdin, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return out, c.command.Start()
}

// end kills it; the error says that it had ended before.
func (c *child) end() error {
	if err := c.command.Process.Kill(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(c.command.Args[1:], " "), err)
	}
	_ = c.command.Wait() // it was killed
	_ = c.stdin.Close()
	return nil
}

// leaveWithParent ends this process when the one that started it has ended.
func leaveWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// workerProcess is a worker, one life after the other.
type workerProcess struct {
	child
	cast   *cast
	number int
	life   int
}

func (w *workerProcess) name() string { return fmt.Sprintf("%s%d.%d", workerPrefix, w.number, w.life) }

func (w *workerProcess) start() error {
	w.life++
	r := w.cast.receiver
	env := []string{workerURL + "=" + w.cast.url, workerToken + "=" + r.token, workerName + "=" + w.name(), workerReport + "=" + r.URL + "/ran"}
	if _, err := w.spawn(w.cast.log, env, "worker"); err != nil {
		return err
	}
	w.cast.born(runner{name: w.name(), pool: byWorkers, room: capacity})
	return nil
}

// kill kills the worker and starts it again.
func (w *workerProcess) kill() error {
	at := micros()
	if err := w.end(); err != nil {
		return err
	}
	w.cast.died(w.name(), at, 1)
	return w.start()
}

// storeProcess owns the store that several servers share.
type storeProcess struct {
	child
	dir     string
	address string // the same after each start
	log     io.Writer
}

func startStore(dir string, log io.Writer) (*storeProcess, error) {
	s := &storeProcess{dir: dir, address: "127.0.0.1:0", log: log}
	return s, s.start()
}

func (s *storeProcess) start() error {
	out, err := s.spawn(s.log, nil, "store", s.dir, s.address)
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the store did not start: %w", err)
	}
	s.address = strings.TrimSpace(line)
	return nil
}

// kill kills the store's process and starts it again.
func (s *storeProcess) kill() error {
	if err := s.end(); err != nil {
		return err
	}
	return s.start()
}

// runStore serves an embedded store to others until it is killed.
func runStore(dir, address string) error {
	go leaveWithParent()
	s, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return remote.Serve(listener, durable{s})
}

// durable is an embedded store whose reservations are on the disk before Reserve returns. Without it they are written with the
// next commit, which is enough where the holder of a ticket dies with the store; here other processes hold them.
type durable struct{ store.Store }

// Reserve takes a ticket, and has it committed.
func (d durable) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	t, err := d.Store.Reserve(ctx, key, ids, now)
	if err != nil {
		return t, err
	}
	mark := store.Item{Key: store.Key{Table: store.Journal, Partition: "soak", Sort: "reserved"}, Version: 1}
	if err := d.Write(ctx, store.Write{Token: rand.Text(), Ops: []store.Op{store.Put(mark, store.Always)}}); err != nil {
		return store.Ticket{}, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return t, nil
}
