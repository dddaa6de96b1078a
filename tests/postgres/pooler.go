package postgres

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Pooler is PgBouncer in transaction mode before an instance: a connection of the database's is a client's for one transaction only.
type Pooler struct {
	program string
	dir     string // holds its settings, and the socket
	to      *url.URL
	process *running
}

// poolerPort is part of the name of the pooler's socket.
const poolerPort = "6432"

// Behind starts a pooler before the database at the URL, which is one of [Database] or of an [Instance]. It ends with the test. See
// [RequirePooler] for what happens where there is no PgBouncer.
func Behind(t testing.TB, database string) *Pooler {
	t.Helper()
	program := RequirePooler(t)
	to, err := url.Parse(database)
	if err != nil {
		t.Fatalf("postgres: %v", err)
	}
	dir, err := os.MkdirTemp("", "millrace-pool") // not the test's own, as for an instance
	if err != nil {
		t.Fatalf("postgres: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &Pooler{program: program, dir: dir, to: to}
	if err := p.configure(); err != nil {
		t.Fatalf("postgres: %v", err)
	}
	t.Cleanup(p.Kill)
	if err := p.Start(); err != nil {
		t.Fatalf("postgres: %v", err)
	}
	return p
}

// configure writes the pooler's file. It has fewer connections than its clients have, so that these take turns.
func (p *Pooler) configure() error {
	lines := []string{
		"[databases]", "* = host=" + p.to.Query().Get("host") + " port=" + p.to.Query().Get("port"),
		"[pgbouncer]", "pool_mode = transaction", "default_pool_size = 5", "max_client_conn = 500",
		"listen_addr =", "listen_port = " + poolerPort, "unix_socket_dir = " + p.dir,
		"auth_type = trust", "auth_file = " + p.path("users"),
		"server_login_retry = 0.1", // how long it refuses clients after the database has refused it; 15 s by default
	}
	if err := os.WriteFile(p.path("settings"), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(p.path("users"), []byte(`"millrace" ""`+"\n"), 0o644); err != nil {
		return err
	}
	return give(p.dir)
}

func (p *Pooler) path(name string) string { return filepath.Join(p.dir, name) }

// URL returns the URL of the database by way of the pooler.
func (p *Pooler) URL() string {
	u := *p.to
	u.RawQuery = url.Values{"host": {p.dir}, "port": {poolerPort}}.Encode()
	return u.String()
}

// Start starts the pooler after [Pooler.Kill], and returns when it accepts connections.
func (p *Pooler) Start() (err error) {
	c := exec.Command(p.program, p.path("settings"))
	c.Dir, c.SysProcAttr = p.dir, attributes()
	p.process, err = start(c, "process up")
	if err != nil {
		return fmt.Errorf("pgbouncer: %w", err)
	}
	return nil
}

// Kill ends the pooler as a power cut would, with signal 9, and all connections through it.
func (p *Pooler) Kill() { p.process.end(os.Kill) }
