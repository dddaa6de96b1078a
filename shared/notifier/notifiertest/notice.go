package notifiertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/notifier"
)

func (s *suite) noticesOnceForEach(t *testing.T, b notifier.Line) {
	first, second := name(), name()
	notify(t, b, append(repeated(first, 23), notifier.Notice{Queue: second})...)
	s.hear(t, b, map[string]int{first: 23, second: 1})
}

func (s *suite) noticesForNone(t *testing.T, b notifier.Line) {
	notify(t, b)
	s.silent(t, b)
}

func (s *suite) keepsNames(t *testing.T, b notifier.Line) {
	want := map[string]int{"": 1, "/a/b c": 1, `"\`: 1, "<&>": 1, "ü/\U0001F600": 1, "\t": 1}
	for queue := range want {
		notify(t, b, notifier.Notice{Queue: queue})
	}
	s.hear(t, b, want)
}

func (s *suite) pastIsNow(t *testing.T, b notifier.Line) {
	queue, now := name(), time.Now()
	for _, at := range []time.Time{{}, time.Unix(0, 0), now.Add(-time.Hour), now} {
		notify(t, b, notifier.Notice{Queue: queue, At: at})
	}
	s.hear(t, b, map[string]int{queue: 4})
	if took := time.Since(now); s.Virtual && s.Exact && took > 2*time.Hour { // silent takes an hour
		t.Errorf("heard after %v, want at once", took)
	}
}

func (s *suite) notEarly(t *testing.T, b notifier.Line) {
	for _, delay := range s.delays() {
		queue, at := name(), time.Now().Add(delay)
		notify(t, b, notifier.Notice{Queue: queue, At: at})
		s.await(t, b, queue)
		if early := time.Until(at); early > time.Second {
			t.Errorf("a notice in %v came %v early, want at most a second", delay, early)
		}
	}
}

// await receives until a notification of the queue comes.
func (s *suite) await(t *testing.T, b notifier.Receiver, queue string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), notifier.MaxDelay+patience)
	defer cancel()
	for {
		notices, err := b.Receive(ctx, 1)
		if err != nil {
			t.Fatalf("Receive = %v, want a notice of %s", err, queue)
		}
		if notices[0].Queue == queue {
			return
		}
	}
}

func (s *suite) laterDoesNotHoldUp(t *testing.T, b notifier.Line) {
	later, now := name(), name()
	notify(t, b, notifier.Notice{Queue: later, At: time.Now().Add(notifier.MaxDelay)})
	notify(t, b, notifier.Notice{Queue: later, At: time.Now().Add(notifier.MaxDelay - time.Second)}, notifier.Notice{Queue: now})
	start := time.Now()
	s.await(t, b, now)
	if took := time.Since(start); took > patience {
		t.Errorf("heard after %v, want at once", took)
	}
}

func (s *suite) clamped(t *testing.T, b notifier.Line) {
	queue := name()
	notify(t, b, notifier.Notice{Queue: queue, At: time.Now().Add(400 * 24 * time.Hour)})
	if !s.Virtual {
		return // it was accepted, at least
	}
	start := time.Now()
	s.await(t, b, queue)
	if early := notifier.MaxDelay - time.Since(start); early > time.Second || early < -time.Minute {
		t.Errorf("heard after %v, want after %v", time.Since(start), notifier.MaxDelay)
	}
}

func (s *suite) concurrently(t *testing.T, b notifier.Line) {
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
			if err := errors.Join(b.Notify(t.Context(), repeated(queue, each)...), b.Ping(t.Context())); err != nil {
				t.Errorf("Notice and Ping = %v, want nil", err)
			}
		})
	}
	s.hear(t, b, want)
	calls.Wait()
}

func (s *suite) noticeEndsWithContext(t *testing.T, b notifier.Line) {
	if err := b.Notify(ended(), notifier.Notice{Queue: name()}); !errors.Is(err, context.Canceled) {
		t.Errorf("Notice(ended context) = %v, want %v", err, context.Canceled)
	}
	if err := b.Ping(ended()); !errors.Is(err, context.Canceled) {
		t.Errorf("Ping(ended context) = %v, want %v", err, context.Canceled)
	}
}

func (s *suite) ping(t *testing.T, b notifier.Line) {
	if err := b.Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v, want nil", err)
	}
}

func (s *suite) closed(t *testing.T, b notifier.Line) {
	for range 2 {
		if err := b.Close(); err != nil {
			t.Errorf("Close = %v, want nil", err)
		}
	}
	all(t, b, notifier.ErrClosed)
}

func (s *suite) unavailable(t *testing.T, _ notifier.Line) {
	if s.Unreachable == nil {
		t.Skip("this notifier is always in reach")
	}
	b := s.Unreachable(t)
	all(t, b, notifier.ErrUnavailable)
	if err := b.Close(); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
}

// all asserts that every method but Close returns the error.
func all(t *testing.T, b notifier.Line, want error) {
	t.Helper()
	if err := b.Notify(t.Context(), notifier.Notice{Queue: name()}); !errors.Is(err, want) {
		t.Errorf("Notice = %v, want %v", err, want)
	}
	if err := b.Ping(t.Context()); !errors.Is(err, want) {
		t.Errorf("Ping = %v, want %v", err, want)
	}
	if notices, err := b.Receive(t.Context(), 1); !errors.Is(err, want) {
		t.Errorf("Receive = %v, %v, want %v", notices, err, want)
	}
}
