package mcp

// read is one thing that can be read from the API.
type read struct {
	name  string   // of the tool
	says  string   // what it returns
	path  string   // with {parameters}, which are required
	query []string // parameters that may be left out
	fixed string   // a query that is always there; "": none
}

// journalAPI is where JobScheduler's event API begins.
const journalAPI = "/jobscheduler/master/api"

// reads are all that can be read.
var reads = []read{
	{"why_task", "Why a task of any kind is in its state, in one sentence.", "/api/v1/jobs/{id}/why", nil, ""},
	{"list_jobs", "Jobs: those that are not finished by creation, the history newest first. type is ALL, ACTIVE, QUEUED, HISTORY, CANCELLED, SUCCEEDED, STOPPED, GIVEN_UP, ERROR or DROPPED.",
		"/api/v1/jobs", []string{"type", "topic", "limit", "cursor"}, ""},
	{"show_task", "One task of any kind: its state, attempts, times, payload and message.", "/api/v1/jobs/{id}", nil, ""},
	{"task_logs", "What a task has logged.", "/api/v1/tasks/{id}/logs", nil, ""},
	{"list_queues", "Queues, with their configuration and statistics.", "/api/v1/queues", nil, ""},
	{"topic_statistics", "Statistics of each topic.", "/api/v1/statistics/topics", nil, ""},
	{"list_orders", "Orders of job chains below a path such as /folder/, now or as of an EventId.", journalAPI + "/order/", []string{"at"}, "return=OrderOverview"},
	{"show_order", "One order: its node, state, obstacles and variables.", "/api/v1/orders/{chain}/{id}", nil, ""},
	{"why_order", "Why an order is where it is, in one sentence.", "/api/v1/orders/{chain}/{id}/why", nil, ""},
	{"list_chains", "Job chains with their states.", journalAPI + "/jobChain/", []string{"at"}, "return=JobChainOverview"},
	{"read_journal", "Events of the journal after an EventId, oldest first; without after and with a negative limit the newest, newest first. return is a list of types, such as Event or TaskEnded,OrderEvent.",
		journalAPI + "/event?return={return}", []string{"after", "limit"}, "with=cause"},
	{"event_lineage", "What has led to an event, and what it has led to.", journalAPI + "/journal/cause/{eventId}", nil, ""},
	{"list_schedules", "Schedules: when they fire next, and how the last tick ended.", "/api/v1/schedules", []string{"limit", "cursor"}, ""},
	{"list_handlers", "Handlers of a canvas, with their states and counts.", "/api/v1/canvases/{canvas}/handlers", nil, ""},
	{"list_instances", "The processes that run tasks.", "/api/v1/instances", nil, ""},
	{"list_streams", "Streams, with their owners and event names.", "/api/v1/streams", []string{"limit", "cursor"}, ""},
	{"list_consumers", "How far the consumers of a stream are.", "/api/v1/consumers?stream={stream}", nil, ""},
	{"show_definitions", "What is declared.", "/api/v1/definitions", nil, ""},
	{"show_act", "How far an act on many is.", "/api/v1/acts/{id}", nil, ""},
	{"cron_next", "When a cron expression fires next, and what it means.", "/api/v1/cron/next?expr={expr}", []string{"tz", "count"}, ""},
}
