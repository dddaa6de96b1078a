package notifiertest

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/notifier"
)

// Capabilities describe a notifier, and say what it does beyond the contract. The suite asserts what is declared.
type Capabilities struct {
	// Open returns a notifier that nobody else uses; the suite closes it.
	Open func(t *testing.T) notifier.Line

	// Unreachable returns a notifier that cannot be reached; nil if there is no such state.
	Unreachable func(t *testing.T) notifier.Line

	// Virtual runs each case in a bubble of testing/synctest, with all delays up to MaxDelay. Otherwise the suite takes
	// real time and tests short delays only.
	Virtual bool

	// Exact says that no notification is doubled.
	Exact bool
}

// Run runs the suite.
func Run(t *testing.T, able Capabilities) {
	t.Helper()
	s := &suite{able}
	for name, run := range map[string]func(*testing.T, notifier.Line){
		"Notify sends each of the notices once":                    s.noticesOnceForEach,
		"Notify sends none":                                        s.noticesForNone,
		"a notice has its queue, whatever its name":                s.keepsNames,
		"zero or past means now":                                   s.pastIsNow,
		"a notice comes at most a second early":                    s.notEarly,
		"a notice for later does not hold up one for now":          s.laterDoesNotHoldUp,
		"all methods may be called concurrently":                   s.concurrently,
		"Notice ends with the context":                             s.noticeEndsWithContext,
		"Ping answers nil if the notifier is in reach":             s.ping,
		"after Close all methods answer ErrClosed":                 s.closed,
		"Receive waits until there is a notice":                    s.waits,
		"Receive waits for a notice for later":                     s.waitsForLater,
		"Receive answers at most limit notices":                    s.atMostLimit,
		"a notice is heard by one of those who wait":               s.heardByOne,
		"as many who wait are woken as there are notices":          s.wakesAsMany,
		"who stops waiting takes no notice along":                  s.takesNoNoticeAlong,
		"Receive ends with the context":                            s.receiveEndsWithContext,
		"Receive ends with Close":                                  s.receiveEndsWithClose,
		"all methods but Close answer ErrUnavailable when cut off": s.unavailable,
		"a notice for more than MaxDelay ahead comes after it":     s.clamped,
	} {
		t.Run(name, func(t *testing.T) { s.isolate(t, run) })
	}
}

type suite struct{ Capabilities }

// isolate runs a case on a notifier of its own.
func (s *suite) isolate(t *testing.T, run func(*testing.T, notifier.Line)) {
	t.Parallel()
	body := func(t *testing.T) {
		b := s.Open(t)
		defer b.Close()
		run(t, b)
	}
	if s.Virtual {
		synctest.Test(t, body)
		return
	}
	body(t)
}

// patience is how long a case waits for a notification that must come.
const patience = 40 * time.Second

// prompt is how long a case waits for what must come without delay; it is less than a long poll.
const prompt = 15 * time.Second

// delays returns the delays that a case can wait for.
func (s *suite) delays() []time.Duration {
	if s.Virtual {
		return []time.Duration{time.Millisecond, time.Second, 90 * time.Second, notifier.MaxDelay}
	}
	return []time.Duration{1200 * time.Millisecond, 2 * time.Second}
}

func notify(t *testing.T, b notifier.Notifier, notices ...notifier.Notice) {
	t.Helper()
	if err := b.Notify(t.Context(), notices...); err != nil {
		t.Fatalf("Notice = %v, want nil", err)
	}
}

// hear receives until every queue was received as often as wanted; if the notifier is exact, not more often.
func (s *suite) hear(t *testing.T, b notifier.Receiver, want map[string]int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), notifier.MaxDelay+patience)
	defer cancel()
	heard := map[string]int{}
	for !covers(heard, want) {
		notices, err := b.Receive(ctx, 10)
		if err != nil {
			t.Fatalf("Receive = %v after %v, want %v", err, heard, want)
		}
		for _, r := range notices {
			heard[r.Queue]++
		}
	}
	for queue := range heard {
		if want[queue] == 0 {
			t.Errorf("heard %q, which was not notified", queue)
		}
	}
	if s.Exact {
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Errorf("notices heard (-want +got):\n%s", diff)
		}
		s.silent(t, b)
	}
}

func covers(heard, want map[string]int) bool {
	for queue, n := range want {
		if heard[queue] < n {
			return false
		}
	}
	return true
}

// silent asserts that there are no more notifications, if time is virtual.
func (s *suite) silent(t *testing.T, b notifier.Receiver) {
	t.Helper()
	if !s.Virtual {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if notices, err := b.Receive(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Receive = %v, %v, want silence", notices, err)
	}
}

// name returns a queue's name that no other case uses.
func name() string { return "/" + rand.Text()[:8] }

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// repeated returns n notifications of a queue.
func repeated(queue string, n int) []notifier.Notice {
	return slices.Repeat([]notifier.Notice{{Queue: queue}}, n)
}
