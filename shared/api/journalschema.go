package api

import (
	"math"
	"net/http"
	"strings"

	"github.com/millrace/millrace/shared/event"
)

// This file describes the operations on the journal: their parameters, bodies and responses.

const aboutEvents = `Events after the EventId given by after, oldest first; waits for the first one as long as timeout says. The response
is NonEmpty, Empty or Torn. Go on after the last event read, or after lastEventId; never after the response's own eventId.
Torn means that events after the one given are no longer kept: read a snapshot and begin again.

With Accept text/event-stream or application/x-ndjson the events come as a stream until the timeout, if there is one, is
over; with application/cloudevents-batch+json as a batch. In both, a header Last-Event-ID overrides after.
The statistics of orders are one event, computed when it is asked for, in each of these forms; a stream ends with it.

Where a request that waits costs as much as one that works, a client may prefer to come back after pauses: with the header
Prefer: pause (RFC 7240) the response is immediate there, and says Preference-Applied: pause.`

// customName matches the names of custom event types: none that begins like a built-in family, nor a snapshot's.
const customName = `(?!Order|Job|Task|FileBased|Scheduler|Stream|ObjectOverview)[A-Za-z][A-Za-z0-9_.:-]{0,254}`

// durations describes what [event.ParseDuration] takes, but for numbers of more digits.
func durations() *schema {
	const n, decimal = `\d{1,6}`, `\d{1,6}(?:\.\d{1,6})?`
	rest, units := "", []string{"ms", "s", "m", "h", "d"} // each may be followed by smaller ones
	var compound []string
	for _, unit := range units {
		compound = append(compound, n+unit+rest)
		rest = "(?:" + n + unit + ")?" + rest
	}
	const seconds = decimal + "S"
	const clock = `T(?:` + n + `H(?:` + n + `M)?(?:` + seconds + `)?|` + n + `M(?:` + seconds + `)?|` + seconds + `)`
	matching := func(forms ...string) *schema {
		return &schema{Type: "string", Pattern: "^(?:" + strings.Join(forms, "|") + ")$"}
	}
	return &schema{Title: "duration", Default: "0", AnyOf: []*schema{
		matching(decimal + `(?:d|h|m|s|ms)?`),
		matching(compound...),
		matching(`P`+clock, `P\d{1,4}W(?:`+clock+`)?`, `P(?:\d{1,4}W)?\d{1,5}D(?:`+clock+`)?`),
	}}
}

// pathForm matches one path of a query, without its leading slash.
const pathForm = `(?:[^/|*]+(?:/[^/|*]+)*(?:/\*?)?|\*)`

// returned describes the values of the parameter return for a kind: its snapshot, where that is offered, the statistics, or
// types of its events; for no kind, the types of every kind.
func returned(k *kind, offered bool) *schema {
	types, families := []string{event.Any}, event.Families()
	var alone []any
	if k == nil || k.family == event.OrderEvent {
		alone = append(alone, event.OrderStatisticsChanged)
	}
	if k != nil {
		families = []event.Family{k.family}
		if offered {
			alone = append(alone, k.overview)
		}
	}
	for _, family := range families {
		types = append(append(types, string(family)), event.TypesOf(family)...)
		if family == event.CustomEvent {
			types = append(types, customName)
		}
	}
	one := &schema{Type: "string", Title: "event type", Pattern: "^(?:" + strings.Join(types, "|") + ")$"}
	either := oneOf(listed(one, 0))
	either.Type = "array"
	if len(alone) > 0 {
		either.OneOf = append(either.OneOf, listed(&schema{Type: "string", Enum: alone}, 1))
	}
	return either
}

// eventParams describes the query; for no kind, the parameter return may be missing.
func eventParams(k *kind, offered bool) params {
	asked := &param{
		Name: "return", In: "query", Required: k != nil, Style: "form", Explode: new(bool), Schema: returned(k, offered),
		Description: "Event types, super types and custom types, separated by commas",
	}
	if k == nil {
		asked.Description += "; without it, all"
	} else if offered {
		asked.Description += "; or " + k.overview + " for a snapshot"
	}
	limit := between("", math.MinInt32, math.MaxInt32)
	limit.Format, limit.Not = "int32", &schema{Enum: []any{0}}
	all := params{
		asked,
		queryParam("after", "The EventId to go on from; 0 is the beginning. "+
			"Needed for events, unless limit is negative; an event stream may say it in Last-Event-ID", false, eventID("")),
		queryParam("timeout", "How long to wait for the first event, or for the next change of the statistics; cut to what the host can, at most 1 h", false, durations()),
		queryParam("limit", "At most so many events; negative: the newest first, without waiting", false, limit),
		queryParam("until", "With a negative limit: the newest events up to this EventId, above 0", false, eventID("")),
		queryParam("with", "cause: each event also with cause, the EventId that brought it about, and by, the name of the token of whom it was an "+
			"act, where it has them; own fields of these names are left out", false, choice("", withCause)),
		lastEventID("Of a stream or a batch: the EventId to go on from, whatever after says. A client that connects again sends it by itself"),
	}
	if offered {
		all = append(all, queryParam("at", "The EventId as of which a snapshot is taken, from the oldest that is kept to the newest; "+
			"without it, the present. Not with events", false, eventID("")))
	}
	return all
}

// eventAnswers describes the forms in which events come; others are further forms of the response in JSON.
func eventAnswers(others ...*schema) responses {
	seq := ref("Events")
	if len(others) > 0 {
		seq = oneOf(append(others, seq)...)
	}
	all := answers(http.StatusOK, typeJSON, seq)
	content := all["200"].Content
	content[typeSSE] = &media{Schema: text("Server-sent events; id is the EventId, data the event"),
		Example: "id: 1478257656606001\ndata: {\"eventId\":1478257656606001,\"key\":\"/a\",\"TYPE\":\"Changed\"}\n\n"}
	content[typeNDJSON] = &media{Schema: text("An event a line; blank lines are heartbeats")}
	content[typeBatch] = &media{Schema: listOf(ref("CloudEvent"))}
	return all
}

// describeObjects describes GET of a kind of objects, as far as this server has it.
func (a *API) describeObjects(k *kind) func() *operation {
	return func() *operation {
		path := pathParam("path", "/a one object, /a/ everything below, /a/* direct children; | joins several. "+
			"The slash after the resource is the first one's; others may be escaped")
		path.Schema = &schema{Title: "paths", AnyOf: []*schema{
			{Type: "string", Pattern: `^[^/|*]+$`}, // the least that a generator of examples needs to know
			{Type: "string", Pattern: `^/?` + pathForm + `(?:\|/?` + pathForm + `)*$`},
		}}
		op := &operation{
			ID: k.name, Tags: []string{"Journal"},
			Summary:     "Snapshot and events of " + k.what,
			Description: "A snapshot, stamped with the eventId to go on from, or the events after it. " + aboutEvents,
			Responses:   eventAnswers(ref(k.overview + "s")),
			failures:    []int{404, 410, 422},
		}
		offered := a.offered(k.overview) == nil
		if !offered {
			op.Summary, op.Description = "Events of "+k.what, aboutEvents+" This server has no snapshot of "+k.what+"."
			op.Responses, op.failures = eventAnswers(), []int{404}
		}
		op.Parameters = append(params{path}, eventParams(k, offered)...)
		return op
	}
}

// describeQuery describes POST of a kind of objects.
func (a *API) describeQuery(k *kind) func() *operation {
	return func() *operation {
		op := a.describeObjects(k)()
		op.ID += "Query"
		op.Summary += ", by a path query"
		op.Parameters = op.Parameters[1:]
		op.Body = jsonBody(ref("PathQuery"), map[string]any{"path": "/aFolder/"})
		return op
	}
}

// snapshotSchema describes a kind's snapshots.
func (k *kind) snapshotSchema() *schema {
	return object("The "+k.what+" as they were at eventId",
		members{k.plural: listOf(ref(k.overview)), "eventId": eventID("Go on after this")}, false, k.plural, "eventId")
}

func nonEmptySchema() *schema {
	return object("Events, at least one", members{
		"TYPE": constant("NonEmpty"), "eventId": stamp(),
		"eventSnapshots": listed(&schema{AnyOf: []*schema{ref("Event"), ref("StatisticsEvent")}}, 0),
	}, false, "TYPE", "eventId", "eventSnapshots")
}

func emptySchema() *schema {
	return object("No event in time; go on after lastEventId", members{
		"TYPE": constant("Empty"), "eventId": stamp(), "lastEventId": eventID("The last event looked at"),
	}, false, "TYPE", "eventId", "lastEventId")
}

func tornSchema() *schema {
	return object("Events after the one given are no longer kept", members{"TYPE": constant("Torn"), "eventId": stamp()}, false, "TYPE", "eventId")
}

func stamp() *schema { return eventID("Time stamp of the response; never to be used as after") }

func eventsSchema() *schema {
	s := oneOf(ref("NonEmpty"), ref("Empty"), ref("Torn"))
	s.Description = "What happened after the EventId given"
	return s
}

func eventSchema() *schema {
	return object("One fact. Its own fields stand beside these; with=cause adds cause, an EventId, and by, a text", members{
		"eventId": eventID("Its place in the order"), "key": ref("Key"), "TYPE": text("Its type"),
	}, true, "eventId", "TYPE")
}

func keySchema() *schema {
	s := oneOf(text(""), object("", members{"jobPath": text(""), "taskId": text("")}, false, "jobPath", "taskId"))
	s.Description = `The object: /CHAIN,ORDER of an order, {"jobPath","taskId"} of a task, Job:/NAME of a definition`
	return s
}

func cloudEventSchema() *schema {
	return object("An event as CloudEvents 1.0 has it", members{
		"specversion": constant("1.0"), "id": text("The EventId"), "source": text(""), "type": text("The event's TYPE"),
		"subject": text("The event's key"), "time": {Type: "string", Format: "date-time"},
		"datacontenttype": constant(typeJSON), "data": ref("Event"),
	}, false, "specversion", "id", "source", "type", "time", "datacontenttype", "data")
}

func pathQuerySchema() *schema {
	path := &schema{Type: "string", Title: "path", Pattern: `^/(?:` + pathForm + `)?$`}
	s := oneOf(object("Everything", nil, false),
		object("", members{"path": path}, false, "path"),
		object("", members{"paths": listed(path, event.MaxPaths)}, false, "paths"))
	s.Description = "Which objects: {} all of them, or those of a path, or of several"
	return s
}

func emissionSchema() *schema {
	name, key := text(""), textOf("The object it is about; at most 1,024 bytes", 1, event.MaxKey) // no more characters than bytes fit
	name.Pattern = `^` + customName + `$`
	one := object("An event. Its own fields stand beside these", members{"TYPE": name, "key": key}, true, "TYPE")
	one.PropertyNames = &schema{Not: constant("eventId")}
	return listed(one, 0)
}

func emittedSchema() *schema {
	return object("The ids of the events, in their order", members{"eventIds": listOf(eventID(""))}, false, "eventIds")
}

func emissionExample() any {
	return []any{map[string]any{"TYPE": "PackageInstalled", "key": "/packages/zlib", "version": "1.3.1"}}
}
