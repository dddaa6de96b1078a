package remote_test

import (
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/remote"
	"github.com/millrace/millrace/shared/store/storetest"
)

// serve serves a store until the test ends.
func serve(t *testing.T, s store.Store) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = remote.Serve(listener, s) })
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return listener.Addr().String()
}

// TestConformance: several connections to one store pass the suite like the store.
func TestConformance(t *testing.T) {
	t.Parallel()
	address := serve(t, memory.New(memory.Options{}))
	storetest.Run(t, func(t *testing.T) store.Store {
		s := remote.Open(address)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}, storetest.Capabilities{})
}

// TestNobodyServes: a call that was not sent returns ErrUnavailable, and may be tried again.
func TestNobodyServes(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	s := remote.Open(listener.Addr().String())
	if err := s.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Ping = %v, want ErrUnavailable", err)
	}
}
