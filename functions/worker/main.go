// Command worker is the function that starts tasks when the bell rings: as many as a batch of messages has rings, the best
// that there are, whichever queue was rung for. It runs them side by side and answers when all have ended.
package main

import (
	"context"
	"net/http"
	"time"

	"github.com/millrace/millrace/shared/api"
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
		if err := run(ctx, runner, queue.Claimer{Instance: s.Instance()}, len(rings)); err != nil {
			for _, m := range rings {
				failures = append(failures, host.Failure{ID: m.ID, Err: err})
			}
		}
		return failures
	}
	return f, nil
}

// targets are what a function can run tasks on: no commands, since those are for the machine that was set up for them.
func targets(ctx context.Context, s *service.Tasks) (worker.Targets, error) {
	secret, err := service.SigningSecret(ctx, s.Store, s.Place.Env("MILLRACE_SIGNING_SECRET"))
	if err != nil {
		return worker.Targets{}, err
	}
	webhooks, err := worker.NewHTTP(worker.HTTPOptions{Secret: secret, AllowPrivate: s.Settings.Targets.AllowPrivate})
	if err != nil {
		return worker.Targets{}, err
	}
	return worker.Targets{HTTP: webhooks, Lambda: &lambda.Target{}}, nil
}

// sort tells rings from what is none, which comes again until SQS puts it aside.
func sort(batch []host.Message) (rings []host.Message, failures []host.Failure) {
	for _, m := range batch {
		if _, err := sqs.Parse(m.Body); err != nil {
			failures = append(failures, host.Failure{ID: m.ID, Err: err})
			continue
		}
		rings = append(rings, m)
	}
	return rings, failures
}

// run runs up to that many tasks to their ends. Rings that find nothing have done their duty.
func run(ctx context.Context, runner *worker.Runner, by queue.Claimer, tasks int) error {
	if deadline, limited := ctx.Deadline(); limited {
		within, cancel := context.WithDeadline(ctx, deadline.Add(-spare))
		defer cancel()
		ctx = within
	}
	_, err := runner.RunBatch(ctx, by, tasks)
	return err
}
