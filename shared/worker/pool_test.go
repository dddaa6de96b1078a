package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/worker"
)

// add puts n tasks there and returns their tokens.
func (e *engine) add(n int) (tokens []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for range n {
		l := lease("/job", len(e.ready)+len(e.results)+1)
		e.ready = append(e.ready, l)
		tokens = append(tokens, l.Token)
	}
	return tokens
}

// count returns how many tasks have ended.
func (e *engine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.results)
}

func runner(e *engine, f worker.Function) *worker.Runner {
	return worker.NewRunner(worker.Options{
		Engine: e, Definitions: declared(definition.Target{Go: "f"}, 0), Targets: worker.Targets{Go: worker.Functions{"f": f}},
	})
}

func nothing(context.Context, *worker.Attempt, *worker.Log) (json.RawMessage, error) { return nil, nil }

// start runs a pool until stop, which returns Run's error.
func start(t *testing.T, p *worker.Pool) (stop func() error) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	return func() error {
		end()
		return <-ran
	}
}

func TestPoolRunsEveryTaskOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, notice := newEngine(), make(notices, 10)
		want := e.add(500)
		stop := start(t, worker.NewPool(worker.PoolOptions{Runner: runner(e, nothing), Notifier: notice}))
		synctest.Wait()
		want = append(want, e.add(500)...) // no worker looks before a notification
		if len(e.results) != 500 {
			t.Fatalf("%d tasks have ended, want 500", len(e.results))
		}
		notice <- notifier.Notice{}
		synctest.Wait()
		for _, token := range want {
			if n := len(e.results[token]); n != 1 {
				t.Errorf("a task ended %d times, want once", n)
			}
		}
		if err := stop(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
}

// A notification that comes early is kept until its time, and does not delay one for now.
func TestPoolKeepsEarlyNotices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, notice := newEngine(), make(notices, 10)
		stop := start(t, worker.NewPool(worker.PoolOptions{Runner: runner(e, nothing), Notifier: notice}))
		synctest.Wait()
		notice <- notifier.Notice{At: time.Now().Add(700 * time.Millisecond)}
		synctest.Wait()
		e.add(1)
		notice <- notifier.Notice{}
		synctest.Wait()
		if n := e.count(); n != 1 {
			t.Errorf("%d tasks have ended by the notice for now, want 1", n)
		}
		e.add(1)
		time.Sleep(699 * time.Millisecond)
		synctest.Wait()
		if n := e.count(); n != 1 {
			t.Errorf("%d tasks have ended before the time of the early notice, want 1", n)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if n := e.count(); n != 2 {
			t.Errorf("%d tasks have ended at the time of the early notice, want 2", n)
		}
		notice <- notifier.Notice{At: time.Now().Add(time.Hour)} // clocks that differ, or a longer delay than the notifier has
		e.add(1)
		synctest.Wait()
		if n := e.count(); n != 3 {
			t.Errorf("%d tasks have ended by a notice for an hour later, want 3: it is as one for now", n)
		}
		if err := stop(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})
}

func TestPoolKeepsToItsWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, running, most := newEngine(), make(chan struct{}, 100), 0
		e.add(20)
		stop := start(t, worker.NewPool(worker.PoolOptions{Workers: 3, Notifier: make(notices), Runner: runner(e, func(context.Context, *worker.Attempt, *worker.Log) (json.RawMessage, error) {
			running <- struct{}{}
			time.Sleep(time.Second) // of virtual time
			<-running
			return nil, nil
		})}))
		for range 8 {
			synctest.Wait()
			most = max(most, len(running))
			time.Sleep(time.Second)
		}
		if most != 3 || len(e.results) != 20 {
			t.Errorf("%d ran at once, %d ended; want 3 and 20", most, len(e.results))
		}
		if diff := cmp.Diff(3, e.claims[0]); diff != "" {
			t.Errorf("asked for at first (-want +got):\n%s", diff)
		}
		_ = stop()
	})
}

func TestPoolDrains(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		takes time.Duration // how long the task would run
		want  queue.Outcome
		after time.Duration
	}{
		"within the grace": {10 * time.Second, queue.OK, 10 * time.Second},
		"too slowly":       {time.Hour, queue.Again, 20 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := newEngine()
				tokens := e.add(2)
				stop := start(t, worker.NewPool(worker.PoolOptions{Workers: 1, Notifier: make(notices), Runner: runner(e, func(ctx context.Context, _ *worker.Attempt, _ *worker.Log) (json.RawMessage, error) {
					select {
					case <-time.After(test.takes):
						return nil, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				})}))
				synctest.Wait()
				began := time.Now()
				if err := stop(); err != nil {
					t.Errorf("Run = %v, want nil", err)
				}
				if took := time.Since(began); took != test.after {
					t.Errorf("it took %v, want %v", took, test.after)
				}
				if got := e.results[tokens[0]]; len(got) != 1 || got[0].Outcome != test.want {
					t.Errorf("results %+v, want one: %s", got, test.want)
				}
				if len(e.results[tokens[1]]) != 0 || len(e.ready) != 1 {
					t.Error("a task was started while the pool ended")
				}
			})
		})
	}
}

// TestPoolDrainsInTime: an attempt that does not end is abandoned when the time for that is over, and its task goes back.
func TestPoolDrainsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		token := e.add(1)[0]
		deaf := make(chan struct{})
		r := worker.NewRunner(worker.Options{
			Engine: e, Definitions: declared(definition.Target{Go: "f"}, 0), LastGrace: 3 * time.Second,
			Targets: worker.Targets{Go: worker.Functions{"f": func(context.Context, *worker.Attempt, *worker.Log) (json.RawMessage, error) {
				<-deaf
				return nil, nil
			}}},
		})
		stop := start(t, worker.NewPool(worker.PoolOptions{Workers: 1, Notifier: make(notices), Runner: r, Grace: 2 * time.Second}))
		synctest.Wait()
		began := time.Now()
		if err := stop(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it took %v, want 5s", took)
		}
		if got := e.results[token]; len(got) != 1 || got[0].Outcome != queue.Again {
			t.Errorf("results %+v, want that it is given back", got)
		}
		close(deaf)
	})
}

func TestPoolOutlivesAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, began := newEngine(), time.Now()
		e.claim = func(int) error {
			if time.Since(began) < time.Minute {
				return journal.ErrUnavailable
			}
			return nil
		}
		e.add(1)
		stop := start(t, worker.NewPool(worker.PoolOptions{Notifier: make(notices), Runner: runner(e, nothing)}))
		<-e.ended
		if took := time.Since(began); took > 66*time.Second || len(e.claims) > 30 {
			t.Errorf("found after %v and %d claims", took, len(e.claims))
		}
		_ = stop()
	})
}

func TestPoolEndsWithItsNotifier(t *testing.T) {
	t.Parallel()
	notice := make(notices)
	close(notice)
	p := worker.NewPool(worker.PoolOptions{Notifier: notice, Runner: runner(newEngine(), nothing)})
	if err := p.Run(t.Context()); !errors.Is(err, notifier.ErrClosed) {
		t.Errorf("Run = %v, want %v", err, notifier.ErrClosed)
	}
}

// deaf is a notifier that cannot be reached.
type deaf struct{ asked int }

func (d *deaf) Receive(context.Context, int) ([]notifier.Notice, error) {
	d.asked++
	return nil, notifier.ErrUnavailable
}

func TestPoolLooksNowAndThenWhenTheNotifierIsNotHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, d := newEngine(), &deaf{}
		stop := start(t, worker.NewPool(worker.PoolOptions{Notifier: d, Runner: runner(e, nothing)}))
		time.Sleep(time.Minute) // of virtual time
		e.add(1)
		<-e.ended
		_ = stop()
		if d.asked > 30 {
			t.Errorf("the notifier was asked %d times in a minute", d.asked)
		}
	})
}

// heap is a notifier at which any number of notifications wait.
type heap struct{ left, asked int }

func (h *heap) Receive(ctx context.Context, limit int) ([]notifier.Notice, error) {
	if h.left == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	h.asked++
	n := min(limit, h.left)
	h.left -= n
	return make([]notifier.Notice, n), nil
}

// TestPoolPassesOverOldNotices: notifications of tasks that were claimed without them cost few claims.
func TestPoolPassesOverOldNotices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, h := newEngine(), &heap{left: 1_000_000}
		stop := start(t, worker.NewPool(worker.PoolOptions{Notifier: h, Runner: runner(e, nothing)}))
		synctest.Wait()
		if h.left > 0 || len(e.claims) > 40 {
			t.Errorf("%d claims for a million notices, %d left", len(e.claims), h.left)
		}
		_ = stop()
	})
}

func TestRunBatch(t *testing.T) {
	t.Parallel()
	e := newEngine()
	e.add(50)
	r := runner(e, nothing)
	for _, want := range []int{50, 0} {
		if ran, err := r.RunBatch(t.Context(), queue.Claimer{}, 40); ran != want || err != nil {
			t.Errorf("RunBatch = %d, %v; want %d, nil", ran, err, want)
		}
	}
	if len(e.results) != 50 {
		t.Errorf("%d tasks have ended, want 50", len(e.results))
	}
	e.claim = func(int) error { return journal.ErrUnavailable }
	if _, err := r.RunBatch(t.Context(), queue.Claimer{}, 40); !errors.Is(err, journal.ErrUnavailable) {
		t.Errorf("RunBatch = %v, want %v", err, journal.ErrUnavailable)
	}
}

// BenchmarkPool is what the pool itself costs for each task.
func BenchmarkPool(b *testing.B) {
	e := newEngine()
	e.ended = make(chan string, b.N)
	e.add(b.N)
	ctx, end := context.WithCancel(b.Context())
	e.complete = func(string, queue.Result) error { return nil }
	p := worker.NewPool(worker.PoolOptions{Notifier: make(notices), Runner: runner(e, nothing)})
	b.ReportAllocs()
	b.ResetTimer()
	ran := make(chan error)
	go func() { ran <- p.Run(ctx) }()
	for range b.N {
		<-e.ended
	}
	end()
	if err := <-ran; err != nil {
		b.Fatal(err)
	}
}

// TestPoolKeepsWhatWasClaimedWithACompletionThatFailed: no task is lost if the completion must be repeated.
func TestPoolKeepsWhatWasClaimedWithACompletionThatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, tries := newEngine(), map[string]int{}
		e.complete = func(token string, _ queue.Result) error {
			if tries[token]++; tries[token] < 3 {
				return journal.ErrUnavailable
			}
			return nil
		}
		tokens := e.add(10)
		stop := start(t, worker.NewPool(worker.PoolOptions{Workers: 1, Notifier: make(notices), Runner: runner(e, nothing)}))
		time.Sleep(time.Minute) // of virtual time
		synctest.Wait()
		for _, token := range tokens {
			if n := len(e.results[token]); n != 1 {
				t.Errorf("a task ended %d times, want once", n)
			}
		}
		_ = stop()
	})
}
