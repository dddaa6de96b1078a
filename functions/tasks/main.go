// Command tasks is the function that shows tasks, handlers, jobs and queues: their state, logs, lists, and why they do not run;
// and that cancels, stops, retries and removes tasks, holds handlers by rules, and suspends and purges queues. It does the same for
// orders of job chains, and adds them; messages of a queue that tell of new objects in S3 start orders too. It also begins acts on
// many orders or jobs, which the function sweep does.
package main

import (
	"context"
	"net/http"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/fileorder"
	"github.com/millrace/millrace/shared/fileorder/s3"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/dynamo"
)

func main() {
	service.MainTasks(config.Openers{"dynamodb": dynamo.OpenPrefix}, config.Notifiers{"sqs": sqs.OpenQueue}, function)
}

func function(_ context.Context, s *service.Tasks) (host.Function, error) {
	operations := s.API(
		api.Tasks(s.Queue, s.Definitions), api.Handlers(s.Queue, s.Definitions),
		api.Jobs(s.Queue, s.Definitions), api.Queues(s.Queue, s.Definitions), api.Orders(s.Orders),
		api.Acts(s.Orders),
	)
	f := s.Function("tasks", operations)
	f.Guard = func(next http.Handler) http.Handler { return operations.Guard(api.Operate, next) }
	bucket := fileorder.Bucket{Orders: s.Orders, Definitions: s.Definitions, Objects: s3.New(nil), Log: s.Log}
	f.Messages = func(ctx context.Context, batch []host.Message) (failures []host.Failure) {
		for _, m := range batch {
			if err := bucket.Receive(ctx, m.Body); err != nil {
				failures = append(failures, host.Failure{ID: m.ID, Err: err})
			}
		}
		return failures
	}
	return f, nil
}
