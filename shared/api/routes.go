package api

import (
	"net/http"

	"github.com/millrace/millrace/shared/order"
)

// This file is the table of all operations: what is called, the right that it demands, what it does, and what describes it.
// Each function returns one part of the API, which a function of AWS Lambda may offer alone.

// Emit mounts POST event: custom events, appended all at once or not at all.
func Emit(j Emitter) Resource {
	e := &emission{journal: j}
	return calls{
		{emitRoute, Produce, e.emit, describeEmit},
	}
}

// Events mounts GET event: the events of all kinds of objects, as one response, a stream or a batch; and what has led to one of
// them.
func Events(j Reader) Resource {
	r := &journalReading{journal: j}
	return calls{
		{"GET /jobscheduler/master/api/event", Read, r.events, describeEvents},
		{"GET /jobscheduler/master/api/journal/cause/{eventId}", Read, r.lineage, describeLineage},
	}
}

// Objects mounts the calls about each kind of object, GET with a path and POST with a path query: snapshots, and the
// events that change them.
func Objects(j Reader) Resource { return &journalReading{journal: j} }

func (r *journalReading) routes(a *API) (all []route) {
	for i := range kinds {
		k := &kinds[i]
		all = append(all,
			route{"GET /jobscheduler/master/api/" + k.name + "/{path}", Read, r.objects(k), a.describeObjects(k)},
			route{"POST /jobscheduler/master/api/" + k.name, Read, r.query(k), a.describeQuery(k)},
		)
	}
	return all
}

// Enqueue mounts the calls that make tasks: POST of sync tasks, and of events for handlers.
func Enqueue(e Engine, d Definitions) Resource {
	s := &submission{engine: e, definitions: d}
	return calls{
		{"POST /api/v1/tasks", Produce, bare(s.sync), describeSync}, // these also at /tasks
		{"POST /api/v1/tasks:batch", Produce, byLine(s.syncs), describeSyncBatch},
		{"POST /api/v1/canvases/{canvas}/handlers/{space}/{name}/events", Produce, s.event, describeEmitToHandler},
		{"POST /api/v1/canvases/{canvas}/handlers/{space}/{name}/events:batch", Produce, s.events, describeEmitBatchToHandler},
	}
}

// Tasks mounts the calls about tasks: sync tasks one by one and by their source, and cancelling them; for any task its
// log, why it is not running, and doing it again.
func Tasks(e Engine, d Definitions) Resource {
	t := &taskReading{engine: e, definitions: d}
	return calls{
		{"GET /api/v1/tasks", Read, t.listSync, describeSyncTasks}, // these also at /tasks
		{"GET /api/v1/tasks/{id}", ReadTask, t.showSync, describeSyncTask},
		{"POST /api/v1/tasks/{id}/cancel", Operate, bare(t.cancel), describeCancel},
		{"GET /api/v1/tasks/{id}/logs", Read, t.logs, describeLogs},
		{"GET /api/v1/jobs/{id}/why", Read, t.why, describeWhy},
		{"POST /api/v1/jobs/{id}/retry", Operate, bare(t.retry), describeRetry},
	}
}

// Handlers mounts the calls about handlers, as Dark has them: their events, their state, and the rules that hold them.
// Operators pause, admins block.
func Handlers(e Engine, d Definitions) Resource {
	h := &handlerReading{engine: e, definitions: d}
	return calls{
		{"GET /api/v1/canvases/{canvas}/events/{id}", ReadTask, h.event, describeHandlerEvent},
		{"GET /api/v1/canvases/{canvas}/handlers/{space}/{name}/events", Read, h.events, describeHandlerEvents},
		{"GET /api/v1/canvases/{canvas}/handlers", Read, h.handlers, describeHandlers},
		{"PUT /api/v1/canvases/{canvas}/handlers/{space}/{name}/rules/pause", Operate, bare(h.pause), describePause},
		{"DELETE /api/v1/canvases/{canvas}/handlers/{space}/{name}/rules/pause", Operate, h.unpause, describeUnpause},
		{"PUT /api/v1/canvases/{canvas}/handlers/{space}/{name}/rules/block", Administer, bare(h.block), describeBlock},
		{"DELETE /api/v1/canvases/{canvas}/handlers/{space}/{name}/rules/block", Administer, h.unblock, describeUnblock},
	}
}

// Jobs mounts the jobs of topics, as in Sling's job handling: adding, showing, listing, searching, stopping and removing them.
func Jobs(e JobEngine, d Definitions) Resource {
	j := &jobs{submission: submission{engine: e, definitions: d}, jobEngine: e}
	return calls{
		{"POST /api/v1/jobs", Produce, j.add, describeAddJob},
		{"POST /api/v1/jobs:batch", Produce, byLine(j.addAll), describeAddJobs},
		{"GET /api/v1/jobs", Read, j.list, describeJobs},
		{"POST /api/v1/jobs/search", Read, j.search, describeSearchJobs},
		{"GET /api/v1/jobs/search", Anyone, nil, nil}, // or it would be the job of that id
		{"DELETE /api/v1/jobs/search", Anyone, nil, nil},
		{"GET /api/v1/jobs/{id}", ReadTask, j.show, describeJob},
		{"DELETE /api/v1/jobs/{id}", Operate, j.remove, describeRemoveJob},
		{"POST /api/v1/jobs/{id}/stop", Operate, bare(j.stop), describeStopJob},
	}
}

// Queues mounts the queues, as in Sling's job handling: their configuration, suspending and purging them, and statistics.
func Queues(e QueueEngine, b QueueBook) Resource {
	q := &queues{engine: e, catalog: b}
	return calls{
		{"GET /api/v1/queues", Read, q.list, describeQueues},
		{"GET /api/v1/queues/{name}", Read, q.get, describeQueue},
		{"PUT /api/v1/queues/{name}", Administer, q.put, describePutQueue},
		{"DELETE /api/v1/queues/{name}", Administer, q.remove, describeDeleteQueue},
		{"POST /api/v1/queues/{name}/suspend", Operate, bare(q.suspend), describeSuspendQueue},
		{"POST /api/v1/queues/{name}/resume", Operate, bare(q.resume), describeResumeQueue},
		{"POST /api/v1/queues/{name}/purge", Operate, bare(q.purge), describePurgeQueue},
		{"GET /api/v1/statistics", Read, q.total, describeStatistics},
		{"GET /api/v1/statistics/topics", Read, q.topics, describeTopicStatistics},
	}
}

// Instances mounts what processes elsewhere need to run tasks: registering and heartbeats, claims, and leases.
func Instances(t Membership, l Leaser) Resource {
	r := &remote{membership: t, leases: l}
	return calls{
		{"POST /api/v1/instances", Work, r.register, describeRegister},
		{"GET /api/v1/instances", ReadInstance, r.list, describeInstances},
		{"PUT /api/v1/instances/{id}", Work, r.heartbeat, describeHeartbeat},
		{"DELETE /api/v1/instances/{id}", Work, r.leave, describeLeave},
		{"POST /api/v1/instances/{id}/drain", Operate, bare(r.drain), describeDrain},
		{"POST /api/v1/instances/{id}/claims", Work, r.claim, describeClaim},
		{"POST /api/v1/leases/{token}/heartbeat", Work, r.beat, describeBeat},
		{"POST /api/v1/leases/{token}/complete", Work, r.complete, describeComplete},
	}
}

// Exchange mounts the exchanges of instances: all that one has to say, and all that there is for it, in one request.
func Exchange(e Exchanger) Resource {
	r := &exchanging{e}
	return calls{{"POST /api/v1/instances/{id}/exchange", Work, byLine(r.exchange), describeExchange}}
}

// Schedules mounts the schedules: what they are and when they fire, declaring them, and acting on them.
func Schedules(s Scheduler, e Engine, b Editor) Resource {
	c := &scheduling{schedules: s, tasks: e, catalog: b}
	return calls{
		{"GET /api/v1/schedules", Read, c.list, describeSchedules},
		{"GET /api/v1/schedules/{name}", Read, c.get, describeSchedule},
		{"PUT /api/v1/schedules/{name}", Administer, c.put, describePutSchedule},
		{"DELETE /api/v1/schedules/{name}", Administer, c.delete, describeDeleteSchedule},
		{"POST /api/v1/schedules/{name}/suspend", Operate, bare(c.suspend), describeSuspendSchedule},
		{"POST /api/v1/schedules/{name}/resume", Operate, bare(c.resume), describeResumeSchedule},
		{"POST /api/v1/schedules/{name}/trigger", Operate, bare(c.trigger), describeTrigger},
		{"POST /api/v1/schedules/{name}/backfill", Operate, c.backfill, describeBackfill},
	}
}

// Orders mounts the orders of job chains, as in JobScheduler: adding them, showing them, acting on them and on their chains.
func Orders(e OrderEngine) Resource {
	o := &ordering{orders: e}
	node := members{"node": textOf("Id of the node", 1, maxBody)}
	return calls{
		{"POST /api/v1/orders/{chain}", Produce, o.add, describeAddOrder},
		{"GET /api/v1/orders/{chain}/{id}", Read, o.show, describeOrder},
		{"GET /api/v1/orders/{chain}/{id}/why", Read, o.why, describeWhyOrder},
		{"DELETE /api/v1/orders/{chain}/{id}", Operate, o.act(order.Remove), describeAct(order.Remove, "Remove an order, once its running step has ended", nil)},
		{"POST /api/v1/orders/{chain}/{id}/suspend", Operate, o.act(order.Suspend), describeAct(order.Suspend, "Keep an order where it is", nil)},
		{"POST /api/v1/orders/{chain}/{id}/resume", Operate, o.act(order.Resume, "variables"),
			describeAct(order.Resume, "Let a suspended order go on, with changed variables if given", members{"variables": variablesSchema()})},
		{"POST /api/v1/orders/{chain}/{id}/set-node", Operate, o.act(order.SetNode, "node"), describeAct(order.SetNode, "Send an order to a node", node, "node")},
		{"POST /api/v1/orders/{chain}/{id}/skip", Operate, o.act(order.Skip), describeAct(order.Skip, "Let an order pass the node where it is", nil)},
		{"POST /api/v1/orders/{chain}/{id}/reset", Operate, o.act(order.Reset), describeAct(order.Reset, "Send an order back to its first node, resumed", nil)},
		{"POST /api/v1/orders/{chain}/{id}/run-now", Operate, o.act(order.RunNow), describeAct(order.RunNow, "Let an order wait for no time", nil)},
		{"POST /api/v1/orders/{chain}/{id}/answer", Respond, o.answer, describeAnswerOrder},
		{"POST /api/v1/orders/{chain}/{id}/move", Operate, o.act(order.Move, "version"), describeMoveOrder},
		{"POST /api/v1/chains/{chain}/stop", Operate, bare(o.stop), describeStopChain},
		{"POST /api/v1/chains/{chain}/start", Operate, bare(o.start), describeStartChain},
		{"POST /api/v1/chains/{chain}/nodes/{node}/action", Operate, o.setAction, describeNodeAction},
	}
}

// Acts mounts acts on all orders or jobs that a filter selects: beginning, showing, stopping and resuming them.
func Acts(e BulkEngine) Resource {
	k := &bulking{engine: e}
	return calls{
		{"POST /api/v1/orders:act", Operate, k.onOrders, describeActOnOrders},
		{"POST /api/v1/jobs:act", Operate, k.onJobs, describeActOnJobs},
		{"GET /api/v1/acts/{id}", Read, k.show, describeBulk},
		{"POST /api/v1/acts/{id}/stop", Operate, bare(k.stop), describeStopBulk},
		{"POST /api/v1/acts/{id}/resume", Operate, bare(k.resume), describeResumeBulk},
	}
}

// Cron mounts GET cron/next: when an expression fires, and what it means. It needs nothing that is stored.
func Cron() Resource {
	return calls{
		{"GET /api/v1/cron/next", Read, fires, describeCron},
	}
}

// Append mounts the calls that append to streams: one event, and several at once.
func Append(s Appender) Resource {
	p := &appending{streams: s}
	return calls{
		{"POST /api/v1/streams/{stream}/events", Produce, p.one, describeAppend},
		{"POST /api/v1/streams/{stream}/events:batch", Produce, byLine(p.batch), describeAppendBatch},
	}
}

// Streams mounts the calls that read streams: a consumer's events, and lists.
func Streams(s StreamReader) Resource {
	r := &streamReading{s}
	return calls{
		{"GET /api/v1/streams", ReadStream, r.list, describeStreams},
		{"GET /api/v1/streams/{stream}", ReadStream, r.stream, describeStream},
		{"GET /api/v1/streams/{stream}/events", ReadStream, r.events, describeReadStream},
		{"GET /api/v1/events/{id}", ReadStream, r.event, describeStreamEvent},
		{"GET /api/v1/consumers", ReadStream, r.consumers, describeConsumers},
	}
}

// Acknowledge mounts the calls by which consumers of streams move their offsets.
func Acknowledge(o Offsets) Resource {
	m := &moving{o}
	return calls{
		{"POST /api/v1/streams/{stream}/events/{id}", Consume, m.acknowledge, describeAcknowledge},
		{"POST /api/v1/streams/{stream}/offsets", Consume, m.move, describeMove},
	}
}

// Define mounts GET and PUT definitions.
func Define(b Catalog) Resource {
	d := &defining{catalog: b}
	return calls{
		{"GET /api/v1/definitions", Read, d.show, describeDefinitions},
		{"PUT /api/v1/definitions", Administer, d.put, describePutDefinitions},
	}
}

// Operations mounts /healthz and /readyz, which are open and tell nothing of what is stored, and /metrics.
func Operations(p Probes) Resource {
	all := calls{
		{"GET /healthz", Anyone, healthy, describeHealth},
		{"GET /readyz", Anyone, p.ready, describeReady},
	}
	if p.Metrics == nil {
		return all
	}
	right := Read // the names of routes and operations, and how much is done, are not for everybody
	if p.OpenMetrics {
		right = Anyone
	}
	return append(all, route{"GET /metrics", right, p.metrics, describeMetrics})
}

// documentation is mounted on every API. It is open: it holds no secret.
type documentation struct{}

func (documentation) routes(a *API) []route {
	return []route{
		{"GET /openapi.json", Anyone, a.openAPI, nil},
		{"GET /docs", Anyone, page("docs/index.html", "text/html; charset=utf-8"), nil},
		{"GET /docs/style.css", Anyone, page("docs/style.css", "text/css; charset=utf-8"), nil},
		{"GET /docs/reference.js", Anyone, page("docs/reference.js", "text/javascript; charset=utf-8"), nil},
	}
}

// openAPI responds with the description of what is mounted.
func (a *API) openAPI(x *exchange) error {
	x.json(http.StatusOK, a.description())
	return nil
}
