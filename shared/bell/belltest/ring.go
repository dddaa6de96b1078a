package belltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/bell"
)

func (s *suite) ringsOnceForEach(t *testing.T, b bell.Line) {
	first, second := name(), name()
	ring(t, b, append(repeated(first, 23), bell.Ring{Queue: second})...)
	s.hear(t, b, map[string]int{first: 23, second: 1})
}

func (s *suite) ringsForNone(t *testing.T, b bell.Line) {
	ring(t, b)
	s.silent(t, b)
}

func (s *suite) keepsNames(t *testing.T, b bell.Line) {
	want := map[string]int{"": 1, "/a/b c": 1, `"\`: 1, "<&>": 1, "ü/\U0001F600": 1, "\t": 1}
	for queue := range want {
		ring(t, b, bell.Ring{Queue: queue})
	}
	s.hear(t, b, want)
}

func (s *suite) pastIsNow(t *testing.T, b bell.Line) {
	queue, now := name(), time.Now()
	for _, at := range []time.Time{{}, time.Unix(0, 0), now.Add(-time.Hour), now} {
		ring(t, b, bell.Ring{Queue: queue, At: at})
	}
	s.hear(t, b, map[string]int{queue: 4})
	if took := time.Since(now); s.Virtual && s.Exact && took > 2*time.Hour { // silent takes an hour
		t.Errorf("heard after %v, want at once", took)
	}
}

func (s *suite) notEarly(t *testing.T, b bell.Line) {
	for _, delay := range s.delays() {
		queue, at := name(), time.Now().Add(delay)
		ring(t, b, bell.Ring{Queue: queue, At: at})
		s.await(t, b, queue)
		if early := time.Until(at); early > time.Second {
			t.Errorf("a ring in %v came %v early, want at most a second", delay, early)
		}
	}
}

// await receives until a notification of the queue comes.
func (s *suite) await(t *testing.T, b bell.Receiver, queue string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bell.MaxDelay+patience)
	defer cancel()
	for {
		rings, err := b.Receive(ctx, 1)
		if err != nil {
			t.Fatalf("Receive = %v, want a ring of %s", err, queue)
		}
		if rings[0].Queue == queue {
			return
		}
	}
}

func (s *suite) laterDoesNotHoldUp(t *testing.T, b bell.Line) {
	later, now := name(), name()
	ring(t, b, bell.Ring{Queue: later, At: time.Now().Add(bell.MaxDelay)})
	ring(t, b, bell.Ring{Queue: later, At: time.Now().Add(bell.MaxDelay - time.Second)}, bell.Ring{Queue: now})
	start := time.Now()
	s.await(t, b, now)
	if took := time.Since(start); took > patience {
		t.Errorf("heard after %v, want at once", took)
	}
}

func (s *suite) clamped(t *testing.T, b bell.Line) {
	queue := name()
	ring(t, b, bell.Ring{Queue: queue, At: time.Now().Add(400 * 24 * time.Hour)})
	if !s.Virtual {
		return // it was accepted, at least
	}
	start := time.Now()
	s.await(t, b, queue)
	if early := bell.MaxDelay - time.Since(start); early > time.Second || early < -time.Minute {
		t.Errorf("heard after %v, want after %v", time.Since(start), bell.MaxDelay)
	}
}

func (s *suite) concurrently(t *testing.T, b bell.Line) {
	const ringers, each = 8, 12
	want := map[string]int{}
	queues := make([]string, ringers)
	for n := range queues {
		queues[n] = fmt.Sprintf("%s-%d", name(), n)
		want[queues[n]] = each
	}
	var calls sync.WaitGroup
	for _, queue := range queues {
		calls.Go(func() {
			if err := errors.Join(b.Ring(t.Context(), repeated(queue, each)...), b.Ping(t.Context())); err != nil {
				t.Errorf("Ring and Ping = %v, want nil", err)
			}
		})
	}
	s.hear(t, b, want)
	calls.Wait()
}

func (s *suite) ringEndsWithContext(t *testing.T, b bell.Line) {
	if err := b.Ring(ended(), bell.Ring{Queue: name()}); !errors.Is(err, context.Canceled) {
		t.Errorf("Ring(ended context) = %v, want %v", err, context.Canceled)
	}
	if err := b.Ping(ended()); !errors.Is(err, context.Canceled) {
		t.Errorf("Ping(ended context) = %v, want %v", err, context.Canceled)
	}
}

func (s *suite) ping(t *testing.T, b bell.Line) {
	if err := b.Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v, want nil", err)
	}
}

func (s *suite) closed(t *testing.T, b bell.Line) {
	for range 2 {
		if err := b.Close(); err != nil {
			t.Errorf("Close = %v, want nil", err)
		}
	}
	all(t, b, bell.ErrClosed)
}

func (s *suite) unavailable(t *testing.T, _ bell.Line) {
	if s.Unreachable == nil {
		t.Skip("this bell is always in reach")
	}
	b := s.Unreachable(t)
	all(t, b, bell.ErrUnavailable)
	if err := b.Close(); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
}

// all asserts that every method but Close returns the error.
func all(t *testing.T, b bell.Line, want error) {
	t.Helper()
	if err := b.Ring(t.Context(), bell.Ring{Queue: name()}); !errors.Is(err, want) {
		t.Errorf("Ring = %v, want %v", err, want)
	}
	if err := b.Ping(t.Context()); !errors.Is(err, want) {
		t.Errorf("Ping = %v, want %v", err, want)
	}
	if rings, err := b.Receive(t.Context(), 1); !errors.Is(err, want) {
		t.Errorf("Receive = %v, %v, want %v", rings, err, want)
	}
}
