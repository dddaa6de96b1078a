package queue_test

import (
	"errors"
	"testing"

	"github.com/millrace/millrace/shared/queue"
)

// A worker whose response was lost sends its result again and sees that it counted; another result, or one of an attempt that ended
// otherwise, is refused as before, and nothing changes.
func TestARepeatedCompletionIsSeenToHaveCounted(t *testing.T) {
	t.Parallel()
	ok := queue.Result{Outcome: queue.OK, Message: "done", Output: []byte(`{"a": 1}`)}
	failed := queue.Result{Outcome: queue.Failed, Message: "broken", Code: 1}
	for name, test := range map[string]struct {
		first queue.Result
		other queue.Result // refused after first
	}{
		"ok":     {ok, queue.Result{Outcome: queue.OK, Message: "done", Output: []byte(`{"a": 2}`)}},
		"failed": {failed, ok},
		"cancel": {queue.Result{Outcome: queue.Cancel, Message: "no"}, queue.Result{Outcome: queue.Failed, Message: "no"}},
		"again":  {queue.Result{Outcome: queue.Again}, queue.Result{Outcome: queue.Failed}},
	} {
		for _, attempts := range []int{1, 3} {
			b := setup(t)
			id := b.one(queue.New{Job: "/plain", Attempts: attempts})
			l := b.claim(1)[0]
			want, err := b.Complete(t.Context(), l.Token, test.first)
			if err != nil {
				t.Fatal(err)
			}
			before, _ := b.Get(t.Context(), id)
			for range 2 {
				if got, err := b.Complete(t.Context(), l.Token, test.first); err != nil || got != want {
					t.Errorf("%s: repeated = %s, %v, want %s", name, got, err, want)
				}
			}
			if got, err := b.Complete(t.Context(), l.Token, test.other); !errors.Is(err, queue.ErrStale) {
				t.Errorf("%s: another result = %s, %v, want %v", name, got, err, queue.ErrStale)
			}
			if after, _ := b.Get(t.Context(), id); after.State != before.State || after.Attempt != before.Attempt || after.Message != before.Message {
				t.Errorf("%s: the task has changed from %+v to %+v", name, before, after)
			}
			if want.Queued() {
				b.claim(1) // from now on another attempt's result counts
				if _, err := b.Complete(t.Context(), l.Token, test.first); !errors.Is(err, queue.ErrStale) && !errors.Is(err, queue.ErrNoLease) {
					t.Errorf("%s: repeated while the next attempt runs = %v, want %v", name, err, queue.ErrStale)
				}
			}
		}
	}
}

// A lease that ran out was ended by nobody's result.
func TestAResultAfterTheLeaseIsNoRepetition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.one(queue.New{Job: "/plain", Attempts: 1})
	l := b.claim(1)[0]
	b.clock.t = b.clock.t.Add(2 * l.Length)
	if _, err := b.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, outcome := range []queue.Outcome{queue.OK, queue.Failed, queue.Cancel, queue.Again} {
		if _, err := b.Complete(t.Context(), l.Token, queue.Result{Outcome: outcome}); !errors.Is(err, queue.ErrStale) {
			t.Errorf("%s after the lease = %v, want %v", outcome, err, queue.ErrStale)
		}
	}
}
