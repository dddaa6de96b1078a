package queue_test

import (
	"context"
	"testing"

	"github.com/millrace/millrace/shared/bell"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
)

// tally is a notifier (bell) that counts notifications by line.
type tally map[string]int

func (c tally) Ring(_ context.Context, rings ...bell.Ring) error {
	for _, ring := range rings {
		c[ring.Queue]++
	}
	return nil
}
func (tally) Ping(context.Context) error { return nil }
func (tally) Close() error               { return nil }

// TestWhatIsHeldIsRungForWhenItIsLetGo: claimers are notified of a held task when it is released, whether a claim has met it or
// not, and of tasks of a suspended queue not before that is resumed.
func TestWhatIsHeldIsRungForWhenItIsLetGo(t *testing.T) {
	t.Parallel()
	const n = 5
	bothWays(t, func(t *testing.T, b *bench) {
		for name, hold := range map[string]func(ctx context.Context, on bool) error{
			"suspended": func(ctx context.Context, on bool) error { return b.Suspend(ctx, definition.MainQueue, on) },
			"paused":    func(ctx context.Context, on bool) error { return b.SetRule(ctx, "/plain", queue.Pause, on) },
		} {
			for _, met := range []bool{false, true} {
				rings := tally{}
				b.Queue = queue.Open(queue.Options{Store: b.store, Journal: b.journal, Definitions: fixed{ways()}, Bell: rings, Now: b.clock.now})
				for range n {
					b.one(queue.New{Job: "/plain"})
				}
				b.turn(hold, true)
				if met && len(b.claim(1)) > 0 {
					t.Fatalf("%s: a task was started", name)
				}
				clear(rings)
				if _, err := b.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if name == "suspended" && len(rings) > 0 {
					t.Errorf("%s: rung for %v before, want nothing", name, rings)
				}
				clear(rings)
				b.turn(hold, false)
				if rings[definition.MainQueue] < n {
					t.Errorf("%s, met by a claim: %v: rung for %v, want %d at least", name, met, rings, n)
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
