package queue_test

import (
	"context"
	"testing"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/rule"
)

// tally is a notifier that counts notifications by line.
type tally map[string]int

func (c tally) Notify(_ context.Context, notices ...notifier.Notice) error {
	for _, notice := range notices {
		c[notice.Queue]++
	}
	return nil
}
func (tally) Ping(context.Context) error { return nil }
func (tally) Close() error               { return nil }

// TestWhatIsHeldIsNotifiedForWhenItIsLetGo: claimers are notified of a held task when it is released, whether a claim has met it or
// not, and of tasks of a suspended queue not before that is resumed.
func TestWhatIsHeldIsNotifiedForWhenItIsLetGo(t *testing.T) {
	t.Parallel()
	const n = 5
	bothWays(t, func(t *testing.T, b *bench) {
		for name, hold := range map[string]func(ctx context.Context, on bool) error{
			"suspended": func(ctx context.Context, on bool) error { return b.Suspend(ctx, definition.MainQueue, on) },
			"paused":    func(ctx context.Context, on bool) error { return b.SetRule(ctx, "/plain", rule.Pause, on) },
		} {
			for _, met := range []bool{false, true} {
				notices := tally{}
				b.Queue = queue.Open(queue.Options{Store: b.store, Journal: b.journal, Definitions: fixed{ways()}, Notifier: notices, Now: b.clock.now})
				for range n {
					b.one(queue.New{Job: "/plain"})
				}
				b.turn(hold, true)
				if met && len(b.claim(1)) > 0 {
					t.Fatalf("%s: a task was started", name)
				}
				clear(notices)
				if _, err := b.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if name == "suspended" && len(notices) > 0 {
					t.Errorf("%s: notified for %v before, want nothing", name, notices)
				}
				clear(notices)
				b.turn(hold, false)
				if notices[definition.MainQueue] < n {
					t.Errorf("%s, met by a claim: %v: notified for %v, want %d at least", name, met, notices, n)
				}
				b.claim(n)
			}
		}
	})
}

// turn sets or lifts a hold.
func (b *bench) turn(hold func(ctx context.Context, on bool) error, on bool) {
	b.t.Helper()
	if err := hold(b.t.Context(), on); err != nil {
		b.t.Fatal(err)
	}
}
