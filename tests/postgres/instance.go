package postgres

import (
	"bufio"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Instance is PostgreSQL with a directory of its own.
type Instance struct {
	programs string // the directory of PostgreSQL's programs
	dir      string // holds the data, and the socket
	process  *exec.Cmd
	ended    chan struct{}
}

// startTime is how long an instance may take to accept connections.
const startTime = time.Minute

// create makes an instance in a temporary directory, and starts it.
func create(programs string) (*Instance, error) {
	dir, err := os.MkdirTemp("", "millrace-pg") // not the test's own: the path of a socket has at most 107 bytes
	if err != nil {
		return nil, err
	}
	i := &Instance{programs: programs, dir: dir}
	if err := i.initialize(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return i, i.Start()
}

func (i *Instance) initialize() error {
	if err := give(i.dir); err != nil {
		return err
	}
	text, err := i.command("initdb", "-D", i.data(), "-U", "millrace", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, text)
	}
	return nil
}

func (i *Instance) data() string { return filepath.Join(i.dir, "data") }

func (i *Instance) command(name string, arguments ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(i.programs, name), arguments...)
	c.Dir, c.SysProcAttr = i.dir, attributes()
	c.Env = append(os.Environ(), "LC_ALL=C")
	return c
}

// URL returns the URL of a database of the instance.
func (i *Instance) URL(database string) string {
	return "postgres://millrace@/" + database + "?host=" + url.QueryEscape(i.dir)
}

// Start starts the instance after [Instance.Crash], and returns when it accepts connections.
func (i *Instance) Start() error {
	i.process = i.command("postgres", "-D", i.data(), "-k", i.dir, "-c", "listen_addresses=", "-c", "max_connections=200")
	notes, err := i.process.StderrPipe()
	if err != nil {
		return err
	}
	if err := i.process.Start(); err != nil {
		return err
	}
	ready := make(chan struct{})
	i.ended = make(chan struct{})
	var last string
	go func(ended chan struct{}) {
		for lines, started := bufio.NewScanner(notes), false; lines.Scan(); {
			if last = lines.Text(); strings.Contains(last, "ready to accept connections") && !started {
				started = true
				close(ready)
			}
		}
		_ = i.process.Wait()
		close(ended)
	}(i.ended)
	select {
	case <-ready:
		return nil
	case <-i.ended:
		return fmt.Errorf("postgres has ended: %s", last)
	case <-time.After(startTime):
		i.Crash()
		return errors.New("postgres does not start within a minute")
	}
}

// Crash ends the instance at once: what it has not written to disk is lost, as where the machine fails.
func (i *Instance) Crash() {
	if i.process != nil && i.process.Process != nil {
		_ = i.process.Process.Signal(syscall.SIGQUIT) // "immediate shutdown"
		<-i.ended
	}
}
