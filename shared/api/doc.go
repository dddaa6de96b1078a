// Package api is the HTTP surface of Millrace: operations over the engine, described by OpenAPI 3.1, with tokens and
// roles, problem+json for every failure, request ids, logs and measurements.
//
// New answers an [http.Handler] that offers the resources it is given, so a small function can mount one of them and
// one process all:
//
//	api.New(api.Options{Tokens: tokens}, api.Emit(j), api.Events(j), api.Objects(j), api.Operations(api.Probes{}))
//
// One file per resource or concern:
//
//	api.go, route.go, exchange.go   the handler; what a resource mounts; one request and its answer
//	role.go, token.go, guard.go     who may do what
//	problem.go, codes.go            failures, and how errors map to them
//	body.go, query.go, accept.go    what a request may say
//	emit.go, flight.go              POST event, and idempotency keys under way
//	kind.go                         the kinds of objects that seed 000 asks for
//	events.go, stream.go, batch.go  reading events: as one answer, as a stream, as CloudEvents
//	snapshot.go, statistics.go      snapshots, and what is computed from them
//	engine.go, members.go, page.go  tasks: what they are asked of; strict bodies; lists and their cursors
//	synctasks.go, tasklogs.go       sync tasks (seed 001)
//	handlers.go, handlerevents.go   events for handlers (seed 002)
//	rules.go                        what holds handlers
//	why.go                          what can be asked of any task
//	streams.go, streamevent.go      appending to streams (seed 003), and the rules of their events
//	streamread.go, streamack.go     reading streams, lists of them, and consumers' offsets
//	operations.go, metrics.go       health, readiness, measurements
//	openapi.go, docs.go             the description of it all, and the page that shows it
//	describe.go, schema.go          the journal's part of the description
//
// A resource is added by a function that answers a [Resource]; it calls route for each of its operations and names the
// [Right] that each demands. Nothing else needs to change.
//
// Timeouts of the connection belong to the host's [http.Server]: ReadHeaderTimeout and ReadTimeout guard against slow
// senders, BaseContext's end lets waiting requests and streams go. This package sets a write deadline of its own where
// it waits or streams, which replaces the server's WriteTimeout for that request.
//
// The package imports journal, queue, stream and what they speak of, huma for OpenAPI, a JSON tokenizer and the standard library.
// Prometheus is in api/prom, so that functions need not link it.
package api
