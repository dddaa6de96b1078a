package exchanges_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
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

// An exchange that was held up after its look goes by what was done meanwhile: a job that was paused is not started, and the most urgent task
// is.
func TestALookFromLongBefore(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*testing.T, *process) (want int64){
		"a pause": func(t *testing.T, other *process) int64 {
			if err := other.queue.SetRule(t.Context(), "/topics/a", rule.Pause, true); err != nil {
				t.Fatal(err)
			}
			return -1
		},
		"an urgent task": func(t *testing.T, other *process) int64 {
			if _, err := other.queue.Enqueue(t.Context(), nil, queue.New{Job: "/topics/a", Priority: 9}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(rule.Settling) // of virtual time
			return 9
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := memory.New(memory.Options{Shared: true})
				p, other := open(t, s), open(t, s)
				id := p.register(t, 1)
				p.add(t, 3)
				tokens := tokensOf(p.must(t, id, exchanges.Request{Seq: 1, Max: 1}).Claims)
				tokens = tokensOf(p.must(t, id, exchanges.Request{Seq: 2, Max: 1, Results: ok(tokens...)}).Claims)
				next := exchanges.Request{Seq: 3, Max: 1, Results: ok(tokens...)}
				look, err := p.Look(t.Context(), id, &next)
				if err != nil {
					t.Fatal(err)
				}
				defer look.End()
				synctest.Wait()
				want := meanwhile(t, other)
				next.Look = &look
				got := int64(-1)
				for _, l := range p.must(t, id, next).Claims {
					got = l.Task.Priority
				}
				if got != want {
					t.Errorf("the priority of what is started is %d, want %d (-1: nothing)", got, want)
				}
			})
		})
	}
}
