package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Timeouts of the plain server. There is none for writing, since a stream of events lasts as long as its client stays.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute // of headers and body; net/http lifts it once the body has been read
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	lastMoment    = 8 // 1/lastMoment of a drain is left for handlers after their context has ended
)

// DefaultDrain is how long a stop may take by default: container platforms kill 10 s after SIGTERM.
const DefaultDrain = 8 * time.Second

// Server serves HTTP/1.1 and HTTP/2 without TLS until its context ends, and then drains: it accepts no more connections,
// lets running requests end, cancels those that do not end in time, and returns.
type Server struct {
	Handler http.Handler // required
	Log     *slog.Logger // required

	// OnDrain, if set, is called when draining begins, to end long polls and streams at once.
	OnDrain func()

	// DrainTime is how long draining may take in all; 0: [DefaultDrain]. Running requests are cancelled when an eighth of
	// it is left.
	DrainTime time.Duration
}

// Serve serves requests on the listener until ctx ends. It returns nil after a drain in which every request ended.
func (s Server) Serve(ctx context.Context, listener net.Listener) error {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := s.server(requests)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("host: serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
		return s.drain(server, cancel)
	}
}

func (s Server) server(requests context.Context) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler:           s.Handler,
		Protocols:         &protocols,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	if s.OnDrain != nil {
		server.RegisterOnShutdown(s.OnDrain)
	}
	return server
}

func (s Server) drain(server *http.Server, cancel context.CancelFunc) error {
	limit := s.DrainTime
	if limit == 0 {
		limit = DefaultDrain
	}
	s.Log.Info("draining", "limit", limit)
	cut := time.AfterFunc(limit-limit/lastMoment, cancel)
	defer cut.Stop()
	ctx, end := context.WithTimeout(context.Background(), limit)
	defer end()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(fmt.Errorf("host: requests were still under way %s after the signal to stop", limit), server.Close())
	}
	return err
}
