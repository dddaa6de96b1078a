// Command define is the function of what is declared: GET and PUT /api/v1/definitions, PUT and DELETE of queues, and the
// schedules below /api/v1/schedules, with what can be done with them.
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
	return s.Function("define", s.API(
		api.Define(s.Definitions), api.Queues(s.Queue, s.Definitions),
		api.Schedules(s.Schedules, s.Queue, s.Definitions), api.Cron(),
	)), nil
}
