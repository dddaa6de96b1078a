package exchanges_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// idle has instances run a task each, and wait in vain for another by their third exchange, so that the fourth one goes on with the wait.
func (p *process) idle(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		p.add(t, 1)
		first := p.must(t, id, exchanges.Request{Seq: 1, Max: 5})
		p.must(t, id, exchanges.Request{Seq: 2, Results: ok(tokensOf(first.Claims)...)})
	}
	var group sync.WaitGroup
	for _, id := range ids {
		group.Go(func() {
			if _, err := p.Exchange(t.Context(), id, exchanges.Request{Seq: 3, Max: 5, Wait: 3 * time.Second, Explain: explain}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, id := range ids {
		if look, err := p.Look(t.Context(), id, &exchanges.Request{Seq: 4, Max: 5, Wait: 10 * time.Second}); err != nil || !look.Rests {
			t.Fatal("the fourth exchange does not go on with the wait")
		}
	}
}

// outcome is what an exchange has returned.
type outcome struct {
	exchanges.Response
	err  error
	took time.Duration
}

// fourth makes the fourth exchange of an instance that has waited in vain.
func (p *process) fourth(ctx context.Context, id string) <-chan outcome {
	done := make(chan outcome, 1)
	began := time.Now()
	go func() {
		got, err := p.Exchange(ctx, id, exchanges.Request{Seq: 4, Max: 5, Wait: 10 * time.Second, Explain: explain})
		done <- outcome{got, err, time.Since(began)}
	}()
	synctest.Wait()
	return done
}

// An exchange that goes on with a wait is told of a task at any moment of it, wherever that is added, and holds up no other of them.
func TestATaskForOneThatGoesOnWaiting(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 300 * time.Millisecond, 1500 * time.Millisecond, 8 * time.Second} {
		for _, by := range []string{"the same process", "another"} {
			t.Run(fmt.Sprint(by, " after ", after), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, s store.Store) {
					here := open(t, s)
					there := here
					if by == "another" && !s.Exclusive() {
						there = open(t, s)
					}
					id := here.register(t, 5)
					here.idle(t, id)
					waits := here.fourth(t.Context(), id)
					time.Sleep(after)
					ids := there.add(t, 1)
					got := <-waits
					if got.err != nil || len(got.Claims) != 1 || got.took > after+2*time.Second {
						t.Fatalf("%d claims after %v, %v, want one soon after the task was added", len(got.Claims), got.took, got.err)
					}
					here.must(t, id, exchanges.Request{Seq: 5, Results: ok(tokensOf(got.Claims)...)})
					finished(t, here, ids)
				})
			})
		}
	}
}

// A task that is added between two exchanges, when nobody waits, is found at once by the second of them.
func TestATaskBetweenTwoWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s store.Store) {
		p := open(t, s)
		id := p.register(t, 5)
		p.idle(t, id)
		p.add(t, 1)
		if got := <-p.fourth(t.Context(), id); got.err != nil || len(got.Claims) != 1 || got.took > 100*time.Millisecond {
			t.Errorf("%d claims after %v, %v", len(got.Claims), got.took, got.err)
		}
	})
}

// A wait of one that wants no task says nothing of whether there is one.
func TestATaskFromBeforeAWaitThatWantedNone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s store.Store) {
		p := open(t, s)
		id := p.register(t, 5)
		p.add(t, 1)
		p.must(t, id, exchanges.Request{Seq: 3, Wait: 3 * time.Second})
		if got := <-p.fourth(t.Context(), id); got.err != nil || len(got.Claims) != 1 || got.took > 100*time.Millisecond {
			t.Errorf("%d claims after %v, %v", len(got.Claims), got.took, got.err)
		}
	})
}

// What another process does to an instance is known at the next exchange, within a second.
func TestAnInstanceThatGoesOnWaitingIsChangedElsewhere(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, there *process, id string)
		right  func(outcome) bool
	}{
		"leaves": {
			func(t *testing.T, there *process, id string) { check(t, there.members.Leave(t.Context(), id)) },
			func(o outcome) bool { return errors.Is(o.err, membership.ErrNoInstance) && o.took <= time.Second },
		},
		"drains": {
			func(t *testing.T, there *process, id string) { check(t, there.members.Drain(t.Context(), id)) },
			func(o outcome) bool { return o.err == nil && o.Draining },
		},
		"goes on there": {
			func(t *testing.T, there *process, id string) { there.must(t, id, exchanges.Request{Seq: 5}) },
			func(o outcome) bool { return errors.Is(o.err, exchanges.ErrOld) && o.took <= time.Second },
		},
		"is repeated there": {
			func(t *testing.T, there *process, id string) { there.must(t, id, exchanges.Request{Seq: 4}) },
			func(o outcome) bool { return o.err == nil && o.took <= time.Second },
		},
		"is repeated there, and waits": {
			func(t *testing.T, there *process, id string) { there.fourth(t.Context(), id) },
			func(o outcome) bool { return errors.Is(o.err, journal.ErrUnavailable) && o.took <= time.Second },
		},
	} {
		for when, with := range map[string][]func(*exchanges.Options){"before": nil, "meanwhile": nil, "before, apart": {apart}} {
			later := when == "meanwhile"
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := shared(t)
					here, there := open(t, s, with...), open(t, s, with...)
					id, other := here.register(t, 5), here.register(t, 5)
					here.idle(t, id, other)
					if !later {
						test.change(t, there, id)
					}
					waits, beside := here.fourth(t.Context(), id), here.fourth(t.Context(), other)
					if later {
						test.change(t, there, id)
					}
					if got := <-waits; !test.right(got) {
						t.Errorf("exchange = %+v", got)
					}
					if got := <-beside; got.err != nil || got.took < 9*time.Second {
						t.Errorf("an exchange beside it = %+v", got)
					}
				})
			})
		}
	}
}

// An exchange that goes on with a wait, and may not have the task that it was woken for, passes it on at once.
func TestAWaitThatIsOverElsewherePassesItsTaskOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, there *process, id string)
		want   error
	}{
		"a later one": {func(t *testing.T, there *process, id string) { there.must(t, id, exchanges.Request{Seq: 5}) }, exchanges.ErrOld},
		"repeated":    {func(t *testing.T, there *process, id string) { there.must(t, id, exchanges.Request{Seq: 4}) }, nil},
		"drained":     {func(t *testing.T, there *process, id string) { check(t, there.members.Drain(t.Context(), id)) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := shared(t)
				here, there := open(t, s), open(t, s)
				id, other := here.register(t, 5), here.register(t, 5)
				here.idle(t, id, other)
				waits, beside := here.fourth(t.Context(), id), here.fourth(t.Context(), other)
				c.change(t, there, id)
				ids := here.add(t, 1)
				got := <-beside
				if got.err != nil || len(got.Claims) != 1 || got.took > 100*time.Millisecond {
					t.Fatalf("an exchange beside it = %+v, want the task at once", got)
				}
				if got := <-waits; !errors.Is(got.err, c.want) || len(got.Claims) > 0 {
					t.Errorf("exchange = %+v, want %v", got, c.want)
				}
				here.must(t, other, exchanges.Request{Seq: 5, Results: ok(tokensOf(got.Claims)...)})
				finished(t, here, ids)
			})
		})
	}
}

// A lease that the instance claims elsewhere by a request of its own is kept by its exchanges.
func TestALeaseFromElsewhereIsKeptByOneThatGoesOnWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := shared(t)
		here, there := open(t, s), open(t, s)
		id := here.register(t, 5)
		here.idle(t, id)
		here.must(t, id, exchanges.Request{Seq: 4, Max: 5, Wait: 10 * time.Second})
		ids := there.add(t, 1)
		i, err := there.members.Get(t.Context(), id)
		check(t, err)
		leases, err := there.queue.Claim(t.Context(), i.Claims(), 1)
		if err != nil || len(leases) != 1 {
			t.Fatalf("%d leases, %v", len(leases), err)
		}
		for seq := int64(5); seq < 20; seq++ {
			here.must(t, id, exchanges.Request{Seq: seq, Max: 5, Wait: 10 * time.Second})
			_, err := there.queue.Sweep(t.Context())
			check(t, err)
		}
		here.must(t, id, exchanges.Request{Seq: 20, Results: ok(tokensOf(leases)...)})
		finished(t, here, ids)
	})
}

// fates are what may become of a call.
var fates = map[string]fate{
	"killed before":        {err: errKilled, dies: true},
	"killed after":         {err: errKilled, dies: true, done: true},
	"busy":                 {err: store.ErrBusy},
	"unknown, never":       {err: store.ErrUnknown},
	"unknown, but done":    {err: store.ErrUnknown, done: true},
	"unknown, done soon":   {err: store.ErrUnknown, done: true, later: time.Millisecond},
	"unknown, done later":  {err: store.ErrUnknown, done: true, later: 40 * time.Millisecond},
	"unreachable":          {err: errKilled},
	"unreachable but done": {err: errKilled, done: true},
}

// An exchange that goes on with a wait and is cut off at any of its calls of the store, and repeated, loses no task and starts none twice.
func TestAWaitThatIsCutOffIsMadeOnce(t *testing.T) {
	t.Parallel()
	for name, f := range fates {
		for _, after := range []time.Duration{300 * time.Millisecond, 1500 * time.Millisecond} {
			t.Run(fmt.Sprint(name, after), func(t *testing.T) {
				t.Parallel()
				var over atomic.Int32
				for n := 0; over.Load() < 2 && !t.Failed(); n++ {
					if n == mostCalls {
						t.Fatalf("an exchange makes more than %d calls", n)
					}
					over.Store(0)
					t.Run(fmt.Sprint(n), func(t *testing.T) {
						bubble(t, func(t *testing.T, s store.Store) {
							if waitCutOff(t, s, f, after, n) {
								over.Add(1)
							}
						})
					})
				}
			})
		}
	}
}

// waitCutOff makes an exchange that goes on with a wait, and whose n-th call of the store has a fate, and reports whether it makes fewer.
func waitCutOff(t *testing.T, s store.Store, f fate, after time.Duration, n int) (over bool) {
	double := &doomed{Store: s, left: -1}
	victim := open(t, double)
	id := victim.register(t, 5)
	victim.idle(t, id)
	double.arm(f, n)
	ctx, cancel := context.WithCancel(t.Context())
	waits := victim.fourth(ctx, id)
	time.Sleep(after)
	adds := open(t, s)
	if s.Exclusive() {
		adds = victim
	}
	got, err := adds.queue.Enqueue(t.Context(), nil, queue.New{Job: "/topics/a", Attempts: 1})
	over = double.disarm()
	if err != nil { // the call was one of the adding
		cancel()
		<-waits
		return over
	}
	other := victim
	if double.dead {
		cancel() // the process is gone
		other = open(t, s)
	}
	first := <-waits
	again := other.must(t, id, exchanges.Request{Seq: 4, Max: 5, Wait: 10 * time.Second})
	if first.err == nil && !double.dead {
		compare(t, &first.Response, &again)
	}
	cancel()
	if len(again.Claims) == 0 {
		again = other.must(t, id, exchanges.Request{Seq: 5, Max: 5, Wait: 10 * time.Second})
	}
	other.must(t, id, exchanges.Request{Seq: 6, Results: ok(tokensOf(again.Claims)...)})
	finished(t, other, []task.ID{got.Tasks[0].Task.ID})
	return over
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
