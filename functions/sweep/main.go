// Command sweep is the function that keeps the journal in order at each tick: it stores a snapshot generation when one is due,
// moves the floor that retention sets, and removes slots that were evicted long ago.
package main

import (
	"context"
	"net/http"

	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/dynamo"
)

func main() { service.Main(config.Openers{"dynamodb": dynamo.OpenPrefix}, function) }

func function(s *service.Service) host.Function {
	operations := s.API()
	f := s.Function("sweep", operations)
	f.Guard = func(next http.Handler) http.Handler { return operations.Guard(api.Operate, next) }
	f.Tick = func(ctx context.Context, _ host.Tick) error {
		_, err := s.Journal.Sweep(ctx)
		return err
	}
	return f
}
