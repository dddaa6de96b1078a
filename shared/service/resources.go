package service

import (
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/stream"
)

// Resources returns all that the API has, but its health checks.
func (t *Tasks) Resources() []api.Resource {
	streams := stream.Open(stream.Options{Store: t.Store, Journal: t.Journal})
	return []api.Resource{
		api.Emit(t.Journal), api.Events(t.Journal), api.Objects(t.Journal),
		api.Enqueue(t.Queue, t.Definitions), api.Tasks(t.Queue, t.Definitions), api.Handlers(t.Queue, t.Definitions),
		api.Jobs(t.Queue, t.Definitions), api.Queues(t.Queue, t.Definitions), api.Define(t.Definitions),
		api.Append(streams), api.Streams(streams), api.Acknowledge(streams),
		api.Instances(t.Instances, t.Queue), api.Exchange(t.Exchanges),
		api.Schedules(t.Schedules, t.Queue, t.Definitions), api.Orders(t.Orders), api.Acts(t.Orders), api.Cron(),
	}
}
