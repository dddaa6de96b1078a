// Command cron is the function that rings the bell at each tick for the tasks that fall due until the tick after the next, each
// with SQS's own delay, so that they start at their time and nobody looks for them in between.
package main

import (
	"context"
	"net/http"
	"time"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/bell/sqs"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/dynamo"
)

func main() {
	service.MainTasks(config.Openers{"dynamodb": dynamo.OpenPrefix}, config.Bells{"sqs": sqs.OpenQueue}, function)
}

// ahead covers the time until the next tick: a minute, of which a scheduler that keeps to the minute makes almost two.
const ahead = 150 * time.Second

func function(_ context.Context, s *service.Tasks) (host.Function, error) {
	operations := s.API()
	f := s.Function("cron", operations)
	f.Guard = func(next http.Handler) http.Handler { return operations.Guard(api.Operate, next) }
	f.Tick = func(ctx context.Context, _ host.Tick) error {
		_, err := s.Queue.RingDue(ctx, time.Now().Add(ahead))
		return err
	}
	return f, nil
}
