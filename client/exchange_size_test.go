package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/client"
)

// A worker outlives whatever its tasks return and tell: what is too large for a request fails by itself, and the rest goes in several.
func TestAWorkerOutlivesLargeResults(t *testing.T) {
	t.Parallel()
	large, escapes := strings.Repeat("x", 250<<10), strings.Repeat("\x1b", 40<<10)
	for name, c := range map[string]struct {
		task client.Function
		want string // how each result begins
		logs int
	}{
		"an output beyond all bounds": {func(context.Context, *client.Task) (any, error) { return strings.Repeat(large, 9), nil }, "failedthe output is too large", 0},
		"outputs as large as allowed": {func(context.Context, *client.Task) (any, error) { return large, nil }, "ok", 0},
		"errors that need escapes":    {func(context.Context, *client.Task) (any, error) { return nil, errors.New(escapes) }, "failed\x1b", 0},
		"lines that need escapes": {func(_ context.Context, t *client.Task) (any, error) {
			for range 7 {
				t.Log("info", escapes)
			}
			return large, nil
		}, "ok", 7},
		"a report beyond all bounds": {func(_ context.Context, t *client.Task) (any, error) {
			t.Report(client.Progress{Message: strings.Repeat(large, 9)})
			return nil, nil
		}, "ok", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &desk{tasks: 20}
				d.run(t, client.WorkerOptions{Capacity: 10, Jobs: map[string]client.Function{"/a": c.task}, OnError: func(error) {}})
				if len(d.results) != 20 {
					t.Errorf("%d results, want 20", len(d.results))
				}
				for token, all := range d.results {
					if len(all) != 1 || !strings.HasPrefix(all[0], c.want) || d.logs[token] != c.logs {
						t.Errorf("%s: %d results, the first %.40q, and %d lines", token, len(all), all[0], d.logs[token])
					}
				}
			})
		})
	}
}
