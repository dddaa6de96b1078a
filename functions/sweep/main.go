// Command sweep is the function that keeps the store in order at each tick. Of the journal, it stores a snapshot generation
// when one is due, moves the floor that retention sets, and removes slots that were evicted long ago. Of the tasks, it
// takes back those whose lease has run out, releases those that nothing holds any longer, and sends notifications of
// those that are ready. Of the orders, it does what is due, and puts away the objects of S3 whose orders are at their ends.
package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/fileorder"
	"github.com/millrace/millrace/shared/fileorder/s3"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/metric"
	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/dynamo"
)

func main() {
	service.MainTasks(config.Openers{"dynamodb": dynamo.OpenPrefix}, config.Notifiers{"sqs": sqs.OpenQueue}, function)
}

func function(_ context.Context, s *service.Tasks) (host.Function, error) {
	operations := s.API()
	f := s.Function("sweep", operations)
	f.Guard = func(next http.Handler) http.Handler { return operations.Guard(api.Operate, next) }
	bucket := fileorder.Bucket{Orders: s.Orders, Definitions: s.Definitions, Objects: s3.New(nil), Log: s.Log}
	f.Tick = func(ctx context.Context, _ host.Tick) error {
		swept, tasks := s.Queue.Sweep(ctx) // first, since tasks wait for it
		if tasks == nil {
			s.Measure(metric.OldestWait, s.Queue.Measures().OldestWait.Seconds())
		}
		s.Measure(metric.LeasesLost, float64(swept.Lost))
		return errors.Join(tasks, s.Orders.Sweep(ctx), s.Orders.Match(ctx), s.SweepJournal(ctx), putAway(ctx, &bucket))
	}
	return f, nil
}

// objectsTime is how long objects are put away in one tick: what is left, the next one does.
const objectsTime = 30 * time.Second

func putAway(ctx context.Context, bucket *fileorder.Bucket) error {
	ctx, cancel := context.WithTimeout(ctx, objectsTime)
	defer cancel()
	return bucket.PutAway(ctx)
}
