package postgres

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Instance is PostgreSQL with a directory of its own.
type Instance struct {
	programs string // the directory of PostgreSQL's programs
	dir      string // holds the data, and the socket
	process  *running
	port     string   // part of the name of its socket
	settings []string // besides those that each instance has
}

// create makes an instance in a temporary directory, and starts it.
func create(programs string) (*Instance, error) {
	dir, err := os.MkdirTemp("", "millrace-pg") // not the test's own: the path of a socket has at most 107 bytes
	if err != nil {
		return nil, err
	}
	i := &Instance{programs: programs, dir: dir, port: "5432"}
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
	return "postgres://millrace@/" + database + "?host=" + url.QueryEscape(i.dir) + "&port=" + i.port
}

// Start starts the instance after [Instance.Crash], and returns when it accepts connections.
func (i *Instance) Start() (err error) {
	arguments := []string{"-D", i.data(), "-k", i.dir, "-p", i.port}
	for _, setting := range append([]string{"listen_addresses=", "max_connections=200"}, i.settings...) {
		arguments = append(arguments, "-c", setting)
	}
	if i.process, err = start(i.command("postgres", arguments...), "ready to accept connections"); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}

// Crash ends the instance at once: what it has not written to disk is lost, as where the machine fails.
func (i *Instance) Crash() { i.process.end(syscall.SIGQUIT) } // "immediate shutdown"
