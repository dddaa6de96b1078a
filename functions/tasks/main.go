// Command tasks is the function that shows tasks, handlers, jobs and queues: their state, logs, lists, and why they do not run;
// and that cancels, stops, retries and removes tasks, holds handlers by rules, and suspends and purges queues. It does the same for
// orders of job chains, and adds them. It also begins acts on many orders or jobs, which the function sweep does.
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
	return s.Function("tasks", s.API(
		api.Tasks(s.Queue, s.Definitions), api.Handlers(s.Queue, s.Definitions),
		api.Jobs(s.Queue, s.Definitions), api.Queues(s.Queue, s.Definitions), api.Orders(s.Orders),
		api.Acts(s.Orders),
	)), nil
}
