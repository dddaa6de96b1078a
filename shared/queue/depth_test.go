package queue_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
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

// A payload is what encoding/json takes, in UTF-8.
func TestPayloadIsJSON(t *testing.T) {
	t.Parallel()
	b := over(t, memory.New(memory.Options{}))
	for _, payload := range []string{
		`{}`, ` {"a" : [1, 2.5e-3, true, null]} `, `{"a":1,"a":2}`, `"\ud800"`, `"\u0000"`, "\"\u2028\"", `0`, `-0`, `1E5`,
		`{`, `{}{}`, `{"a":1,}`, `[1,]`, `01`, `+1`, `.5`, `nul`, `NaN`, `'a'`, `"\x"`, "\"\x01\"", "\"\xff\"", "\"\xed\xa0\x80\"", " ", "\ufeff{}", "{}\x00",
	} {
		_, err := b.Enqueue(t.Context(), nil, queue.New{Job: "/a", Payload: []byte(payload)})
		if want := utf8.ValidString(payload) && json.Valid([]byte(payload)); want != (err == nil) || err != nil && !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("Enqueue(%q) = %v, want it to be taken: %t", payload, err, want)
		}
	}
}
