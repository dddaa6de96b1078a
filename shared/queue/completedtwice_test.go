package queue_test

import (
	"errors"
	"testing"

	"github.com/millrace/millrace/shared/queue"
)

// TestASecondResultIsRefused: of any kind, whatever the first was; and it changes nothing.
func TestASecondResultIsRefused(t *testing.T) {
	t.Parallel()
	outcomes := []queue.Outcome{queue.OK, queue.Failed, queue.Cancel, queue.Again}
	for _, first := range outcomes {
		for _, second := range outcomes {
			b := setup(t)
			id := b.one(queue.New{Job: "/plain", Attempts: 3})
			l := b.claim(1)[0]
			b.complete(l, queue.Result{Outcome: first})
			before, _ := b.Get(t.Context(), id)
			if state, err := b.Complete(t.Context(), l.Token, queue.Result{Outcome: second}); !errors.Is(err, queue.ErrStale) {
				t.Errorf("%s after %s = %s, %v, want %v", second, first, state, err, queue.ErrStale)
			}
			if after, _ := b.Get(t.Context(), id); after.State != before.State || after.Attempt != before.Attempt {
				t.Errorf("%s after %s has changed the task from %+v to %+v", second, first, before, after)
			}
		}
	}
}
