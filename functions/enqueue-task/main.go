// Command enqueue-task is the function that makes tasks: POST of sync tasks, of events for handlers, and of jobs.
package main

import (
	"context"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/dynamo"
)

func main() {
	service.MainTasks(config.Openers{"dynamodb": dynamo.OpenPrefix}, config.Notifiers{"sqs": sqs.OpenQueue}, function)
}

func function(_ context.Context, s *service.Tasks) (host.Function, error) {
	return s.Function("enqueue-task", s.API(api.Enqueue(s.Queue, s.Definitions), api.Jobs(s.Queue, s.Definitions))), nil
}
