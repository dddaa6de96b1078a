package worker

import (
	"context"
	"sync"

	"github.com/millrace/millrace/shared/queue"
)

// RunBatch claims up to n tasks, runs them at once, and returns when all have ended, with how many they were. It is for a
// host that counts its own workers, such as Lambda. The error is that of claiming; what was claimed before it was run.
//
// ctx should end some seconds before the host stops: attempts that have not ended then fail, see [Runner.Run].
func (r *Runner) RunBatch(ctx context.Context, by queue.Claimer, n int) (ran int, err error) {
	var runs sync.WaitGroup
	defer runs.Wait()
	for ran < n && ctx.Err() == nil {
		leases, err := claim(ctx, r.o.Engine, by, n-ran)
		for _, lease := range leases {
			runs.Go(func() { r.Run(ctx, lease) })
		}
		ran += len(leases)
		if err != nil || len(leases) == 0 {
			return ran, err
		}
	}
	return ran, nil
}
