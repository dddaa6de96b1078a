// Command read-after is the function that answers events of every kind: GET /jobscheduler/master/api/event.
package main

import (
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/dynamo"
)

func main() { service.Main(config.Openers{"dynamodb": dynamo.OpenPrefix}, function) }

func function(s *service.Service) host.Function {
	return s.Function("read-after", s.API(api.Events(s.Journal)))
}
