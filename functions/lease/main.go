// Command lease is the function for processes elsewhere that run tasks: they register as instances, claim tasks, and report
// progress and results. Targets that responded with 202 to a task report here too.
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
	return s.Function("lease", s.API(api.Instances(s.Instances, s.Queue), api.Exchange(s.Exchanges))), nil
}
