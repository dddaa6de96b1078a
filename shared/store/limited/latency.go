package limited

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// latency draws how long calls take.
type latency struct {
	tail float64

	mu     sync.Mutex
	source *rand.Rand
}

func newLatency(l Limits) *latency {
	return &latency{tail: l.Tail, source: rand.New(rand.NewPCG(l.Seed, 0))}
}

// draw returns a time whose median is given.
func (l *latency) draw(median time.Duration) time.Duration {
	if l.tail == 0 {
		return median
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(float64(median) * math.Exp(l.tail*l.source.NormFloat64()))
}

// pause returns how long to wait after a try that was throttled: without a tail the bound, with one a random part of it.
func (l *latency) pause(try int) time.Duration {
	bound := firstPause << try
	if l.tail == 0 {
		return bound
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.source.Int64N(int64(bound))) + time.Millisecond
}

func rest(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
