package queue_test

import (
	"context"
	"testing"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// refusing is a shared store that refuses the next write of several operations, after something has happened.
type refusing struct {
	shared
	first func()
}

// Write refuses.
func (r *refusing) Write(ctx context.Context, w store.Write) error {
	if first := r.first; first != nil && len(w.Ops) > 1 {
		r.first = nil
		first()
		return store.ErrTooLarge
	}
	return r.shared.Write(ctx, w)
}

// A claim that finds nothing, since another of its process has picked the task, is notified when that one cannot start it.
func TestAClaimThatFailsNotifiesThoseThatItHasKeptOff(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways())
	s, n := &refusing{shared: shared{b.store}}, &notified{}
	p := b.over(s, b.clock)
	p.Queue = queue.Open(queue.Options{Store: s, Journal: p.journal, Definitions: fixed{ways()}, Now: b.clock.now, Notifier: n})
	p.one(queue.New{Job: "/plain"})
	s.first = func() {
		if found := len(p.claim(1)); found > 0 {
			t.Errorf("%d tasks are started while another claim is about to start the only one", found)
		}
		n.notices.Store(0)
	}
	if leases, err := p.Claim(t.Context(), queue.Claimer{Instance: "a"}, 1); err == nil || len(leases) > 0 {
		t.Fatalf("Claim = %v, %v, want the store's error", leases, err)
	}
	if n.notices.Load() == 0 {
		t.Error("nobody is notified of the task that was picked and not started")
	}
	if len(p.claim(1)) != 1 {
		t.Error("the task is not found again")
	}
}

// stopping is a shared store that calls a function before a write that changes a task.
type stopping struct {
	shared
	before map[string]func() // by the task's UUID; each is called once
}

// Write calls the functions of the tasks that it changes.
func (s *stopping) Write(ctx context.Context, w store.Write) error {
	for i := range w.Ops {
		if stop := s.before[w.Ops[i].Item.Key.Sort]; stop != nil {
			delete(s.before, w.Ops[i].Item.Key.Sort)
			stop()
		}
	}
	return s.shared.Write(ctx, w)
}

// What a claim has picked and put back is another's by the time that the claim is over.
func TestAClaimThatIsOverLeavesToOthersWhatItHasPutBack(t *testing.T) {
	t.Parallel()
	b := setupWith(t, set())
	s := &stopping{shared: shared{b.store}, before: map[string]func(){}}
	p := b.over(s, b.clock)
	claim := func(name string) []queue.Lease {
		leases, err := p.Claim(t.Context(), queue.Claimer{Instance: name}, 1)
		if err != nil {
			t.Error(err)
		}
		return leases
	}
	limited := queue.New{Job: "/plain", Concurrency: &task.Concurrency{Key: "k", Limit: 1}}
	p.one(limited)
	claim("before")
	p.one(limited) // the first claim finds that it may not start, and then picks two at once
	first, second := p.one(queue.New{Job: "/plain"}), p.one(queue.New{Job: "/plain"})

	picked, on, other := make(chan struct{}), make(chan struct{}), make(chan []queue.Lease, 1)
	s.before[first.UUID()] = func() {
		go func() { other <- claim("b") }()
		<-picked
	}
	s.before[second.UUID()] = func() {
		close(picked)
		<-on
	}
	if got := claim("a"); len(got) != 1 || got[0].Task.ID != first {
		t.Errorf("the first claim has started %v", got)
	}
	if got := claim("c"); len(got) != 0 {
		t.Errorf("%v is started, which another claim is about to start", got[0].Task.ID)
	}
	close(on)
	if got := <-other; len(got) != 1 || got[0].Task.ID != second {
		t.Errorf("the second claim has started %v", got)
	}
}
