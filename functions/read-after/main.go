// Command read-after is the function that serves events: those of every kind, GET /jobscheduler/master/api/event, and those
// of streams, with lists of streams and of their consumers.
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
	return s.Function("read-after", s.API(api.Events(s.Journal), api.Streams(streams)))
}
