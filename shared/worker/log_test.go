package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/worker"
)

// write runs a function that writes to its log, and returns the log.
func write(t *testing.T, e *engine, f func(*worker.Log)) []string {
	t.Helper()
	runFunction(t, e, 0, func(_ context.Context, _ *worker.Attempt, log *worker.Log) (json.RawMessage, error) {
		f(log)
		return nil, nil
	})
	return e.messages(lease("/job", 1).Token)
}

func TestLogIsThereBeforeTheEndIsTold(t *testing.T) {
	t.Parallel()
	e := newEngine()
	var then []string
	e.complete = func(token string, _ queue.Result) error {
		then = e.messages(token)
		return nil
	}
	write(t, e, func(log *worker.Log) {
		log.Info("%d lines", 2)
		log.Error("no %s", "paper")
	})
	if diff := cmp.Diff([]string{"info 2 lines", "error no paper"}, then); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestLogLineWaitsForHalfASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		token := lease("/job", 1).Token
		write(t, e, func(log *worker.Log) {
			for i := range 3 {
				time.Sleep(10 * time.Second) // of virtual time
				log.Info("one")
				time.Sleep(499 * time.Millisecond)
				log.Info("two")
				if n := len(e.messages(token)); n != 2*i {
					t.Errorf("%d lines were handed over before their time, want %d", n, 2*i)
				}
				time.Sleep(2 * time.Millisecond)
				if n := len(e.messages(token)); n != 2*i+2 {
					t.Errorf("%d lines were handed over half a second later, want %d", n, 2*i+2)
				}
			}
		})
		if e.chunks[token] != 3 {
			t.Errorf("%d chunks, want 3", e.chunks[token])
		}
	})
}

func TestLogIsCompleteWhileTheStoreIsSlowOrAway(t *testing.T) {
	t.Parallel()
	const lines = 50_000
	synctest.Test(t, func(t *testing.T) {
		e, calls := newEngine(), 0
		e.appendLog = func(string, []tasklog.Line) error {
			time.Sleep(20 * time.Millisecond) // of virtual time
			if calls++; calls%3 == 0 {
				return journal.ErrUnavailable
			}
			return nil
		}
		log := write(t, e, func(log *worker.Log) {
			var writers sync.WaitGroup
			for _, level := range []string{"info", "error"} {
				writers.Go(func() {
					for i := range lines / 2 {
						log.Line(level, fmt.Sprintf("line %d of a log that must be complete", i))
					}
				})
			}
			writers.Wait()
		})
		next := map[string]int{}
		for _, line := range log {
			level, message, _ := strings.Cut(line, " ")
			if want := fmt.Sprintf("line %d of a log that must be complete", next[level]); message != want {
				t.Fatalf("%q, want %q", message, want)
			}
			next[level]++
		}
		if diff := cmp.Diff(map[string]int{"info": lines / 2, "error": lines / 2}, next); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
		if n := e.chunks[lease("/job", 1).Token]; n > 150 {
			t.Errorf("%d chunks, want less than 150", n)
		}
	})
}

func TestLogCap(t *testing.T) {
	t.Parallel()
	e, l := newEngine(), lease("/job", 1)
	r := worker.NewRunner(worker.Options{
		Engine: e, Definitions: declared(definition.Target{Go: "f"}, 0), MaxLog: 1040,
		Targets: worker.Targets{Go: worker.Functions{"f": func(_ context.Context, _ *worker.Attempt, log *worker.Log) (json.RawMessage, error) {
			for range 100 {
				log.Info("0123456789")
			}
			log.Info("") // would fit, and would hide that something is missing before it
			return nil, nil
		}}},
	})
	only(t, e, r, l)
	want := append(slices.Repeat([]string{"info 0123456789"}, 20), "warn the log is full: 81 more lines of 800 bytes were left out")
	if diff := cmp.Diff(want, e.messages(l.Token)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestLogOfALostLeaseDoesNotBlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.appendLog = func(string, []tasklog.Line) error { return queue.ErrStale }
		log := write(t, e, func(log *worker.Log) {
			for range 1000 {
				log.Info("%s", strings.Repeat("x", 1000))
			}
		})
		if len(log) != 0 {
			t.Errorf("%d lines were taken under a stale lease", len(log))
		}
	})
}

func TestLogLineThatIsTooLong(t *testing.T) {
	t.Parallel()
	const mark = "… (cut: the line is longer than 32 KiB)"
	for _, test := range []struct{ line, want string }{
		{strings.Repeat("x", 32<<10), strings.Repeat("x", 32<<10)},
		{strings.Repeat("x", 32<<10+1), strings.Repeat("x", 32<<10) + mark},
		{"x" + strings.Repeat("é", 16<<10), "x" + strings.Repeat("é", 16<<10-1) + mark},
		{"a\xffb", "a\uFFFDb"},
	} {
		if got := write(t, newEngine(), func(log *worker.Log) { log.Line("debug", test.line) }); len(got) != 1 || got[0] != "debug "+test.want {
			t.Errorf("a line of %d bytes became one of %d, want %d", len(test.line), len(got[0])-6, len(test.want))
		}
	}
}
