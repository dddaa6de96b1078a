package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const about = `An event journal and task scheduler. Take a snapshot, then follow the events after its eventId, and miss nothing.

Times are RFC 3339 in UTC with six decimals. EventIds are integers up to 2^53, strictly rising: microseconds since 1970.
Durations are seconds (60), or as 200ms, 60s, 5m, 1h2m3s, 7d, or ISO 8601 (PT1M). Failures are application/problem+json
with a stable code.`

// allTags are those that operations may have, in the order of the page.
var allTags = []tag{
	{"Journal", "Events in the order they happened, and snapshots to start following from."},
	{"Jobs", "Jobs of topics: adding them, searching for them, stopping and removing them."},
	{"Orders", "Orders along the nodes of job chains, as in JobScheduler: adding them, acting on them, stopping chains and nodes."},
	{"Queues", "How tasks wait and how many run: declaring, suspending and purging queues, and statistics."},
	{"Instances", "Processes in any language that claim tasks under a lease and run them."},
	{"Tasks", "Calls for any task, of whatever kind: why it is not running, and doing it again."},
	{"Sync tasks", "Bringing the collections of sources up to date, one task at a time for each."},
	{"Handlers", "Events for handlers, as Dark has them: a handler has a name in a space, such as WORKER, of a canvas. Rules hold its events."},
	{"Schedules", "Tasks at regular times, each of which is a tick of its schedule, and when a cron expression fires."},
	{"Streams", "Streams of events with one writer each. The events of one name in a stream have sequences: 1, 2, 3 and so on; the offset of a consumer is the last sequence that it has acknowledged."},
	{"Definitions", "What is declared: sources, handlers, jobs, queues, schedules and job chains, as one document."},
	{"Operations", "Whether the service is alive and well, and its measurements."},
}

var securitySchemes = map[string]securityScheme{
	"bearer": {Type: "http", Scheme: "bearer", Description: "Authorization: Bearer TOKEN"},
	"admin":  {Type: "apiKey", In: "header", Name: "X-Admin-Token", Description: "The token in a header of its own"},
	"basic":  {Type: "http", Scheme: "basic", Description: "Any name, the token as password"},
	"query":  {Type: "apiKey", In: "query", Name: "token", Description: "For GET only"},
}

// describe renders the description of what is mounted: the operations, and the tags and schemas that they use.
func (a *API) describe() []byte {
	d := &document{
		OpenAPI:    "3.1.0",
		Info:       info{"Millrace", a.version, about, license{"Apache-2.0", "Apache-2.0"}},
		Servers:    []server{{"/"}},
		Paths:      map[string]map[string]*operation{},
		Components: components{members{}, securitySchemes},
	}
	for _, r := range a.routes {
		if r.describe != nil {
			d.add(&r)
		}
	}
	d.addSchemas(d.Paths)
	for _, t := range allTags {
		if d.uses(t) {
			d.Tags = append(d.Tags, t)
		}
	}
	return rendered(d)
}

// add adds an operation at each of its paths.
func (d *document) add(r *route) {
	method, path := r.parts()
	d.put(method, path, r.operation())
	for n, other := range alsoAt(path) {
		if !described(other) {
			continue
		}
		same := r.operation()
		same.ID += "Also" + strconv.Itoa(n)
		same.Description = strings.TrimSpace(same.Description + " The same as " + path + ".")
		d.put(method, other, same)
	}
}

func (d *document) put(method, path string, op *operation) {
	if d.Paths[path] == nil {
		d.Paths[path] = map[string]*operation{}
	}
	d.Paths[path][strings.ToLower(method)] = op
}

func (d *document) uses(t tag) bool {
	for _, item := range d.Paths {
		for _, op := range item {
			if slices.Contains(op.Tags, t.Name) {
				return true
			}
		}
	}
	return false
}

// addSchemas adds the schemas that a part of the document refers to, and those that these refer to.
func (d *document) addSchemas(part any) {
	for _, piece := range strings.Split(string(rendered(part)), `"`+schemasAt)[1:] {
		name, _, _ := strings.Cut(piece, `"`)
		if d.Components.Schemas[name] == nil {
			s := schemaOf(name)
			d.Components.Schemas[name] = s
			d.addSchemas(s)
		}
	}
}

func rendered(part any) []byte {
	text, err := json.Marshal(part)
	if err != nil {
		panic(err) // a value built by this package
	}
	return text
}

// operation describes the route: what it says of itself, and what follows from its right, its body and its parameters.
func (r *route) operation() *operation {
	op := r.describe()
	statuses := append([]int{http.StatusInternalServerError}, op.failures...)
	method, _ := r.parts()
	if method == http.MethodPost || method == http.MethodPut { // of all these the body is read
		statuses = append(statuses, http.StatusBadRequest, http.StatusUnsupportedMediaType)
	}
	if method != http.MethodGet { // see [tooLong]
		statuses = append(statuses, http.StatusRequestEntityTooLarge)
	}
	for _, p := range op.Parameters {
		if p.In != "path" {
			statuses = append(statuses, http.StatusBadRequest)
		}
		if p.Name == "Idempotency-Key" {
			statuses = append(statuses, http.StatusConflict, http.StatusUnprocessableEntity)
			op.Responses.mayReplay()
		}
	}
	op.Security = []map[string][]string{}
	if r.right != Anyone {
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden, http.StatusServiceUnavailable)
		op.Security = append(op.Security, map[string][]string{"bearer": {}}, map[string][]string{"admin": {}}, map[string][]string{"basic": {}})
		if strings.HasPrefix(r.pattern, http.MethodGet) {
			op.Security = append(op.Security, map[string][]string{"query": {}})
		}
	}
	for _, status := range statuses {
		op.Responses[strconv.Itoa(status)] = failed(status)
	}
	return op
}

// mayReplay adds the header of responses that are earlier ones to those there are, which are of success.
func (all responses) mayReplay() {
	for _, r := range all {
		r.Headers["Idempotent-Replayed"] = &param{Schema: constant("true"), Description: "The request was made before: this is what came of it then"}
	}
}

// failed describes the response of a failure's status: a problem, and its headers.
func failed(status int) *response {
	r := responded(status, typeProblem, ref("Problem"))
	switch status {
	case http.StatusUnauthorized:
		r.Headers["WWW-Authenticate"] = &param{Schema: text("How to show a token"), Required: true}
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		r.Headers["Retry-After"] = &param{Schema: whole("Seconds to wait", 0)}
	}
	return r
}
