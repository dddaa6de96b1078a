package exchanges_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// mostCalls is more than one exchange of these tests makes of the store.
const mostCalls = 200

// An exchange that is cut off at any of its calls of the store, and repeated, is made once: each result is taken, each task is started
// once, each line of a log is there once.
func TestAnExchangeThatIsCutOffIsMadeOnce(t *testing.T) {
	t.Parallel()
	for name, f := range fates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var over atomic.Int32 // ways of using a store in which an exchange makes fewer calls
			for n := 0; over.Load() < 2 && !t.Failed(); n++ {
				if n == mostCalls {
					t.Fatalf("an exchange makes more than %d calls", n)
				}
				over.Store(0)
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					bubble(t, func(t *testing.T, s store.Store) {
						if cutOff(t, s, f, n) {
							over.Add(1)
						}
					})
				})
			}
		})
	}
}

// An exchange whose results come too late, and that is cut off after it has claimed, tells all that it has claimed when it is repeated, and no more
// than it asks for.
func TestAnExchangeThatComesTooLateAndIsCutOff(t *testing.T) {
	t.Parallel()
	cutOffAtEachCall(t, lateCutOff)
}

// cutOffAtEachCall calls a test once for each fate of each call of a store that processes share, until it reports that it has made fewer.
func cutOffAtEachCall(t *testing.T, test func(t *testing.T, s store.Store, f fate, n int) (over bool)) {
	t.Helper()
	for name, f := range fates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := false
			for n := 0; !over && !t.Failed(); n++ {
				if n == mostCalls {
					t.Fatalf("more than %d calls", n)
				}
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { over = test(t, shared(t), f, n) })
				})
			}
		})
	}
}

// lateCutOff makes an exchange with a result that comes too late, whose n-th call of the store has a fate, and reports whether it makes fewer.
func lateCutOff(t *testing.T, s store.Store, f fate, n int) (over bool) {
	double := &doomed{Store: s, left: -1}
	victim := open(t, double)
	id := victim.register(t, 10)
	ids := victim.add(t, 3)
	r := exchanges.Request{Seq: 1, Max: 2, Results: ok("never"), Explain: explain}
	double.arm(f, n)
	response, err := victim.Exchange(t.Context(), id, r)
	other := victim
	if over = double.disarm(); double.dead {
		other = open(t, s)
	}
	again := other.must(t, id, r)
	if err == nil && !double.dead {
		compare(t, &response, &again)
	}
	if len(again.Claims) > r.Max {
		t.Errorf("%d claims, want %d at most", len(again.Claims), r.Max)
	}
	rest := tokensOf(again.Claims)
	for seq := int64(2); len(rest) > 0; seq++ {
		rest = tokensOf(other.must(t, id, exchanges.Request{Seq: seq, Max: 10, Results: ok(rest...)}).Claims)
	}
	finished(t, other, ids)
	return over
}

// cutOff makes an exchange whose n-th call of the store has a fate, and reports whether it makes fewer.
func cutOff(t *testing.T, s store.Store, f fate, n int) (over bool) {
	p := open(t, s)
	id := p.register(t, 10)
	ids := p.add(t, 3)
	first := tokensOf(p.must(t, id, exchanges.Request{Seq: 1, Max: 3}).Claims)
	ids = append(ids, p.add(t, 3)...)
	r := exchanges.Request{
		Seq: 2, Max: 2, Results: append(ok(first[:2]...), ok("never")...), Beats: []exchanges.Beat{{Token: first[2], Beat: line("once")}}, Explain: explain,
	}
	double := &doomed{Store: s, fate: f, left: n}
	victim := open(t, double)
	response, err := victim.Exchange(t.Context(), id, r)
	over = double.disarm()
	other := victim
	if double.dead {
		other = open(t, s)
	}
	again := other.must(t, id, r)
	if err == nil && !double.dead {
		compare(t, &response, &again)
	}
	third := other.must(t, id, exchanges.Request{Seq: 2})
	compare(t, &again, &third)
	if len(again.Results) != 3 || again.Results[0].State != "SUCCEEDED" || again.Results[1].State != "SUCCEEDED" || again.Results[2].Code != queue.ErrNoLease.Error() {
		t.Errorf("results = %+v", again.Results)
	}
	rest := append(tokensOf(again.Claims), first[2])
	for seq := int64(3); len(rest) > 0 && seq < 10; seq++ {
		got := other.must(t, id, exchanges.Request{Seq: seq, Max: 10, Results: ok(rest...)})
		if slices.ContainsFunc(got.Results, func(o exchanges.Outcome) bool { return o.State != "SUCCEEDED" }) || len(got.Stops) > 0 {
			t.Errorf("results = %+v, stops = %v", got.Results, got.Stops)
		}
		rest = tokensOf(got.Claims)
	}
	finished(t, other, ids)
	page, err := other.queue.Logs(t.Context(), ids[2], tasklog.Query{})
	if err != nil || len(page.Lines) != 1 {
		t.Errorf("log = %+v, %v, want one line", page.Lines, err)
	}
	return over
}

// compare compares a response with the first one.
func compare(t *testing.T, first, again *exchanges.Response) {
	t.Helper()
	if diff := cmp.Diff(tokensOf(first.Claims), tokensOf(again.Claims)); diff != "" {
		t.Errorf("claims again: %s", diff)
	}
	if diff := cmp.Diff(first.Results, again.Results); diff != "" {
		t.Errorf("results again: %s", diff)
	}
}

// finished checks that all tasks have succeeded in one attempt.
func finished(t *testing.T, p *process, ids []task.ID) {
	t.Helper()
	for i, id := range ids {
		if got, err := p.queue.Get(t.Context(), id); err != nil || got.State != task.Succeeded || got.Attempt != 1 {
			t.Errorf("task %d = %s in attempt %d, %v", i, got.State, got.Attempt, err)
		}
	}
}
