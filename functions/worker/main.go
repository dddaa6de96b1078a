// Command worker is the function that starts tasks when it is notified: as many as a batch of messages has notifications,
// the best that there are, whichever queue a notification names. It runs them side by side, goes on with others while there are
// some and there is time, and returns when all have ended. A notification may be for orders instead: then it lets those go on that
// can, and carries on acts on many.
package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/shared/worker"
	"github.com/millrace/millrace/shared/worker/lambda"
)

func main() {
	service.MainTasks(config.Openers{"dynamodb": dynamo.OpenPrefix}, config.Notifiers{"sqs": sqs.OpenQueue}, function)
}

// Lambda ends the process soon after the context. Tasks that still run are ended before that, in time for the engine to be told.
const (
	grace = 5 * time.Second
	spare = 2 * grace
)

// workers is how many tasks run at once; SQS hands over that many notifications at most, see BatchSize in template.yaml.
const workers = 10

func function(ctx context.Context, s *service.Tasks) (host.Function, error) {
	targets, err := targets(ctx, s)
	if err != nil {
		return host.Function{}, err
	}
	return over(s, targets), nil
}

// over returns the function that runs tasks on these targets.
func over(s *service.Tasks, targets worker.Targets) host.Function {
	hearer := hearer{notifier: s.Notifier, log: s.Log, by: queue.Claimer{Instance: s.Instance()}, runner: worker.NewRunner(worker.Options{
		Engine: s.Queue, Definitions: s.Definitions, Targets: targets, URL: s.URL(), Grace: grace, Log: s.Log, Notifier: s.Notifier,
		Workers: workers, Stopping: s.Stopping,
	})}
	operations := s.API()
	f := s.Function("worker", operations)
	f.Guard = func(next http.Handler) http.Handler { return operations.Guard(api.Operate, next) }
	f.Messages = func(ctx context.Context, batch []host.Message) []host.Failure {
		notices, failures := sort(batch)
		notices, orders := apart(notices)
		var group sync.WaitGroup
		defer group.Wait()
		if len(orders) > 0 {
			group.Go(func() { awake(ctx, s, orders) })
		}
		return append(failures, hearer.hear(ctx, notices)...)
	}
	return f
}

// targets returns the targets that a function can run tasks on: no commands, since those are for the machine that was set up for
// them.
func targets(ctx context.Context, s *service.Tasks) (worker.Targets, error) {
	webhooks, err := s.Webhooks(ctx)
	return worker.Targets{HTTP: webhooks, Lambda: &lambda.Target{}}, err
}
