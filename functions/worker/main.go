// Command worker is the function that starts tasks when the bell rings: as many as a batch of messages has rings, the best
// that there are, whichever queue was rung for. It runs them side by side and answers when all have ended.
package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/bell"
	"github.com/millrace/millrace/shared/bell/sqs"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/shared/worker"
	"github.com/millrace/millrace/shared/worker/lambda"
)

func main() {
	service.MainTasks(config.Openers{"dynamodb": dynamo.OpenPrefix}, config.Bells{"sqs": sqs.OpenQueue}, function)
}

// Lambda ends the process soon after the context. What still runs then is ended in time for the engine to be told.
const (
	grace = 5 * time.Second
	spare = 2 * grace
)

func function(ctx context.Context, s *service.Tasks) (host.Function, error) {
	targets, err := targets(ctx, s)
	if err != nil {
		return host.Function{}, err
	}
	runner := worker.NewRunner(worker.Options{
		Engine: s.Queue, Definitions: s.Definitions, Targets: targets, URL: s.URL(), Grace: grace, Log: s.Log,
	})
	operations := s.API()
	f := s.Function("worker", operations)
	f.Guard = func(next http.Handler) http.Handler { return operations.Guard(api.Operate, next) }
	f.Messages = func(ctx context.Context, batch []host.Message) []host.Failure {
		rings, failures := sort(batch)
		return append(failures, run(ctx, runner, queue.Claimer{Instance: s.Instance()}, rings)...)
	}
	return f, nil
}

// targets are what a function can run tasks on: no commands, since those are for the machine that was set up for them.
func targets(ctx context.Context, s *service.Tasks) (worker.Targets, error) {
	webhooks, err := s.Webhooks(ctx)
	return worker.Targets{HTTP: webhooks, Lambda: &lambda.Target{}}, err
}

// heard is a ring and the message that it came with.
type heard struct {
	bell.Ring
	id string
}

// sort tells rings from what is none, which comes again until SQS puts it aside.
func sort(batch []host.Message) (rings []heard, failures []host.Failure) {
	for _, m := range batch {
		ring, err := sqs.Parse(m.Body)
		if err != nil {
			failures = append(failures, host.Failure{ID: m.ID, Err: err})
			continue
		}
		rings = append(rings, heard{ring, m.ID})
	}
	return rings, failures
}

// run runs up to as many tasks as there are rings to their ends, at once or at the time of a ring that comes early. Rings
// that find nothing have done their duty.
func run(ctx context.Context, runner *worker.Runner, by queue.Claimer, rings []heard) (failures []host.Failure) {
	if deadline, limited := ctx.Deadline(); limited {
		within, cancel := context.WithDeadline(ctx, deadline.Add(-spare))
		defer cancel()
		ctx = within
	}
	var runs sync.WaitGroup
	failed := make(chan host.Failure, len(rings))
	start := func(rings []heard) {
		runs.Go(func() {
			worker.AwaitRing(ctx, rings[0].Ring)
			if _, err := runner.RunBatch(ctx, by, len(rings)); err != nil {
				for _, ring := range rings {
					failed <- host.Failure{ID: ring.id, Err: err}
				}
			}
		})
	}
	var due []heard
	for now, i := time.Now(), 0; i < len(rings); i++ {
		if rings[i].At.After(now) {
			start(rings[i : i+1])
		} else {
			due = append(due, rings[i])
		}
	}
	if len(due) > 0 {
		start(due)
	}
	runs.Wait()
	close(failed)
	for f := range failed {
		failures = append(failures, f)
	}
	return failures
}
