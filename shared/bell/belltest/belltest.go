package belltest

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/bell"
)

// Capabilities describe a notifier, and say what it does beyond the contract. The suite asserts what is declared.
type Capabilities struct {
	// Open returns a notifier that nobody else uses; the suite closes it.
	Open func(t *testing.T) bell.Line

	// Unreachable returns a notifier that cannot be reached; nil if there is no such state.
	Unreachable func(t *testing.T) bell.Line

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
	for name, run := range map[string]func(*testing.T, bell.Line){
		"Ring rings once for each of rings":                        s.ringsOnceForEach,
		"Ring rings for none":                                      s.ringsForNone,
		"a ring has its queue, whatever its name":                  s.keepsNames,
		"zero or past means now":                                   s.pastIsNow,
		"a ring comes at most a second early":                      s.notEarly,
		"a ring for later does not hold up one for now":            s.laterDoesNotHoldUp,
		"all methods may be called concurrently":                   s.concurrently,
		"Ring ends with the context":                               s.ringEndsWithContext,
		"Ping answers nil if the bell can be rung":                 s.ping,
		"after Close all methods answer ErrClosed":                 s.closed,
		"Receive waits until there is a ring":                      s.waits,
		"Receive waits for a ring for later":                       s.waitsForLater,
		"Receive answers at most limit rings":                      s.atMostLimit,
		"a ring is heard by one of those who wait":                 s.heardByOne,
		"as many who wait are woken as there are rings":            s.wakesAsMany,
		"who stops waiting takes no ring along":                    s.takesNoRingAlong,
		"Receive ends with the context":                            s.receiveEndsWithContext,
		"Receive ends with Close":                                  s.receiveEndsWithClose,
		"all methods but Close answer ErrUnavailable when cut off": s.unavailable,
		"a ring for more than MaxDelay ahead comes after it":       s.clamped,
	} {
		t.Run(name, func(t *testing.T) { s.isolate(t, run) })
	}
}

type suite struct{ Capabilities }

// isolate runs a case on a notifier of its own.
func (s *suite) isolate(t *testing.T, run func(*testing.T, bell.Line)) {
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
		return []time.Duration{time.Millisecond, time.Second, 90 * time.Second, bell.MaxDelay}
	}
	return []time.Duration{1200 * time.Millisecond, 2 * time.Second}
}

func ring(t *testing.T, b bell.Bell, rings ...bell.Ring) {
	t.Helper()
	if err := b.Ring(t.Context(), rings...); err != nil {
		t.Fatalf("Ring = %v, want nil", err)
	}
}

// hear receives until every queue was received as often as wanted; if the notifier is exact, not more often.
func (s *suite) hear(t *testing.T, b bell.Receiver, want map[string]int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bell.MaxDelay+patience)
	defer cancel()
	heard := map[string]int{}
	for !covers(heard, want) {
		rings, err := b.Receive(ctx, 10)
		if err != nil {
			t.Fatalf("Receive = %v after %v, want %v", err, heard, want)
		}
		for _, r := range rings {
			heard[r.Queue]++
		}
	}
	for queue := range heard {
		if want[queue] == 0 {
			t.Errorf("heard %q, which was not rung", queue)
		}
	}
	if s.Exact {
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Errorf("rings heard (-want +got):\n%s", diff)
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
func (s *suite) silent(t *testing.T, b bell.Receiver) {
	t.Helper()
	if !s.Virtual {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if rings, err := b.Receive(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Receive = %v, %v, want silence", rings, err)
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
func repeated(queue string, n int) []bell.Ring { return slices.Repeat([]bell.Ring{{Queue: queue}}, n) }
