package bench

import (
	"context"
	"slices"
	"sync"
	"time"
)

// together runs n calls of run at once, each with its number, and waits for all. The first error ends the context of the
// others and is returned.
func together(ctx context.Context, n int, run func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if err := run(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// laps is how long each of many calls took, sorted, and all of them together.
type laps struct {
	each    []time.Duration
	elapsed time.Duration
}

// hammer lets n callers call as fast as they can for a while; caller makes the call of each.
func hammer(ctx context.Context, n int, duration time.Duration, caller func(i int) (call func(context.Context) error)) (laps, error) {
	each := make([][]time.Duration, n)
	began := time.Now()
	err := together(ctx, n, func(ctx context.Context, i int) error {
		call := caller(i)
		for at := time.Now(); at.Sub(began) < duration; {
			if err := call(ctx); err != nil {
				return err
			}
			now := time.Now()
			each[i] = append(each[i], now.Sub(at))
			at = now
		}
		return nil
	})
	l := laps{slices.Concat(each...), time.Since(began)}
	slices.Sort(l.each)
	return l, err
}

// perSecond returns how many calls were made in a second.
func (l laps) perSecond() float64 { return float64(len(l.each)) / l.elapsed.Seconds() }

// emitting returns the callers of hammer that append batches of events of a size.
func emitting(s subject, batch, size int) func(i int) func(context.Context) error {
	return func(i int) func(context.Context) error {
		events := sample(batch, size, int64(i))
		return func(ctx context.Context) error { return s.emit(ctx, events) }
	}
}

// quantile returns the value below which that part of the sorted values lies; 0 if there are none.
func quantile(sorted []time.Duration, part float64) took {
	if len(sorted) == 0 {
		return 0
	}
	return took(sorted[min(int(part*float64(len(sorted))), len(sorted)-1)])
}
