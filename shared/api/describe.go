package api

import (
	"math"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/millrace/millrace/shared/event"
)

// This file describes the journal's operations: their parameters, bodies and responses.

const aboutEvents = `Events after the EventId given by after, oldest first; waits for the first one as long as timeout says. The response
is NonEmpty, Empty or Torn. Go on after the last event read, or after lastEventId; never after the response's own eventId.
Torn means that events after the one given have been evicted: read a snapshot and begin again.

With Accept text/event-stream or application/x-ndjson the events come as a stream until the timeout, if there is one, is
over; with application/cloudevents-batch+json as a batch. In both, a header Last-Event-ID overrides after.`

// customName matches the names of custom event types: none that begins like a built-in family, nor a snapshot's.
const customName = `(?!Order|Job|Task|FileBased|Scheduler|Stream|ObjectOverview)[A-Za-z][A-Za-z0-9_.:-]{0,254}`

// durations describes what [event.ParseDuration] takes, but for numbers of more digits.
func durations() *huma.Schema {
	const n, decimal = `\d{1,6}`, `\d{1,6}(?:\.\d{1,6})?`
	rest, units := "", []string{"ms", "s", "m", "h", "d"} // each may be followed by smaller ones
	var compound []string
	for _, unit := range units {
		compound = append(compound, n+unit+rest)
		rest = "(?:" + n + unit + ")?" + rest
	}
	const seconds = decimal + "S"
	const clock = `T(?:` + n + `H(?:` + n + `M)?(?:` + seconds + `)?|` + n + `M(?:` + seconds + `)?|` + seconds + `)`
	matching := func(forms ...string) *huma.Schema {
		return &huma.Schema{Type: "string", Pattern: "^(?:" + strings.Join(forms, "|") + ")$"}
	}
	return &huma.Schema{Title: "duration", Default: "0", AnyOf: []*huma.Schema{
		matching(decimal + `(?:d|h|m|s|ms)?`),
		matching(compound...),
		matching(`P`+clock, `P\d{1,4}W(?:`+clock+`)?`, `P(?:\d{1,4}W)?\d{1,5}D(?:`+clock+`)?`),
	}}
}

// pathForm matches one path of a query, without its leading slash.
const pathForm = `(?:[^/|*]+(?:/[^/|*]+)*(?:/\*?)?|\*)`

// returned describes the values of the parameter return for a kind: its snapshot, the statistics, or types of its
// events; for no kind, the types of every kind.
func returned(a *API, k *kind) *huma.Schema {
	types, families := []string{event.Any}, event.Families()
	var alone []any
	if k == nil || k.family == event.OrderEvent {
		alone = append(alone, event.OrderStatisticsChanged)
	}
	if k != nil {
		families = []event.Family{k.family}
		if a.offered(k.overview) == nil {
			alone = append(alone, k.overview)
		}
	}
	for _, family := range families {
		types = append(append(types, string(family)), event.TypesOf(family)...)
		if family == event.CustomEvent {
			types = append(types, customName)
		}
	}
	one := &huma.Schema{Type: "string", Title: "event type", Pattern: "^(?:" + strings.Join(types, "|") + ")$"}
	either := oneOf(listed(one, 0))
	either.Type = "array"
	if len(alone) > 0 {
		either.OneOf = append(either.OneOf, listed(&huma.Schema{Type: "string", Enum: alone}, 1))
	}
	return either
}

// listed describes a list of one element at least, and of most at most; 0 is no bound.
func listed(item *huma.Schema, most int) *huma.Schema {
	least, list := 1, listOf(item)
	list.MinItems = &least
	if most > 0 {
		list.MaxItems = &most
	}
	return list
}

// eventParams describes the query; for no kind, the parameter return may be missing.
func eventParams(a *API, k *kind) []*huma.Param {
	joined, least, most := false, float64(math.MinInt32), float64(math.MaxInt32)
	asked := &huma.Param{
		Name: "return", In: "query", Required: k != nil, Style: "form", Explode: &joined, Schema: returned(a, k),
		Description: "Event types, super types and custom types, separated by commas",
	}
	if k == nil {
		asked.Description += "; without it, all"
	} else if a.offered(k.overview) == nil {
		asked.Description += "; or " + k.overview + " for a snapshot"
	}
	return []*huma.Param{
		asked,
		{Name: "after", In: "query", Schema: eventID(""), Description: "The EventId to go on from; 0 is the beginning. " +
			"Needed for events, unless limit is negative; an event stream may say it in Last-Event-ID"},
		{Name: "timeout", In: "query", Description: "How long to wait for the first event; cut to what the host can, at most 1 h",
			Schema: durations()},
		{Name: "limit", In: "query", Description: "At most so many events; negative: the newest first, without waiting",
			Schema: &huma.Schema{Type: "integer", Format: "int32", Minimum: &least, Maximum: &most, Not: &huma.Schema{Enum: []any{0}}}},
	}
}

// eventAnswers describes the forms in which events come; others are further forms of the response in JSON.
func eventAnswers(others ...*huma.Schema) map[string]*huma.Response {
	seq := ref("Events")
	if len(others) > 0 {
		seq = oneOf(append(others, seq)...)
	}
	all := answers(http.StatusOK, typeJSON, seq)
	content := all["200"].Content
	content[typeSSE] = &huma.MediaType{Schema: text("Server-sent events; id is the EventId, data the event"),
		Example: "id: 1478257656606001\ndata: {\"eventId\":1478257656606001,\"key\":\"/a\",\"TYPE\":\"Changed\"}\n\n"}
	content[typeNDJSON] = &huma.MediaType{Schema: text("An event a line; blank lines are heartbeats")}
	content[typeBatch] = &huma.MediaType{Schema: listOf(ref("CloudEvent"))}
	return all
}

func (k *kind) describeGet(a *API) huma.Operation {
	path := &huma.Param{
		Name: "path", In: "path", Required: true, Description: "/a one object, /a/ everything below, /a/* direct children; | joins several. " +
			"The slash after the resource is the first one's; others may be escaped",
		Schema: &huma.Schema{Title: "paths", AnyOf: []*huma.Schema{
			{Type: "string", Pattern: `^[^/|*]+$`}, // the least that a generator of examples needs to know
			{Type: "string", Pattern: `^/?` + pathForm + `(?:\|/?` + pathForm + `)*$`},
		}},
	}
	op := huma.Operation{
		Method: http.MethodGet, Path: base + "/" + k.name + "/{path}", OperationID: k.name, Tags: []string{"Journal"},
		Summary:     "Snapshot and events of " + k.what,
		Description: "A snapshot, stamped with the eventId to go on from, or the events after it. " + aboutEvents,
		Parameters:  append([]*huma.Param{path}, eventParams(a, k)...),
		Responses:   eventAnswers(ref(k.overview + "s")),
		Errors:      []int{400, 404, 503},
	}
	if a.offered(k.overview) != nil {
		op.Summary, op.Description = "Events of "+k.what, aboutEvents+" This server has no snapshot of "+k.what+"."
		op.Responses = eventAnswers()
	}
	return op
}

func (k *kind) describePost(a *API) huma.Operation {
	op := k.describeGet(a)
	op.Method, op.Path, op.OperationID = http.MethodPost, base+"/"+k.name, k.name+"Query"
	op.Summary += ", by a path query"
	op.Parameters = op.Parameters[1:]
	op.RequestBody = jsonBody(ref("PathQuery"), map[string]any{"path": "/aFolder/"})
	op.Errors = []int{400, 404, 413, 415, 503}
	return op
}

// journalSchemas describes what these operations take and return.
func journalSchemas() map[string]*huma.Schema {
	all := map[string]*huma.Schema{
		"Event":      eventSchema(),
		"Key":        keySchema(),
		"Events":     seqSchema(),
		"NonEmpty":   object("Events, at least one", members{"TYPE": constant("NonEmpty"), "eventId": stamp(), "eventSnapshots": listed(ref("Event"), 0)}, false, "TYPE", "eventId", "eventSnapshots"),
		"Empty":      object("No event in time; go on after lastEventId", members{"TYPE": constant("Empty"), "eventId": stamp(), "lastEventId": eventID("The last event looked at")}, false, "TYPE", "eventId", "lastEventId"),
		"Torn":       object("Events after the one given have been evicted", members{"TYPE": constant("Torn"), "eventId": stamp()}, false, "TYPE", "eventId"),
		"CloudEvent": cloudEventSchema(),
		"PathQuery":  pathQuerySchema(),
		"Emission":   emissionSchema(),
		"Emitted":    object("The ids of the events, in their order", members{"eventIds": listOf(eventID(""))}, false, "eventIds"),
	}
	for i := range kinds {
		k := &kinds[i]
		element := object("One of the "+k.what, members{"TYPE": constant(k.overview)}, true, "TYPE")
		all[k.overview] = element
		all[k.overview+"s"] = object("The "+k.what+" as they were at eventId",
			members{k.plural: listOf(ref(k.overview)), "eventId": eventID("Go on after this")}, false, k.plural, "eventId")
	}
	return all
}

func stamp() *huma.Schema { return eventID("Time stamp of the response; never to be used as after") }

func seqSchema() *huma.Schema {
	s := oneOf(ref("NonEmpty"), ref("Empty"), ref("Torn"))
	s.Description = "What happened after the EventId given"
	return s
}

func eventSchema() *huma.Schema {
	return object("One fact. Its own fields stand beside these", members{
		"eventId": eventID("Its place in the order"), "key": ref("Key"), "TYPE": text("Its type"),
	}, true, "eventId", "TYPE")
}

func keySchema() *huma.Schema {
	s := oneOf(text(""), object("", members{"jobPath": text(""), "taskId": text("")}, false, "jobPath", "taskId"))
	s.Description = `The object: /CHAIN,ORDER of an order, {"jobPath","taskId"} of a task, Job:/NAME of a definition`
	return s
}

func cloudEventSchema() *huma.Schema {
	return object("An event as CloudEvents 1.0 has it", members{
		"specversion": constant("1.0"), "id": text("The EventId"), "source": text(""), "type": text("The event's TYPE"),
		"subject": text("The event's key"), "time": {Type: "string", Format: "date-time"},
		"datacontenttype": constant(typeJSON), "data": ref("Event"),
	}, false, "specversion", "id", "source", "type", "time", "datacontenttype", "data")
}

func pathQuerySchema() *huma.Schema {
	path := &huma.Schema{Type: "string", Title: "path", Pattern: `^/(?:` + pathForm + `)?$`}
	s := oneOf(object("Everything", nil, false),
		object("", members{"path": path}, false, "path"),
		object("", members{"paths": listed(path, event.MaxPaths)}, false, "paths"))
	s.Description = "Which objects: {} all of them, or those of a path, or of several"
	return s
}

func emissionSchema() *huma.Schema {
	shortest, longest := 1, event.MaxKey // a limit of bytes, which JSON Schema cannot say: no more characters than that fit
	one := object("An event. Its own fields stand beside these", members{
		"TYPE": {Type: "string", Pattern: `^` + customName + `$`},
		"key":  {Type: "string", Description: "The object it is about; at most 1,024 bytes", MinLength: &shortest, MaxLength: &longest},
	}, true, "TYPE")
	one.Extensions = map[string]any{"propertyNames": map[string]any{"not": map[string]any{"const": "eventId"}}}
	return listed(one, 0)
}

func emissionExample() any {
	return []any{map[string]any{"TYPE": "PackageInstalled", "key": "/packages/zlib", "version": "1.3.1"}}
}
