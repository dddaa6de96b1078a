package exchanges_test

import (
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// An exchange that waits tells at the timeout of a job that its task is to stop, once, and what is canceled then has failed.
func TestAnExchangeStopsAtTheTimeout(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s store.Store) {
		p := openWith(t, s, &definition.Set{Jobs: []definition.Job{{Path: "/topics/a", Timeout: 3 * time.Second}}})
		id := p.register(t, 2)
		ids := p.add(t, 1)
		tokens := tokensOf(p.must(t, id, exchanges.Request{Seq: 1, Max: 1}).Claims)
		began := time.Now()
		got := p.must(t, id, exchanges.Request{Seq: 2, Max: 1, Wait: 20 * time.Second})
		if took := time.Since(began); !slices.Equal(got.Stops, tokens) || took != 3*time.Second {
			t.Fatalf("stops = %v after %v, want %v after 3 s", got.Stops, took, tokens)
		}
		if got = p.must(t, id, exchanges.Request{Seq: 3, Max: 1, Wait: 6 * time.Second}); len(got.Stops) > 0 || time.Since(began) != 9*time.Second {
			t.Errorf("stops = %v after %v, want none in 9 s", got.Stops, time.Since(began))
		}
		p.must(t, id, exchanges.Request{Seq: 4, Results: []queue.Completion{{Token: tokens[0], Result: queue.Result{Outcome: queue.Cancel}}}})
		if got, err := p.queue.Get(t.Context(), ids[0]); err != nil || got.State != task.Failed || got.Message != "it took longer than the 3s allowed" {
			t.Errorf("Get = %s, %q, %v, want that it took too long", got.State, got.Message, err)
		}
	})
}
