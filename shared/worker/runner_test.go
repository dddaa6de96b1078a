package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/worker"
)

var errDisk = errors.New("the disk is full")

func TestFunctionResults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		output json.RawMessage
		err    error
		want   queue.Result
	}{
		"nothing":  {nil, nil, queue.Result{Outcome: queue.OK}},
		"output":   {[]byte(`{"a":1}`), nil, queue.Result{Outcome: queue.OK, Output: []byte(`{"a":1}`)}},
		"not JSON": {[]byte(`{"a":`), nil, queue.Result{Outcome: queue.Failed, Message: "the output of f is not JSON"}},
		"error":    {[]byte(`1`), errDisk, queue.Result{Outcome: queue.Thrown, Message: "the disk is full"}},
		"fail":     {nil, worker.Fail(errDisk, time.Minute), queue.Result{Outcome: queue.Failed, Message: "the disk is full", RetryDelay: time.Minute}},
		"reject":   {nil, worker.Reject(errDisk), queue.Result{Outcome: queue.Cancel, Message: "the disk is full"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngine()
			got := runFunction(t, e, 0, func(context.Context, *worker.Attempt, *worker.Log) (json.RawMessage, error) {
				return test.output, test.err
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			explained(t, e, lease("/job", 1).Token, got)
		})
	}
}

func TestVerdictKeepsItsError(t *testing.T) {
	t.Parallel()
	if !errors.Is(worker.Fail(errDisk, 0), errDisk) || !errors.Is(worker.Reject(errDisk), errDisk) {
		t.Error("the error within is not found")
	}
}

func TestPanicIsThrownWithItsStackInTheLog(t *testing.T) {
	t.Parallel()
	e := newEngine()
	got := runFunction(t, e, 0, func(context.Context, *worker.Attempt, *worker.Log) (json.RawMessage, error) { panic("no paper") })
	if diff := cmp.Diff(queue.Result{Outcome: queue.Thrown, Message: "panic: no paper"}, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	log := e.messages(lease("/job", 1).Token)
	if len(log) != 1 {
		t.Fatalf("log of %d lines, want 1", len(log))
	}
	contains(t, "the log", log[0], "error panic: no paper\n")
	contains(t, "the log", log[0], "runner_test.go")
}

func TestEndOfTheGoroutineIsThrown(t *testing.T) {
	t.Parallel()
	got := runFunction(t, newEngine(), 0, func(context.Context, *worker.Attempt, *worker.Log) (json.RawMessage, error) {
		runtime.Goexit()
		return nil, nil
	})
	if got.Outcome != queue.Thrown {
		t.Errorf("outcome %q, want %q", got.Outcome, queue.Thrown)
	}
}

func TestAttempt(t *testing.T) {
	t.Parallel()
	var got *worker.Attempt
	e := newEngine()
	r := worker.NewRunner(worker.Options{
		Engine: e, Definitions: declared(definition.Target{Go: "f"}, 0), URL: "https://example.com",
		Targets: worker.Targets{Go: worker.Functions{"f": func(_ context.Context, a *worker.Attempt, _ *worker.Log) (json.RawMessage, error) {
			got = a
			return nil, nil
		}}},
	})
	l := lease("/job", 1)
	only(t, e, r, l)
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"` + string(l.Task.ID) + `","token":"` + l.Token + `","job":"/job","attempt":1,"payload":{"n":1},` +
		`"created_at":"2026-01-02T03:04:05.678900Z","callback":"https://example.com/api/v1/leases/` + l.Token + `"}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestNothingToRunOn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		target definition.Target
		job    string
		want   queue.Result
	}{
		"no such job":      {definition.Target{Go: "f"}, "/other", queue.Result{Outcome: queue.Again, RetryDelay: time.Second, Message: "its job was changed while it was being started"}},
		"on an instance":   {definition.Target{Instances: true}, "/job", queue.Result{Outcome: queue.Again, RetryDelay: time.Second, Message: "its job was changed while it was being started"}},
		"no such function": {definition.Target{Go: "g"}, "/job", queue.Result{Outcome: queue.Failed, Message: "no Go function g is registered in this server"}},
		"no commands here": {definition.Target{Command: []string{"true"}}, "/job", queue.Result{Outcome: queue.Failed, Message: "this server cannot run a target of the kind command"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngine()
			r := worker.NewRunner(worker.Options{
				Engine: e, Definitions: declared(test.target, 0), Targets: worker.Targets{Go: worker.Functions{}},
			})
			l := lease(test.job, 1)
			if diff := cmp.Diff(test.want, only(t, e, r, l)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			explained(t, e, l.Token, test.want)
		})
	}
}

func untilEnd(ctx context.Context, _ *worker.Attempt, _ *worker.Log) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got := runFunction(t, newEngine(), time.Minute, untilEnd)
		want := queue.Result{Outcome: queue.Failed, Message: "it took longer than the 1m0s allowed: worker: the attempt takes too long"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("it took %v, want 1m", took)
		}
	})
}

func TestDeafFunctionIsLeftToItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, release := time.Now(), make(chan struct{})
		e := newEngine()
		got := runFunction(t, e, time.Minute, func(context.Context, *worker.Attempt, *worker.Log) (json.RawMessage, error) {
			<-release
			return nil, nil
		})
		close(release)
		want := queue.Result{Outcome: queue.Failed, Message: "it took longer than the 1m0s allowed: it did not end"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took != 70*time.Second {
			t.Errorf("it took %v, want the timeout and the grace", took)
		}
	})
}

func TestHeartbeatsAtAThird(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		runFunction(t, e, 95*time.Second, untilEnd)
		if n := e.beats[lease("/job", 1).Token]; n != 9 {
			t.Errorf("%d heartbeats in 95 s of a lease of 30 s, want 9", n)
		}
		time.Sleep(time.Minute) // of virtual time
		if n := e.beats[lease("/job", 1).Token]; n != 9 {
			t.Errorf("%d heartbeats after the end, want no more", n)
		}
	})
}

func TestStop(t *testing.T) {
	t.Parallel()
	token := lease("/job", 1).Token
	ways := map[string]func(*engine){
		"by a heartbeat":     func(e *engine) { e.stops[token] = true },
		"within the process": func(e *engine) { time.AfterFunc(time.Second, func() { e.stop(token) }) },
	}
	for name, ask := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := newEngine()
				ask(e)
				got := runFunction(t, e, 0, untilEnd)
				want := queue.Result{Outcome: queue.Cancel, Message: "stopped, as was asked for: worker: a stop was asked for"}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestSuccessStandsWhenAStopCame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.stops[lease("/job", 1).Token] = true
		got := runFunction(t, e, 0, func(ctx context.Context, _ *worker.Attempt, _ *worker.Log) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, nil
		})
		if got.Outcome != queue.OK {
			t.Errorf("outcome %q, want %q", got.Outcome, queue.OK)
		}
	})
}

// TestLostLease: the attempt's context ends, and nothing is completed under a token that is no longer valid.
func TestLostLease(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err     error
		hanging int
		expires time.Duration // from now, by the lease
		want    time.Duration
	}{
		"stale":       {queue.ErrStale, 0, 30 * time.Second, 10 * time.Second},
		"unavailable": {journal.ErrUnavailable, 0, 30 * time.Second, 30 * time.Second},
		"hanging":     {nil, 1000, 30 * time.Second, 30 * time.Second},
		"slow claim":  {nil, 1000, 23 * time.Second, 23 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, start := newEngine(), time.Now()
				e.heartbeat, e.hanging = func(string) error { return test.err }, test.hanging
				e.complete = func(string, queue.Result) error { return test.err }
				var cause error
				var over time.Duration
				r := worker.NewRunner(worker.Options{
					Engine: e, Definitions: declared(definition.Target{Go: "f"}, 0),
					Targets: worker.Targets{Go: worker.Functions{"f": func(ctx context.Context, _ *worker.Attempt, _ *worker.Log) (json.RawMessage, error) {
						<-ctx.Done()
						cause, over = context.Cause(ctx), time.Since(start)
						return nil, nil
					}}},
				})
				l := lease("/job", 1)
				l.Expires = start.Add(test.expires)
				r.Run(t.Context(), l)
				if !errors.Is(cause, worker.ErrLost) {
					t.Errorf("cause %v, want %v", cause, worker.ErrLost)
				}
				if over != test.want || time.Since(start) != test.want {
					t.Errorf("the context ended after %v and all after %v, want %v", over, time.Since(start), test.want)
				}
			})
		})
	}
}

// TestAHeartbeatThatHangsLosesNoLease: it is given up after a third of the lease.
func TestAHeartbeatThatHangsLosesNoLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.hanging = 1
		got := runFunction(t, e, 0, func(ctx context.Context, _ *worker.Attempt, _ *worker.Log) (json.RawMessage, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			return nil, context.Cause(ctx)
		})
		if got.Outcome != queue.OK {
			t.Errorf("outcome %q, want %q", got.Outcome, queue.OK)
		}
	})
}

func TestCompletionIsRepeatedWhileTheLeaseMayLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, start, tries := newEngine(), time.Now(), 0
		e.complete = func(string, queue.Result) error {
			if tries++; time.Since(start) < 20*time.Second {
				return journal.ErrUnavailable
			}
			return nil
		}
		got := runFunction(t, e, 0, func(context.Context, *worker.Attempt, *worker.Log) (json.RawMessage, error) { return nil, nil })
		if got.Outcome != queue.OK {
			t.Errorf("outcome %q, want %q", got.Outcome, queue.OK)
		}
		if tries > 40 {
			t.Errorf("%d tries, want them to get rarer", tries)
		}
	})
}

func TestCompletionIsGivenUpWithTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, start := newEngine(), time.Now()
		e.complete = func(string, queue.Result) error { return journal.ErrUnavailable }
		r := worker.NewRunner(worker.Options{
			Engine: e, Definitions: declared(definition.Target{Go: "f"}, 0),
			Targets: worker.Targets{Go: worker.Functions{"f": func(context.Context, *worker.Attempt, *worker.Log) (json.RawMessage, error) { return nil, nil }}},
		})
		r.Run(t.Context(), lease("/job", 1))
		if took := time.Since(start); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("it took %v, want the lease's 30 s", took)
		}
	})
}

func TestResultThatTheEngineRefusesIsAFailure(t *testing.T) {
	t.Parallel()
	e := newEngine()
	e.complete = func(_ string, r queue.Result) error {
		if len(r.Output) > 0 {
			return queue.ErrInvalid
		}
		return nil
	}
	got := runFunction(t, e, 0, func(context.Context, *worker.Attempt, *worker.Log) (json.RawMessage, error) {
		return json.RawMessage(`1`), nil
	})
	if got.Outcome != queue.Failed {
		t.Errorf("outcome %q, want %q", got.Outcome, queue.Failed)
	}
	contains(t, "the message", got.Message, "the result is not valid")
}

func TestEndOfTheWorker(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		want queue.Outcome
	}{
		"shut down": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, end := context.WithCancel(ctx)
			end()
			return ctx, end
		}, queue.Again},
		"out of time": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Minute)
		}, queue.Failed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e, l := newEngine(), lease("/job", 1)
				r := worker.NewRunner(worker.Options{
					Engine: e, Definitions: declared(definition.Target{Go: "f"}, 0),
					Targets: worker.Targets{Go: worker.Functions{"f": untilEnd}},
				})
				ctx, end := test.ctx(t.Context())
				defer end()
				r.Run(ctx, l)
				if got := e.results[l.Token]; len(got) != 1 || got[0].Outcome != test.want {
					t.Errorf("results %+v, want one: %s", got, test.want)
				}
			})
		})
	}
}
