package queue_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue"
)

// TestNesting: a payload and an output have at most 100 levels; a request with a deeper one changes nothing.
func TestNesting(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, b *bench) {
		nested := func(depth int) []byte { return []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth)) }
		_, err := b.Enqueue(t.Context(), nil, queue.New{Job: "/plain", Payload: nested(event.MaxDepth + 1)})
		if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "payload is nested 101 levels deep") {
			t.Errorf("Enqueue(too deep) = %v, want ErrInvalid", err)
		}
		b.enqueue(queue.New{Job: "/plain", Payload: nested(event.MaxDepth)})
		l := b.claim(2)
		if len(l) != 1 {
			t.Fatalf("%d tasks were started, want the one that is not too deep", len(l))
		}
		_, err = b.Complete(t.Context(), l[0].Token, queue.Result{Outcome: queue.OK, Output: nested(event.MaxDepth + 1)})
		if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "output is nested 101 levels deep") {
			t.Errorf("Complete(too deep) = %v, want ErrInvalid", err)
		}
		if _, err := b.Complete(t.Context(), l[0].Token, queue.Result{Outcome: queue.OK, Output: nested(event.MaxDepth)}); err != nil {
			t.Errorf("Complete = %v", err)
		}
	})
}
