// Command emit is the function that takes events: custom ones, POST /jobscheduler/master/api/event, and those of streams,
// POST /api/v1/streams/{stream}/events. Where a stream's name holds slashes it takes acknowledgements too, since no gateway can
// tell the two apart. It wakes a worker where orders may wait for such an event.
package main

import (
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/shared/stream"
)

func main() {
	service.MainWaking(config.Openers{"dynamodb": dynamo.OpenPrefix}, config.Notifiers{"sqs": sqs.OpenQueue}, function)
}

func function(s *service.Service) host.Function {
	streams := stream.Open(stream.Options{Store: s.Store, Journal: s.Journal})
	return s.Function("emit", s.API(api.Emit(s.Journal), api.Append(streams), api.Acknowledge(streams)))
}
