package faulty

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/bell"
)

// Faults are the probabilities of faults, from 0 to 1. The zero value has none.
type Faults struct {
	Lose   float64       // a notification is lost
	Double float64       // a notification comes once more, and each copy perhaps once more; less than 1
	Late   float64       // a notification comes late, by less than Delay, so that others overtake it
	Delay  time.Duration // above 0 for Late to have an effect; the due time is limited to [bell.MaxDelay] ahead
	Fail   float64       // a call returns ErrUnavailable; its notifications are treated as in any other call
}

// Bell is a notifier with faults in front of another one.
type Bell struct {
	base   bell.Line
	seed   uint64
	faults Faults
	now    func() time.Time

	mu    sync.Mutex
	rung  map[string]uint64 // notifications so far, by queue
	calls uint64
}

var _ bell.Line = (*Bell)(nil)

// New returns a notifier that forwards to base, with faults drawn from seed. Delays are counted from now; default:
// time.Now.
func New(base bell.Line, seed uint64, faults Faults, now func() time.Time) *Bell {
	if now == nil {
		now = time.Now
	}
	return &Bell{base: base, seed: seed, faults: faults, now: now, rung: map[string]uint64{}}
}

// Ring forwards the notifications that are not lost.
func (b *Bell) Ring(ctx context.Context, rings ...bell.Ring) error {
	passed, failed := b.draw(rings)
	if err := b.base.Ring(ctx, passed...); err != nil {
		return err
	}
	if failed {
		return fmt.Errorf("faulty: ring: %w", bell.ErrUnavailable)
	}
	return nil
}

// draw decides what happens to each notification, and whether the call fails.
func (b *Bell) draw(rings []bell.Ring) (passed []bell.Ring, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for _, ring := range rings {
		b.rung[ring.Queue]++
		dice := b.dice("ring", ring.Queue, b.rung[ring.Queue])
		if happens(dice, b.faults.Lose) {
			continue
		}
		passed = append(passed, b.late(dice, ring, now))
		for happens(dice, b.faults.Double) {
			passed = append(passed, b.late(dice, ring, now))
		}
	}
	b.calls++
	return passed, happens(b.dice("call", "", b.calls), b.faults.Fail)
}

// late delays a notification, up to [bell.MaxDelay] from now.
func (b *Bell) late(dice *rand.Rand, ring bell.Ring, now time.Time) bell.Ring {
	if !happens(dice, b.faults.Late) || b.faults.Delay <= 0 {
		return ring
	}
	if ring.At.Before(now) {
		ring.At = now
	}
	ring.At = ring.At.Add(time.Duration(dice.Int64N(int64(b.faults.Delay))))
	if last := now.Add(bell.MaxDelay); ring.At.After(last) {
		ring.At = last
	}
	return ring
}

// dice returns the random numbers for the nth event of a kind.
func (b *Bell) dice(kind, queue string, n uint64) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%d", kind, queue, n)
	return rand.New(rand.NewPCG(b.seed, h.Sum64()))
}

func happens(dice *rand.Rand, chance float64) bool { return chance > 0 && dice.Float64() < chance }

// Receive receives from the base.
func (b *Bell) Receive(ctx context.Context, limit int) ([]bell.Ring, error) {
	return b.base.Receive(ctx, limit)
}

// Ping pings the base.
func (b *Bell) Ping(ctx context.Context) error { return b.base.Ping(ctx) }

// Close closes the base.
func (b *Bell) Close() error { return b.base.Close() }
