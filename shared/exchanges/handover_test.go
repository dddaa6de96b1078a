package exchanges_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// A task that is added while an exchange waits is started for it in the write that adds it, with the record of the exchange: whoever
// repeats it gets the same, also from another process after this one has died.
func TestATaskIsStartedForAnExchangeThatWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, inner store.Store) {
		s := &counted{Store: inner}
		p := open(t, s)
		id := p.register(t, 2)
		ids := p.add(t, 1)
		first := p.must(t, id, exchanges.Request{Seq: 1, Max: 2}).Claims
		p.must(t, id, exchanges.Request{Seq: 2, Results: ok(tokensOf(first)...)})
		waits := make(chan exchanges.Response, 1)
		go func() { waits <- p.must(t, id, exchanges.Request{Seq: 3, Max: 2, Wait: 5 * time.Second}) }()
		synctest.Wait()
		if writes := s.writesOf(func() { ids = append(ids, p.add(t, 1)...) }); writes != 1 {
			t.Errorf("%d writes, want one", writes)
		}
		got := <-waits
		if len(got.Claims) != 1 || got.Claims[0].Task.ID != ids[1] {
			t.Fatalf("claims = %v, want the new task", got.Claims)
		}
		for _, p = range []*process{p, open(t, s)} { // the second after the first
			again := p.must(t, id, exchanges.Request{Seq: 3, Max: 2})
			compare(t, &got, &again)
		}
		p.must(t, id, exchanges.Request{Seq: 4, Results: ok(tokensOf(got.Claims)...)})
		finished(t, p, ids)
	})
}

// slowOnce is a store whose next write of a task waits, once it is armed.
type slowOnce struct {
	store.Store
	armed  atomic.Bool
	at, on chan struct{}
}

func (s *slowOnce) Write(ctx context.Context, w store.Write) error {
	if slices.ContainsFunc(w.Ops, changes) && s.armed.CompareAndSwap(true, false) {
		close(s.at)
		<-s.on
	}
	return s.Store.Write(ctx, w)
}

// A client that leaves while a task is being started for its exchange gets it when it repeats the exchange, and a repetition that comes
// meanwhile gets it too.
func TestATaskIsNotLostWhoseExchangeIsLeft(t *testing.T) {
	t.Parallel()
	for name, repeated := range map[string]bool{"and repeated later": false, "and repeated at once": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, inner store.Store) {
				s := &slowOnce{Store: inner, at: make(chan struct{}), on: make(chan struct{})}
				p := open(t, s)
				id := p.register(t, 2)
				ids := p.add(t, 1)
				first := p.must(t, id, exchanges.Request{Seq: 1, Max: 2}).Claims
				p.must(t, id, exchanges.Request{Seq: 2, Results: ok(tokensOf(first)...)})
				r := exchanges.Request{Seq: 3, Max: 2, Wait: 5 * time.Second, Explain: explain}
				ctx, leave := context.WithCancel(t.Context())
				left := make(chan struct{})
				go func() {
					_, _ = p.Exchange(ctx, id, r)
					close(left)
				}()
				synctest.Wait()
				s.armed.Store(true)
				added := make(chan []task.ID, 1)
				go func() { added <- p.add(t, 1) }()
				<-s.at // the task is about to be started
				again := make(chan exchanges.Response, 1)
				if repeated {
					go func() { again <- p.must(t, id, r) }()
				}
				leave()
				synctest.Wait()
				close(s.on)
				ids = append(ids, <-added...)
				<-left
				if !repeated {
					go func() { again <- p.must(t, id, r) }()
				}
				got := <-again
				if len(got.Claims) != 1 || got.Claims[0].Task.ID != ids[1] {
					t.Fatalf("claims = %v, want the task that was started", got.Claims)
				}
				p.must(t, id, exchanges.Request{Seq: 4, Results: ok(tokensOf(got.Claims)...)})
				finished(t, p, ids)
			})
		})
	}
}
