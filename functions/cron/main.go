// Command cron is the function that looks ahead at each tick, to the tick after the next: it makes the tasks of schedules
// that fire until then, and sends notifications of the tasks that fall due, with SQS's own delay, so that tasks start at
// their time and no process looks for them in between.
package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/metric"
	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/dynamo"
)

func main() {
	service.MainTasks(config.Openers{"dynamodb": dynamo.OpenPrefix}, config.Notifiers{"sqs": sqs.OpenQueue}, function)
}

// ahead covers the time until the tick after the next: EventBridge Scheduler keeps to the minute only, so that two ticks may be
// almost two minutes apart.
const ahead = 150 * time.Second

func function(_ context.Context, s *service.Tasks) (host.Function, error) {
	operations := s.API()
	f := s.Function("cron", operations)
	f.Guard = func(next http.Handler) http.Handler { return operations.Guard(api.Operate, next) }
	f.Tick = func(ctx context.Context, _ host.Tick) error {
		until := s.Clock.Now().Add(ahead)
		declared := s.Declare(ctx)
		before := s.Schedules.Late()
		_, made := s.Schedules.Make(ctx, until)
		s.Measure(metric.Misfires, float64(s.Schedules.Late()-before))
		_, notified := s.Queue.NotifyDue(ctx, until)
		if notified == nil {
			s.Measure(metric.DueLag, s.Queue.Measures().DueLag.Seconds())
		}
		return errors.Join(declared, made, notified)
	}
	return f, nil
}
