package exchanges_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/task"
)

// lulled has an instance tell the end of a task, by its second exchange, when there is no other.
func (p *process) lulled(t *testing.T, id string) {
	t.Helper()
	p.add(t, 1)
	first := p.must(t, id, exchanges.Request{Seq: 1, Max: 5})
	p.must(t, id, exchanges.Request{Seq: 2, Max: 5, Results: ok(tokensOf(first.Claims)...)})
}

// third makes the third exchange of an instance, which waits.
func (p *process) third(ctx context.Context, t *testing.T, id string) <-chan outcome {
	t.Helper()
	done := p.looks(ctx, id, exchanges.Request{Seq: 3, Max: 5, Wait: 3 * time.Second})
	synctest.Wait()
	return done
}

// looks makes an exchange as a server does, which looks at the instance first.
func (p *process) looks(ctx context.Context, id string, r exchanges.Request) <-chan outcome {
	done := make(chan outcome, 1)
	began := time.Now()
	r.Explain = explain
	go func() {
		look, err := p.Look(ctx, id, &r)
		defer look.End()
		if err != nil {
			done <- outcome{err: err}
			return
		}
		r.Look = &look
		got, err := p.Exchange(ctx, id, r)
		done <- outcome{got, err, time.Since(began)}
	}()
	return done
}

// An exchange that follows the end of a task at once gets the next one by the write that adds it, and neither reads nor writes itself.
func TestATaskRightAfterTheEndOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := meter.New(shared(t))
		p := open(t, s)
		id := p.register(t, 5)
		p.lulled(t, id)
		s.Reset()
		waits := p.third(t.Context(), t, id)
		time.Sleep(3 * time.Millisecond) // of virtual time
		if n := s.Usage().Total().Calls; n != 0 {
			t.Errorf("an exchange that waits made %d calls of the store", n)
		}
		ids := p.add(t, 1)
		got := <-waits
		if got.err != nil || len(got.Claims) != 1 || got.took != 3*time.Millisecond {
			t.Fatalf("exchange = %+v, want the task at once", got)
		}
		if again := p.must(t, id, exchanges.Request{Seq: 3}); len(again.Claims) != 1 || again.Claims[0].Token != got.Claims[0].Token {
			t.Errorf("repeated, the exchange returns %+v", again)
		}
		p.must(t, id, exchanges.Request{Seq: 4, Results: ok(tokensOf(got.Claims)...)})
		finished(t, p, ids)
	})
}

// What happens elsewhere while an exchange waits for a moment before it does anything is known right after that.
func TestWhatHappensElsewhereRightAfterTheEndOfATask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens func(t *testing.T, there *process, id string)
		right   func(outcome) bool
	}{
		"a task": {
			func(t *testing.T, there *process, _ string) { there.add(t, 1) },
			func(o outcome) bool { return o.err == nil && len(o.Claims) == 1 && o.took < 20*time.Millisecond },
		},
		"it drains": {
			func(t *testing.T, there *process, id string) { check(t, there.members.Drain(t.Context(), id)) },
			func(o outcome) bool { return o.err == nil && o.Draining && len(o.Claims) == 0 },
		},
		"it goes on there": {
			func(t *testing.T, there *process, id string) { there.must(t, id, exchanges.Request{Seq: 4}) },
			func(o outcome) bool { return errors.Is(o.err, exchanges.ErrOld) && o.took < 20*time.Millisecond },
		},
		"it leaves": {
			func(t *testing.T, there *process, id string) { check(t, there.members.Leave(t.Context(), id)) },
			func(o outcome) bool {
				return errors.Is(o.err, membership.ErrNoInstance) && o.took < 20*time.Millisecond
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := shared(t)
				here, there := open(t, s), open(t, s)
				id := here.register(t, 5)
				here.lulled(t, id)
				waits := here.third(t.Context(), t, id)
				c.happens(t, there, id)
				if got := <-waits; !c.right(got) {
					t.Errorf("exchange = %+v", got)
				}
			})
		})
	}
}

// An instance that is drained in the same process while it tells the end of a task gets no other.
func TestAnInstanceIsDrainedAtTheEndOfATask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := open(t, shared(t))
		id := p.register(t, 5)
		p.add(t, 1)
		first := p.must(t, id, exchanges.Request{Seq: 1, Max: 5})
		ask := exchanges.Request{Seq: 2, Max: 5, Results: ok(tokensOf(first.Claims)...), Explain: explain}
		look, err := p.Look(t.Context(), id, &ask)
		check(t, err)
		defer look.End()
		i, err := p.members.Get(t.Context(), id)
		check(t, err)
		check(t, p.members.Drain(t.Context(), id))
		p.queue.Rouse(i.Claimer()) // as the API does
		ask.Look = &look
		_, err = p.Exchange(t.Context(), id, ask)
		check(t, err)
		waits := p.third(t.Context(), t, id)
		p.add(t, 1)
		if got := <-waits; got.err != nil || len(got.Claims) > 0 || !got.Draining {
			t.Errorf("exchange = %+v, want no task for an instance that was drained", got)
		}
	})
}

// A task that is added while the instance goes on elsewhere is not started for the exchange that waits here.
func TestATaskForOneThatGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shared(t)
		here, there := open(t, s), open(t, s)
		id := here.register(t, 5)
		here.lulled(t, id)
		waits := here.third(t.Context(), t, id)
		there.must(t, id, exchanges.Request{Seq: 4})
		ids := here.add(t, 1)
		if got := <-waits; !errors.Is(got.err, exchanges.ErrOld) || len(got.Claims) > 0 {
			t.Errorf("exchange = %+v, want that there is a later one", got)
		}
		next := there.must(t, id, exchanges.Request{Seq: 5, Max: 5})
		there.must(t, id, exchanges.Request{Seq: 6, Results: ok(tokensOf(next.Claims)...)})
		finished(t, here, ids)
	})
}

// A task that is started for an exchange in the write that adds it is started once, and told to whoever repeats the exchange, whatever becomes of
// any call of the store.
func TestATaskRightAfterTheEndOfAnotherIsCutOff(t *testing.T) {
	t.Parallel()
	cutOffAtEachCall(t, lingerCutOff)
}

// lingerCutOff has a task started by the write that adds it, whose n-th call of the store has a fate, and reports whether it makes fewer.
func lingerCutOff(t *testing.T, s store.Store, f fate, n int) (over bool) {
	double := &doomed{Store: s, left: -1}
	victim := open(t, double)
	id := victim.register(t, 5)
	victim.lulled(t, id)
	double.arm(f, n)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waits := victim.third(ctx, t, id)
	time.Sleep(3 * time.Millisecond) // of virtual time
	added, failed := victim.queue.Enqueue(t.Context(), nil, queue.New{Job: "/topics/a", Attempts: 1})
	other := victim
	if over = double.disarm(); double.dead {
		cancel() // the process is gone
		other = open(t, s)
	}
	first := <-waits
	again := other.must(t, id, exchanges.Request{Seq: 3, Max: 5, Wait: 3 * time.Second})
	if first.err == nil && !double.dead {
		compare(t, &first.Response, &again)
	}
	if len(again.Claims) == 0 {
		again = other.must(t, id, exchanges.Request{Seq: 4, Max: 5, Wait: 3 * time.Second})
	}
	other.must(t, id, exchanges.Request{Seq: 5, Results: ok(tokensOf(again.Claims)...)})
	if failed == nil {
		finished(t, other, []task.ID{added.Tasks[0].Task.ID})
	}
	return over
}
