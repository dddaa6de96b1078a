package faulty

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/notifier"
)

// Faults are the probabilities of faults, from 0 to 1. The zero value has none.
type Faults struct {
	Lose   float64       // a notification is lost
	Double float64       // a notification comes once more, and each copy perhaps once more; less than 1
	Late   float64       // a notification comes late, by less than Delay, so that others overtake it
	Delay  time.Duration // above 0 for Late to have an effect; the due time is limited to [notifier.MaxDelay] ahead
	Fail   float64       // a call returns ErrUnavailable; its notifications are treated as in any other call
}

// Notifier is a notifier with faults in front of another one.
type Notifier struct {
	base   notifier.Line
	seed   uint64
	faults Faults
	now    func() time.Time

	mu       sync.Mutex
	notified map[string]uint64 // notifications so far, by queue
	calls    uint64
}

var _ notifier.Line = (*Notifier)(nil)

// New returns a notifier that forwards to base, with faults drawn from seed. Delays are counted from now; default:
// time.Now.
func New(base notifier.Line, seed uint64, faults Faults, now func() time.Time) *Notifier {
	if now == nil {
		now = time.Now
	}
	return &Notifier{base: base, seed: seed, faults: faults, now: now, notified: map[string]uint64{}}
}

// Notify forwards the notifications that are not lost.
func (b *Notifier) Notify(ctx context.Context, notices ...notifier.Notice) error {
	passed, failed := b.draw(notices)
	if err := b.base.Notify(ctx, passed...); err != nil {
		return err
	}
	if failed {
		return fmt.Errorf("faulty: notice: %w", notifier.ErrUnavailable)
	}
	return nil
}

// draw decides what happens to each notification, and whether the call fails.
func (b *Notifier) draw(notices []notifier.Notice) (passed []notifier.Notice, failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for _, notice := range notices {
		b.notified[notice.Queue]++
		dice := b.dice("notice", notice.Queue, b.notified[notice.Queue])
		if happens(dice, b.faults.Lose) {
			continue
		}
		passed = append(passed, b.late(dice, notice, now))
		for happens(dice, b.faults.Double) {
			passed = append(passed, b.late(dice, notice, now))
		}
	}
	b.calls++
	return passed, happens(b.dice("call", "", b.calls), b.faults.Fail)
}

// late delays a notification, up to [notifier.MaxDelay] from now.
func (b *Notifier) late(dice *rand.Rand, notice notifier.Notice, now time.Time) notifier.Notice {
	if !happens(dice, b.faults.Late) || b.faults.Delay <= 0 {
		return notice
	}
	if notice.At.Before(now) {
		notice.At = now
	}
	notice.At = notice.At.Add(time.Duration(dice.Int64N(int64(b.faults.Delay))))
	if last := now.Add(notifier.MaxDelay); notice.At.After(last) {
		notice.At = last
	}
	return notice
}

// dice returns the random numbers for the nth event of a kind.
func (b *Notifier) dice(kind, queue string, n uint64) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%d", kind, queue, n)
	return rand.New(rand.NewPCG(b.seed, h.Sum64()))
}

func happens(dice *rand.Rand, chance float64) bool { return chance > 0 && dice.Float64() < chance }

// Receive receives from the base.
func (b *Notifier) Receive(ctx context.Context, limit int) ([]notifier.Notice, error) {
	return b.base.Receive(ctx, limit)
}

// Ping pings the base.
func (b *Notifier) Ping(ctx context.Context) error { return b.base.Ping(ctx) }

// Close closes the base.
func (b *Notifier) Close() error { return b.base.Close() }
