package process

import (
	"testing"
	"time"

	"github.com/millrace/millrace/client"
)

// Serve starts the server, which ends with the test.
func (s *Server) Serve(t testing.TB) *Server {
	t.Helper()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("the server ended badly: %v", err)
		}
	})
	return s
}

// Dial returns a client that waits long for a server that is away, or whose database is. It ends with the test.
func (s *Server) Dial(t testing.TB) *client.Client {
	t.Helper()
	c, err := s.Client(client.Options{Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
