package exchanges_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/store/memory"
)

// What was looked up before another exchange was made, here or elsewhere, does no harm: that exchange has been made, and is not made again.
func TestALookFromBeforeAnotherExchange(t *testing.T) {
	t.Parallel()
	for name, elsewhere := range map[string]bool{"here": false, "elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := memory.New(memory.Options{Shared: true})
			p := open(t, s)
			other := p
			if elsewhere {
				other = open(t, s)
			}
			id := p.register(t, 5)
			p.add(t, 2)
			first := p.must(t, id, exchanges.Request{Seq: 1, Max: 1})
			second := exchanges.Request{Seq: 2, Max: 1, Results: ok(tokensOf(first.Claims)...), Explain: explain}
			look, err := p.Look(t.Context(), id, &second)
			if err != nil {
				t.Fatal(err)
			}
			made := other.must(t, id, second)
			second.Look = &look
			again := p.must(t, id, second)
			if diff := cmp.Diff(tokensOf(made.Claims), tokensOf(again.Claims)); diff != "" || len(made.Claims) != 1 {
				t.Errorf("the repetition's claims differ (-first +again):\n%s", diff)
			}
			if diff := cmp.Diff(made.Results, again.Results); diff != "" {
				t.Errorf("its results differ (-first +again):\n%s", diff)
			}
			third := exchanges.Request{Seq: 3, Results: ok(tokensOf(made.Claims)...), Explain: explain, Look: &look}
			if got := p.must(t, id, third); len(got.Results) != 1 || got.Results[0].Code != "" {
				t.Errorf("the third = %+v", got)
			}
		})
	}
}
