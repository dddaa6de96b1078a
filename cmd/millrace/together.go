package main

import (
	"context"
	"sync"
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
