package exchanges_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// slow is a store each of whose calls takes a millisecond, once it is.
type slow struct {
	store.Store
	is bool
}

func (s *slow) pause() {
	if s.is {
		time.Sleep(time.Millisecond) // of virtual time
	}
}

func (s *slow) Write(ctx context.Context, w store.Write) error {
	s.pause()
	return s.Store.Write(ctx, w)
}

func (s *slow) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	s.pause()
	return s.Store.Get(ctx, keys...)
}

func (s *slow) Query(ctx context.Context, r store.Range) (store.Page, error) {
	s.pause()
	return s.Store.Query(ctx, r)
}

func (s *slow) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	s.pause()
	return s.Store.Reserve(ctx, key, ids, now)
}

// runsOne has an instance hold a task, by its third exchange, after it has told the end of another. It returns the fourth, which tells that of this one.
func (p *process) runsOne(t *testing.T, id string) exchanges.Request {
	t.Helper()
	return p.runsOneAfter(t, id, 0)
}

// runsOneAfter is runsOne, where the third exchange comes so long after the second.
func (p *process) runsOneAfter(t *testing.T, id string, after time.Duration) exchanges.Request {
	t.Helper()
	p.lulled(t, id)
	time.Sleep(after) // of virtual time
	p.add(t, 1)
	third := p.must(t, id, exchanges.Request{Seq: 3, Max: 5})
	return exchanges.Request{Seq: 4, Max: 5, Results: ok(tokensOf(third.Claims)...)}
}

// A task that is added while the end of another is told is started by the write that adds it, and told in the response, whenever it comes.
func TestATaskIsAddedWhileTheEndOfAnotherIsTold(t *testing.T) {
	t.Parallel()
	whole := 0
	synctest.Test(t, func(t *testing.T) { whole = int(addedAfter(t, time.Hour) / time.Millisecond) })
	if whole < 2 {
		t.Fatalf("an exchange takes %d ms, which is too short for this test", whole)
	}
	for at := range whole {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { addedAfter(t, time.Duration(at)*time.Millisecond+time.Microsecond) })
		})
	}
}

// addedAfter tells the end of a task, and adds another after some time, unless the exchange is over by then. It returns how long that has taken.
func addedAfter(t *testing.T, after time.Duration) (took time.Duration) {
	t.Helper()
	inner := &slow{Store: shared(t)}
	s := &counted{Store: inner}
	p := open(t, s)
	id := p.register(t, 5)
	fourth := p.runsOne(t, id)
	inner.is = true
	var got outcome
	var ids []task.ID
	writes := s.writesOf(func() {
		done := p.looks(t.Context(), id, fourth)
		select {
		case got = <-done:
			return
		case <-time.After(after):
		}
		ids = p.add(t, 1)
		got = <-done
	})
	switch {
	case got.err != nil || len(got.Results) != 1 || got.Results[0].State != "SUCCEEDED":
		t.Fatalf("exchange = %+v", got)
	case len(got.Claims) != len(ids) || writes != 1+len(ids):
		t.Errorf("%d claims by %d writes, want %d by %d", len(got.Claims), writes, len(ids), 1+len(ids))
	}
	if again := p.must(t, id, exchanges.Request{Seq: 4}); len(ids) > 0 {
		compare(t, &got.Response, &again)
	}
	p.must(t, id, exchanges.Request{Seq: 5, Results: ok(tokensOf(got.Claims)...)})
	finished(t, p, ids)
	return got.took
}

// A task that is added when the end of another was told, and the next exchange is on its way, waits for that, if it comes at once as it did before.
func TestATaskIsAddedBeforeTheNextExchange(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		before, comes time.Duration // from the response to the next exchange, the last time and now; 0: it does not come
		waits         time.Duration // the addition
		writes        int
	}{
		"it comes at once":      {0, ms, ms, 1},
		"it does not come":      {0, 0, 2 * ms, 1},
		"it came late the last": {5 * ms, ms, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &counted{Store: shared(t)}
				p := open(t, s)
				id := p.register(t, 5)
				fourth := p.runsOneAfter(t, id, c.before)
				got := <-p.looks(t.Context(), id, fourth)
				check(t, got.err)
				began := time.Now()
				var ids []task.ID
				writes := s.writesOf(func() {
					added := make(chan time.Duration, 1)
					go func() {
						ids = p.add(t, 1)
						added <- time.Since(began)
					}()
					if c.comes > 0 {
						time.Sleep(c.comes) // of virtual time
						got = <-p.looks(t.Context(), id, exchanges.Request{Seq: 5, Max: 5, Wait: 3 * time.Second})
						if len(got.Claims) != 1 || got.took != 0 {
							t.Errorf("exchange = %+v, want the task at once", got)
						}
					}
					if waited := <-added; waited != c.waits {
						t.Errorf("a task was added after %v, want %v", waited, c.waits)
					}
				})
				if writes != c.writes {
					t.Errorf("%d writes, want %d", writes, c.writes)
				}
				rest := tokensOf(got.Claims)
				for seq := int64(6); seq < 8; seq++ {
					rest = tokensOf(p.must(t, id, exchanges.Request{Seq: seq, Max: 5, Results: ok(rest...)}).Claims)
				}
				finished(t, p, ids)
			})
		})
	}
}

// A task that is added while the end of another is told is not started for a caller that has left meanwhile.
func TestATaskIsAddedWhileTheCallerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowOnce{Store: shared(t), at: make(chan struct{}), on: make(chan struct{})}
		p := open(t, s)
		id := p.register(t, 5)
		fourth := p.runsOne(t, id)
		s.armed.Store(true)
		ctx, leave := context.WithCancel(t.Context())
		done := p.looks(ctx, id, fourth)
		<-s.at // the end is being written
		added := make(chan []task.ID)
		go func() { added <- p.add(t, 1) }()
		synctest.Wait()
		leave()
		close(s.on)
		<-done
		ids := <-added
		if got, err := p.queue.Get(t.Context(), ids[0]); err != nil || got.State != task.Ready {
			t.Errorf("the task is %s, %v, want ready", got.State, err)
		}
		next := p.must(t, p.register(t, 5), exchanges.Request{Seq: 1, Max: 5})
		if len(next.Claims) != 1 {
			t.Errorf("another instance gets %v, want the task", next.Claims)
		}
	})
}

// What is added waits neither for an exchange that has found a task, nor for long for one that hangs.
func TestATaskIsAddedWhileAnExchangeIsHeldUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ready int // tasks that the exchange finds
		waits time.Duration
	}{
		"one that has found a task":     {1, 0},
		"one that has not found a task": {0, 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &slowOnce{Store: shared(t), at: make(chan struct{}), on: make(chan struct{})}
				p := open(t, s)
				id := p.register(t, 5)
				fourth := p.runsOne(t, id)
				ids := p.add(t, c.ready)
				s.armed.Store(true)
				done := p.looks(t.Context(), id, fourth)
				<-s.at // the end is being written
				began := time.Now()
				ids = append(ids, p.add(t, 1)...)
				if waited := time.Since(began); waited != c.waits {
					t.Errorf("a task was added after %v, want %v", waited, c.waits)
				}
				close(s.on)
				rest := tokensOf((<-done).Claims)
				for seq := int64(5); seq < 8; seq++ {
					rest = tokensOf(p.must(t, id, exchanges.Request{Seq: seq, Max: 5, Results: ok(rest...)}).Claims)
				}
				finished(t, p, ids)
			})
		})
	}
}

// A task that is started while the end of another is told is started once, and told to whoever repeats the exchange, whatever becomes of any call
// of the store.
func TestATaskIsAddedWhileTheEndOfAnotherIsCutOff(t *testing.T) {
	t.Parallel()
	cutOffAtEachCall(t, expectedCutOff)
}

// expectedCutOff adds a task while the end of another is told, the n-th call of the store of which has a fate, and reports whether there are fewer.
func expectedCutOff(t *testing.T, s store.Store, f fate, n int) (over bool) {
	inner := &slow{Store: s}
	double := &doomed{Store: inner, left: -1}
	victim := open(t, double)
	id := victim.register(t, 5)
	fourth := victim.runsOne(t, id)
	inner.is = true
	double.arm(f, n)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := victim.looks(ctx, id, fourth)
	time.Sleep(1500 * time.Microsecond) // of virtual time
	added, failed := victim.queue.Enqueue(t.Context(), nil, queue.New{Job: "/topics/a", Attempts: 1})
	other := victim
	if over = double.disarm(); double.dead {
		cancel() // the process is gone
		other = open(t, s)
	}
	first := <-done
	fourth.Explain = explain
	again := other.must(t, id, fourth)
	if first.err == nil && !double.dead {
		compare(t, &first.Response, &again)
	}
	rest := tokensOf(again.Claims)
	for seq := int64(5); seq < 8; seq++ {
		rest = tokensOf(other.must(t, id, exchanges.Request{Seq: seq, Max: 5, Results: ok(rest...)}).Claims)
	}
	if failed == nil {
		finished(t, other, []task.ID{added.Tasks[0].Task.ID})
	}
	return over
}
