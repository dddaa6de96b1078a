package bench

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/client"
)

// overHTTP measures the cases of throughput with a server in a process of its own: the producers are goroutines of one client, the
// workers are one instance.
func (b Tasks) overHTTP(ctx context.Context, p Program) (rates []rate, err error) {
	err = b.dir(func(dir string) error {
		return p.serve(ctx, dir, func(url, token string) error {
			c, err := client.New(client.Options{URL: url, Token: token})
			if err != nil {
				return err
			}
			defer c.Close()
			add := func(ctx context.Context) error { return b.add(ctx, c) }
			run := func(ctx context.Context) error { return b.run(ctx, c) }
			for _, measured := range []func(context.Context) error{add, run, func(ctx context.Context) error {
				return together(ctx, 2, func(ctx context.Context, i int) error {
					return []func(context.Context) error{add, run}[i](ctx)
				})
			}} {
				began := time.Now()
				if err := measured(ctx); err != nil {
					return err
				}
				rates = append(rates, rate(float64(b.Tasks)/time.Since(began).Seconds()))
			}
			return nil
		})
	})
	return rates, err
}

// add adds the tasks of a case.
func (b Tasks) add(ctx context.Context, c *client.Client) error {
	topic := strings.TrimPrefix(benchTopic, "/topics/")
	properties := append(append([]byte(`{"text":`), text(b.Size)...), '}')
	var next atomic.Int64
	return together(ctx, b.Producers, func(ctx context.Context, _ int) error {
		for next.Add(1) <= int64(b.Tasks) && ctx.Err() == nil {
			if _, _, err := c.AddJob(ctx, client.NewJob{Topic: topic, Properties: properties}); err != nil {
				return err
			}
		}
		return nil
	})
}

// run runs the tasks of a case, until all results are acknowledged.
func (b Tasks) run(ctx context.Context, c *client.Client) error {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var done atomic.Int64
	nothing := func(context.Context, *client.Task) (any, error) {
		if done.Add(1) == int64(b.Tasks) {
			cancel() // the worker sends what results it has, and leaves
		}
		return nil, nil
	}
	w := c.Worker(client.WorkerOptions{Jobs: map[string]client.Function{benchTopic: nothing}, Capacity: b.Workers})
	err := w.Run(ctx)
	if done.Load() >= int64(b.Tasks) {
		return outer.Err()
	}
	return err
}
