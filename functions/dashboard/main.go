// Command dashboard is the function of the pages for people: signing in, what there is and what happened, and all acts. Pages are made from
// what the API's operations return, which run in the same process; so it may do on AWS what all functions of the API may do together, and
// each session what its token's role may do. Since it has the whole API in it, it also takes what no other function does: the description of
// the API, health, and unknown paths and methods.
package main

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/host"
	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/shared/service"
	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/shared/web"
)

func main() {
	service.MainTasks(config.Openers{"dynamodb": dynamo.OpenPrefix}, config.Notifiers{"sqs": sqs.OpenQueue}, function)
}

// patience is for a store in which each look takes some milliseconds.
const patience = time.Second

func function(_ context.Context, s *service.Tasks) (host.Function, error) {
	return s.Function("dashboard", web.New(web.Options{
		API: s.API(s.Resources()...), Tokens: s.Settings.Accepted, Store: s.Store, Journal: s.Journal, Log: s.Log,
		Mask: s.Settings.Dashboard.Mask, Proxies: s.Settings.Dashboard.Proxies, Patience: patience,
	})), nil
}
