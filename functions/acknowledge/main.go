// Command acknowledge is the function by which consumers of streams move their offsets: acknowledging an event, and moving
// an offset backward or forward.
package main

import (
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/shared/stream"
)

func main() { service.Main(config.Openers{"dynamodb": dynamo.OpenPrefix}, function) }

func function(s *service.Service) host.Function {
	streams := stream.Open(stream.Options{Store: s.Store, Journal: s.Journal})
	return s.Function("acknowledge", s.API(api.Acknowledge(streams)))
}
