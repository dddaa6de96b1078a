package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/worker"
)

// counter is a notifier that counts notifications.
type counter struct {
	mu       sync.Mutex
	notified int
	err      error
}

func (c *counter) Notify(_ context.Context, notices ...notifier.Notice) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notified += len(notices)
	return c.err
}
func (*counter) Ping(context.Context) error { return nil }
func (*counter) Close() error               { return nil }

// lasting returns a runner whose attempts last as long as takes says of their job, and what counts its notifications. The
// timeout of /hasty is 20 s, that of /lengthy a minute; /endless has none. Batches have at most so many workers, and claim no more
// when stopping ends, if there is one.
func lasting(e *engine, workers int, takes map[string]time.Duration, stopping ...context.Context) (*worker.Runner, *counter) {
	c, target := &counter{}, definition.Target{Go: "f"}
	return worker.NewRunner(worker.Options{
		Stopping: slices.Concat(stopping, []context.Context{nil})[0],
		Engine:   e, Notifier: c, Workers: workers, Definitions: definitions{&definition.Set{Jobs: []definition.Job{
			{Path: "/hasty", Target: target, Timeout: 20 * time.Second}, {Path: "/lengthy", Target: target, Timeout: time.Minute},
			{Path: "/endless", Target: target},
		}}},
		Targets: worker.Targets{Go: worker.Functions{"f": func(ctx context.Context, a *worker.Attempt, _ *worker.Log) (json.RawMessage, error) {
			select {
			case <-time.After(takes[a.Job]):
				return nil, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}},
	}), c
}

// of adds n tasks of a job, and returns their tokens.
func (e *engine) of(job string, n int) (tokens []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for range n {
		l := lease(job, len(e.ready))
		e.ready, tokens = append(e.ready, l), append(tokens, l.Token)
	}
	return tokens
}

// TestABatchGoesOn: its workers run all tasks, however many notifications were lost. Once it has found more tasks than
// notifications, it has as many workers as it may, and calls for another batch if there is work for all of them.
func TestABatchGoesOn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ tasks, notices, workers, notified, seconds int }{
		{0, 10, 10, 0, 0},
		{7, 10, 10, 0, 1},
		{10, 10, 10, 0, 1},
		{1000, 10, 10, 1, 100},
		{1000, 10, 0, 1, 100},
		{100, 1, 0, 1, 100},
		{101, 1, 10, 1, 11},
		{5, 1, 10, 0, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, start := newEngine(), time.Now()
			e.of("/hasty", test.tasks)
			r, notifier := lasting(e, test.workers, map[string]time.Duration{"/hasty": time.Second})
			ran, err := r.RunBatch(timed(t, time.Hour), queue.Claimer{}, test.notices)
			if ran != test.tasks || err != nil || len(e.results) != test.tasks || notifier.notified != test.notified {
				t.Errorf("%+v: RunBatch = %d, %v, with %d tasks ended and %d notices", test, ran, err, len(e.results), notifier.notified)
			}
			if took := time.Since(start); took != time.Duration(test.seconds)*time.Second {
				t.Errorf("%+v: took %v", test, took)
			}
		})
	}
}

// TestEarlyNoticesOfABatch: each adds a worker from its time on, even if no task was found before.
func TestEarlyNoticesOfABatch(t *testing.T) {
	t.Parallel()
	for due := range 2 {
		synctest.Test(t, func(t *testing.T) {
			e, start := newEngine(), time.Now()
			r, notifier := lasting(e, 0, nil)
			time.AfterFunc(900*time.Millisecond, func() { e.of("/hasty", 2) })
			at := start.Add(time.Second)
			ran, err := r.RunBatch(timed(t, time.Hour), queue.Claimer{}, due, noticeAt(at), noticeAt(at), noticeAt(at.Add(time.Second/2)))
			if took := time.Since(start); ran != 2 || err != nil || notifier.notified != 0 || took < 1500*time.Millisecond {
				t.Errorf("RunBatch = %d, %v, after %v and %d notices, want 2 tasks, and no notices", ran, err, took, notifier.notified)
			}
			e.of("/hasty", 1)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second/2, cancel)
			if ran, err := r.RunBatch(ctx, queue.Claimer{}, 0, noticeAt(time.Now().Add(time.Second))); ran != 0 || err != nil || notifier.notified != 1 {
				t.Errorf("RunBatch = %d, %v, with %d notices, want none that ran, and a notice for whom there was no time", ran, err, notifier.notified)
			}
		})
	}
}

func noticeAt(at time.Time) notifier.Notice { return notifier.Notice{Queue: "main", At: at} }

// timed returns a context that ends after d.
func timed(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestABatchGoesOnWhileThereIsTime: as much as the next task's timeout, or half of the batch's time. A worker that leaves
// tasks calls for another.
func TestABatchGoesOnWhileThereIsTime(t *testing.T) {
	t.Parallel()
	for job, want := range map[string]int{ // tasks of 5 s, in a batch of 100 s less its margin of a second
		"/hasty":   16, // the last begins after 75 s, when 24 are left
		"/lengthy": 8,  // after 35 s
		"/endless": 10, // after 45 s
	} {
		synctest.Test(t, func(t *testing.T) {
			e := newEngine()
			e.of(job, 100)
			r, notifier := lasting(e, 0, map[string]time.Duration{job: 5 * time.Second})
			if ran, err := r.RunBatch(timed(t, 100*time.Second), queue.Claimer{}, 1); ran != want || err != nil || notifier.notified != 2 {
				t.Errorf("%s: RunBatch = %d, %v, and %d notices; want %d tasks and a notice when it goes on, and one when it ends",
					job, ran, err, notifier.notified, want)
			}
		})
	}
}

// TestABatchWithoutADeadlineGoesOnForAMinute: the sender of notifications to a plain host waits for its response.
func TestABatchWithoutADeadlineGoesOnForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.of("/endless", 100)
		r, notifier := lasting(e, 0, map[string]time.Duration{"/endless": 25 * time.Second})
		if ran, err := r.RunBatch(t.Context(), queue.Claimer{}, 2); ran != 6 || err != nil || notifier.notified != 3 {
			t.Errorf("RunBatch = %d, %v, and %d notices; want 6 tasks and 3 notices", ran, err, notifier.notified)
		}
	})
}

// TestABatchThatIsToStopClaimsNoMore: what it runs goes on, what a claim under way brings is run, and others are called for the rest.
func TestABatchThatIsToStopClaimsNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopping, stop := context.WithCancel(t.Context())
		e := newEngine()
		e.of("/endless", 100)
		r, notifier := lasting(e, 0, map[string]time.Duration{"/endless": 5 * time.Second}, stopping)
		time.AfterFunc(7*time.Second, stop)
		began := time.Now()
		ran, err := r.RunBatch(t.Context(), queue.Claimer{}, 2)
		if took := time.Since(began); ran != 4 || err != nil || notifier.notified != 3 || took != 10*time.Second {
			t.Errorf("RunBatch = %d, %v, after %v with %d notices; want 4 tasks, 10 s and 3 notices", ran, err, took, notifier.notified)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		stopping, stop := context.WithCancel(t.Context())
		e := newEngine()
		e.of("/hasty", 2)
		e.claim = func(int) error {
			stop()
			synctest.Wait()
			return nil
		}
		r, notifier := lasting(e, 0, map[string]time.Duration{"/hasty": time.Second}, stopping)
		ran, _ := r.RunBatch(t.Context(), queue.Claimer{}, 3)
		if ran != 2 || len(e.claims) != 1 {
			t.Errorf("%d tasks ran after %d claims, with %d notices; want 2 after 1", ran, len(e.claims), notifier.notified)
		}
		if ran, err := r.RunBatch(t.Context(), queue.Claimer{}, 1); ran != 0 || err == nil {
			t.Errorf("RunBatch = %d, %v, want an error, so that another is notified", ran, err)
		}
	})
}

// TestABatchGivesBackWhatItHasNoTimeFor: a task that it finds too late goes back without an attempt, for a worker with more time.
func TestABatchGivesBackWhatItHasNoTimeFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.of("/hasty", 9)
		next := e.of("/lengthy", 1)[0]
		r, notifier := lasting(e, 0, map[string]time.Duration{"/hasty": 5 * time.Second, "/lengthy": 50 * time.Second})
		if ran, err := r.RunBatch(timed(t, 100*time.Second), queue.Claimer{}, 1); ran != 9 || err != nil || notifier.notified != 2 {
			t.Errorf("RunBatch = %d, %v, with %d notices, want 9 tasks and 2 notices", ran, err, notifier.notified)
		}
		if got := e.results[next]; len(got) != 1 || got[0].Outcome != queue.Again {
			t.Errorf("results %+v, want one: %s", got, queue.Again)
		}
	})
}

// TestTheEndOfABatch: an attempt that had all of its time has failed; one that had less is not counted, and its task goes back.
func TestTheEndOfABatch(t *testing.T) {
	t.Parallel()
	for job, want := range map[string]queue.Outcome{"": queue.Failed, "/hasty": queue.Again} {
		synctest.Test(t, func(t *testing.T) {
			e := newEngine()
			if job != "" {
				e.of(job, 1)
			}
			token := e.of("/endless", 1)[0]
			r, _ := lasting(e, 0, map[string]time.Duration{"/hasty": time.Second, "/endless": time.Hour})
			if _, err := r.RunBatch(timed(t, 100*time.Second), queue.Claimer{}, 1); err != nil {
				t.Error(err)
			}
			if got := e.results[token]; len(got) != 1 || got[0].Outcome != want {
				t.Errorf("after %q: results %+v, want one: %s", job, got, want)
			}
		})
	}
}

// TestABatchThatCannotClaimEnds: it returns how many tasks it has run, and the error.
func TestABatchThatCannotClaimEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.of("/hasty", 100)
		r, notifier := lasting(e, 0, map[string]time.Duration{"/hasty": time.Second})
		notifier.err = errDisk // costs nothing but promptness
		e.claim = func(limit int) error {
			if limit < 25 {
				return journal.ErrUnavailable
			}
			return nil
		}
		if ran, err := r.RunBatch(timed(t, time.Hour), queue.Claimer{}, 30); ran != queue.MaxClaim || !errors.Is(err, journal.ErrUnavailable) {
			t.Errorf("RunBatch = %d, %v, want %d, %v", ran, err, queue.MaxClaim, journal.ErrUnavailable)
		}
		if ran, err := r.RunBatch(timed(t, 0), queue.Claimer{}, 1); ran != 0 || err == nil {
			t.Errorf("RunBatch without any time = %d, %v, want an error", ran, err)
		}
	})
}

// TestABatchLooksNoMoreWhenNothingIsLeft: its last workers make no claims.
func TestABatchLooksNoMoreWhenNothingIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.of("/hasty", 10)
		r, _ := lasting(e, 0, nil)
		if ran, err := r.RunBatch(timed(t, time.Hour), queue.Claimer{}, 10); ran != 10 || err != nil || len(e.claims) > 2 {
			t.Errorf("RunBatch = %d, %v with %d claims, want 10 tasks with 2 claims", ran, err, len(e.claims))
		}
	})
}

// TestAPanicOfTheEngineEndsAWorkerOnly: the other workers go on.
func TestAPanicOfTheEngineEndsAWorkerOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		tokens := e.of("/hasty", 10)
		e.complete = func(token string, _ queue.Result) error {
			if token == tokens[0] {
				panic("as told")
			}
			return nil
		}
		r, _ := lasting(e, 0, nil)
		if ran, err := r.RunBatch(timed(t, time.Hour), queue.Claimer{}, 2); ran < 8 || err != nil { // one may have been claimed with it
			t.Errorf("RunBatch = %d, %v, want 8 or 9", ran, err)
		}
	})
}
