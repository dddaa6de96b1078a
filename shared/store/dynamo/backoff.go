package dynamo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Attempts and pauses, for the SDK's repeats and for what a batch leaves unprocessed. The SDK's own pauses begin at up
// to two seconds, which is long against DynamoDB's few milliseconds.
const (
	maxAttempts = 5
	firstPause  = 25 * time.Millisecond
	longPause   = time.Second
)

// pause returns how long to wait after the attempt with that index: a random time up to a bound that doubles, so that callers
// that were throttled together do not return together.
func pause(attempt int) time.Duration {
	bound := longPause
	if shift := max(attempt, 0); shift < 6 {
		bound = min(longPause, firstPause<<shift)
	}
	return rand.N(bound) + time.Millisecond
}

// wait pauses after the attempt with that index, or returns the context's error.
func wait(ctx context.Context, attempt int) error {
	timer := time.NewTimer(pause(attempt))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// patience decides whether to ask again for what a batch left unprocessed.
type patience struct {
	operation string
	left      int // as of the attempt before
	attempt   int // attempts in a row that did nothing
}

// goOn reports done when nothing is left. Otherwise it returns nil when the rest may be asked for: at once after some of it was
// done, after ever longer pauses while none is, until it returns [store.ErrBusy].
func (p *patience) goOn(ctx context.Context, left int) (done bool, err error) {
	if left == 0 {
		return true, nil
	}
	if left < p.left {
		p.left, p.attempt = left, 0
		return false, nil
	}
	if p.attempt++; p.attempt == maxAttempts {
		return false, fmt.Errorf("dynamo: %s: %w: nothing processed in %d attempts", p.operation, store.ErrBusy, maxAttempts)
	}
	return false, wait(ctx, p.attempt-1)
}
