package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/millrace/millrace/client"
)

// Server is a process of millrace serve, which can be started again at the same address. Binary, Store and Token must be set. One from
// [At] only has a URL and clients.
type Server struct {
	Binary string    // the program
	Store  string    // URL of its store, such as pebble:DIR
	Token  string    // the admin token
	Env    []string  // further environment variables, NAME=VALUE; default: none
	Wrap   []string  // a command, with arguments, that runs the program; default: none
	Log    io.Writer // gets what it prints to standard error; default: kept for failures to start and to end

	url     string // http://HOST:PORT, the same after each start
	command *exec.Cmd
	stderr  tail
}

// At returns a server that runs elsewhere, and is not started or ended by this process.
func At(url, token string) *Server { return &Server{Token: token, url: url} }

const announcement = "millrace is ready at "

// Start runs the server and waits until it says that it is ready. Started again, it listens where it did before.
func (s *Server) Start(ctx context.Context) error {
	listen := "127.0.0.1:0"
	if s.url != "" {
		listen = strings.TrimPrefix(s.url, "http://")
	}
	line := append(append([]string{}, s.Wrap...), s.Binary, "serve", "--listen", listen, "--store", s.Store)
	s.command = exec.Command(line[0], line[1:]...)
	s.command.Env = append(append(os.Environ(), "MILLRACE_ADMIN_TOKEN="+s.Token, "MILLRACE_CONFIG=", "MILLRACE_TOKENS="), s.Env...)
	s.command.Stderr = &s.stderr
	if s.Log != nil {
		s.command.Stderr = s.Log
	}
	endWithParent(s.command)
	out, err := s.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.command.Start(); err != nil {
		return err
	}
	return s.await(ctx, out)
}

// await reads the line that says where the server is.
func (s *Server) await(ctx context.Context, out io.Reader) error {
	stop := context.AfterFunc(ctx, func() { _ = s.command.Process.Kill() })
	defer stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		s.url = strings.TrimSpace(strings.TrimPrefix(line, announcement))
		return nil
	}
	return fmt.Errorf("the server did not start: %w: %s", errors.Join(s.command.Wait(), ctx.Err()), s.stderr.String())
}

// URL returns the server's address, http://HOST:PORT.
func (s *Server) URL() string { return s.url }

// PID returns the number of the process that was started last.
func (s *Server) PID() int { return s.command.Process.Pid }

// Kill ends the server as a power cut would, with signal 9.
func (s *Server) Kill() error {
	if err := s.command.Process.Kill(); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := s.command.Wait(); !errors.As(err, &exit) {
		return fmt.Errorf("kill the server: %w", err)
	}
	return nil
}

// Stop asks the server to end, waits until it has, and returns an error, with what it printed last, if its exit status is not 0.
func (s *Server) Stop() error {
	if err := s.Signal(); err != nil {
		return err
	}
	if err := s.command.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, s.stderr.String())
	}
	return nil
}

// Signal asks the server to end, and does not wait.
func (s *Server) Signal() error { return s.command.Process.Signal(syscall.SIGTERM) }

// Client returns a client of the server.
func (s *Server) Client(o client.Options) (*client.Client, error) {
	o.URL, o.Token = s.url, s.Token
	return client.New(o)
}

// tail keeps the last that was written to it.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const tailSize = 16 << 10

// Write keeps p.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text.Len() > tailSize {
		t.text.Reset()
	}
	return t.text.Write(p)
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
