// Package api is the HTTP surface of Millrace: operations over the engine, described by OpenAPI 3.1, with tokens and
// roles, problem+json for every failure, request ids, logs and measurements.
//
// New returns an [http.Handler] that offers the resources it is given, so a small function can mount one of them and
// one process all:
//
//	api.New(api.Options{Tokens: tokens}, api.Emit(j), api.Events(j), api.Objects(j), api.Operations(api.Probes{}))
//
// routes.go is the table of all operations: each line has its method and path, the right that it demands, the handler, and
// the function that describes it, which stands beside the handler. To add an operation is to add a line, a handler and a
// description; schemas that several descriptions use have a line in schema.go.
//
// One file per resource or concern:
//
//	routes.go, route.go             the table; what a line of it is, and how the mux takes it
//	api.go, exchange.go             the handler of them all; one request and its response
//	slashes.go, unready.go          names whose slashes came unescaped; a server that is not ready yet
//	role.go, token.go, guard.go     what each role may do; whose request it is
//	cors.go                         pages of other origins
//	problem.go, codes.go            failures, and how errors map to them
//	body.go, query.go, accept.go    what a request may say
//	whole.go, prefer.go             whole numbers; requests that wait where waiting costs
//	members.go, page.go, buffer.go  strict bodies; lists and their cursors; memory for responses
//	emit.go, flight.go              POST event, and idempotency keys under way
//	lines.go, linecalls.go          bodies of lines, and operations of which each line is a call
//	emitlines.go                    POST event with a body of lines, many of which are one append
//	kind.go                         the kinds of objects that JobScheduler's event API has
//	events.go, stream.go, batch.go  reading events: as one response, as a stream, as CloudEvents
//	cause.go                        what has led to an event, and what it has led to
//	snapshot.go, statistics.go      snapshots, and what is computed from them
//	journalschema.go                the journal's part of the description
//	overviewschema.go               orders, chains and statistics in it
//	engine.go, why.go               what tasks are asked of; what can be asked of any task
//	synctasks.go, tasklogs.go       sync tasks, and the logs of any task
//	handlers.go, handlerevents.go   events for handlers
//	rules.go                        the rules that hold handlers
//	jobs.go, newjob.go              jobs of topics; what a client says of a new one
//	jobjson.go                      how those that were added are written
//	taskbatch.go                    many jobs, or sync tasks, by one request
//	joblist.go, template.go         lists of jobs, and searching by templates
//	queues.go, queuestatistics.go   queues, and what their tasks have come to
//	schedules.go, cron.go           schedules, and when an expression fires
//	orders.go, answer.go            orders of job chains, and answers to their prompts
//	orderacts.go                    moving orders to other versions of their chains
//	acts.go                         acts on all orders or jobs that a filter selects
//	instances.go, leases.go         processes that claim tasks and run them
//	claims.go                       the tasks that an instance is given, as it gets them
//	exchanges.go                    one request for all that an instance runs
//	instanceschema.go               their part of the description
//	definitions.go, declare.go      what is declared, as a whole and object by object
//	definitionschema.go             its part of the description
//	chainschema.go                  that of job chains
//	streams.go, streamevent.go      appending to streams, and the rules of their events
//	streamread.go, streamlist.go    reading streams, and lists of them
//	streamack.go, streamschema.go   consumers' offsets; their part of the description
//	within.go                       requests within the process, such as a dashboard makes
//	operations.go, metrics.go       health, readiness, measurements
//	description.go, docs.go         the description of what is mounted, and the page that shows it
//	openapi.go, schema.go           the parts of OpenAPI that it uses; what many descriptions have
//
// The dialects in which clients speak of tasks and events are in docs/dialects.md.
//
// Timeouts of the connection belong to the host's [http.Server]: ReadHeaderTimeout and ReadTimeout guard against slow
// senders, BaseContext's end lets waiting requests and streams go. This package sets a write deadline of its own where
// it waits or streams, which replaces the server's WriteTimeout for that request.
//
// The package imports access, clock, cron, definition, strict, event, exchanges, journal, order, projection, queue, queue/rule,
// queue/tasklog, queue/view, schedule, stream, task and membership, a JSON tokenizer, a handler for CORS and the standard library. Prometheus is in
// api/prom, so that functions need not link it.
package api
