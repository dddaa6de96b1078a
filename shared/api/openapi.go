package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// document returns the frame that operations are added to as they are mounted.
func document(version string) *huma.OpenAPI {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:       "Millrace",
			Version:     version,
			Description: about,
			License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: "/"}},
		Tags: []*huma.Tag{
			{Name: "Journal", Description: "Events in the order they happened, and snapshots to start following from."},
			{Name: "Jobs", Description: "Jobs of topics: adding them, searching for them, stopping and removing them."},
			{Name: "Queues", Description: "How tasks wait and how many run: declaring, suspending and purging queues, and statistics."},
			{Name: "Instances", Description: "Processes in any language that claim tasks under a lease and run them."},
			{Name: "Tasks", Description: "Calls for any task, of whatever kind: why it is not running, and doing it again."},
			{Name: "Sync tasks", Description: "Bringing the collections of sources up to date, one task at a time for each."},
			{Name: "Handlers", Description: "Events for handlers on canvases, and the rules that hold them."},
			{Name: "Schedules", Description: "Tasks at regular times, and when a cron expression fires."},
			{Name: "Streams", Description: "Streams of events with one writer each, and how far their consumers are."},
			{Name: "Definitions", Description: "What is declared: sources, handlers, jobs, queues, schedules and job chains, as one document."},
			{Name: "Operations", Description: "Whether the service is alive and well, and its measurements."},
		},
		Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
			"bearer": {Type: "http", Scheme: "bearer", Description: "Authorization: Bearer TOKEN"},
			"admin":  {Type: "apiKey", In: "header", Name: "X-Admin-Token", Description: "The token in a header of its own"},
			"basic":  {Type: "http", Scheme: "basic", Description: "Any name, the token as password"},
			"query":  {Type: "apiKey", In: "query", Name: "token", Description: "For GET only"},
		}},
	}
}

const about = `An event journal and task scheduler. Take a snapshot, then follow the events after its eventId, and miss nothing.

Times are RFC 3339 in UTC with six decimals. EventIds are integers up to 2^53, strictly rising: microseconds since 1970.
Durations are seconds (60), or as 200ms, 60s, 5m, 1h2m3s, 7d, or ISO 8601 (PT1M). Failures are application/problem+json
with a stable code.`

// described completes the description of an operation: who may call it, and what its failures look like. Statuses in
// op.Errors are those beyond the ones that any operation can return.
func described(op huma.Operation, right Right) huma.Operation {
	statuses := append([]int{http.StatusInternalServerError}, op.Errors...)
	op.Security = []map[string][]string{}
	if right != Anyone {
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden)
		op.Security = append(op.Security, map[string][]string{"bearer": {}}, map[string][]string{"admin": {}}, map[string][]string{"basic": {}})
		if op.Method == http.MethodGet {
			op.Security = append(op.Security, map[string][]string{"query": {}})
		}
	}
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	for _, status := range statuses {
		op.Responses[strconv.Itoa(status)] = failed(status)
	}
	op.Errors = nil // huma would describe them in its own way
	return op
}

// failed describes the response of a failure's status: a problem, and its headers.
func failed(status int) *huma.Response {
	r := &huma.Response{
		Description: http.StatusText(status),
		Headers:     map[string]*huma.Param{"X-Request-Id": requestIDHeader()},
		Content:     map[string]*huma.MediaType{typeProblem: {Schema: ref("Problem")}},
	}
	switch status {
	case http.StatusUnauthorized:
		r.Headers["WWW-Authenticate"] = &huma.Param{Schema: text("How to show a token"), Required: true}
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		r.Headers["Retry-After"] = &huma.Param{Schema: whole("Seconds to wait", 0)}
	}
	return r
}

func requestIDHeader() *huma.Param {
	return &huma.Param{Schema: text("The request's X-Request-Id, or a fresh one"), Required: true}
}

// describe renders the document, once all is mounted.
func (a *API) describe() []byte {
	doc := a.typed.OpenAPI()
	schemas := doc.Components.Schemas
	schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	for _, part := range []map[string]*huma.Schema{journalSchemas(), taskSchemas()} {
		maps.Copy(schemas.Map(), part)
	}
	for _, huma := range []string{"ErrorModel", "ErrorDetail"} { // its own failures, which ours replace
		delete(schemas.Map(), huma)
	}
	explainCodes(schemas.Map()["Problem"])
	body, err := json.Marshal(doc)
	if err != nil {
		panic(err) // a value built by this package
	}
	return body
}

// explainCodes adds every code to the schema, and its meaning for the page.
func explainCodes(problem *huma.Schema) {
	meanings := map[string]string{}
	for code, f := range failures {
		meanings[string(code)] = strconv.Itoa(f.status) + ": " + f.meaning
	}
	for _, name := range slices.Sorted(maps.Keys(meanings)) {
		problem.Properties["code"].Enum = append(problem.Properties["code"].Enum, name)
	}
	problem.Extensions = map[string]any{"x-codes": meanings}
}

// mountDescription mounts the document and the pages that show it. Both are open: they hold no secret.
func (a *API) mountDescription() {
	a.route(operation{
		Operation: huma.Operation{Method: http.MethodGet, Path: "/openapi.json", Hidden: true},
		handle: func(x *exchange) error {
			x.json(http.StatusOK, a.description())
			return nil
		},
	})
	a.mountDocs()
}
