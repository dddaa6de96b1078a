// Command snapshot is the function that serves objects and their events: GET and POST of order, job, jobChain, task,
// fileBased and object below /jobscheduler/master/api.
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
	return s.Function("snapshot", s.API(api.Objects(s.Journal)))
}
