package queue_test

import (
	"context"
	"testing"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
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
