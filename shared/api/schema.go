package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
)

// This file has the words of which descriptions are made: schemas, parameters, bodies and responses that many have.

// schemas are those that have a name, by which descriptions refer to them.
var schemas = map[string]func() *schema{
	"AddedJob":          addedJobSchema,
	"AddedTask":         addedTaskSchema,
	"Appended":          appendedSchema,
	"Act":               bulkSchema,
	"Beat":              beatSchema,
	"BegunAct":          begunActSchema,
	"ChainNode":         chainNodeSchema,
	"Claim":             claimSchema,
	"CloudEvent":        cloudEventSchema,
	"DefinitionChanges": definitionChangesSchema,
	"Definitions":       definitionsSchema,
	"Emission":          emissionSchema,
	"Emitted":           emittedSchema,
	"Empty":             emptySchema,
	"Event":             eventSchema,
	"EventAdded":        eventAddedSchema,
	"Events":            eventsSchema,
	"Exchange":          exchangeSchema,
	"Exchanged":         exchangedSchema,
	"FieldError":        fieldErrorSchema,
	"Fires":             firesSchema,
	"Handler":           handlerSchema,
	"HandlerEvent":      handlerEventSchema,
	"Instance":          instanceSchema,
	"InstanceChange":    instanceChangeSchema,
	"Job":               jobSchema,
	"JobSearch":         jobSearchSchema,
	"Key":               keySchema,
	"Lineage":           lineageSchema,
	"LogLine":           logLineSchema,
	"NewEvent":          newEventSchema,
	"NewInstance":       newInstanceSchema,
	"NewJob":            newJobSchema,
	"NewOrder":          newOrderSchema,
	"NewTask":           newTaskSchema,
	"NonEmpty":          nonEmptySchema,
	"OrderStatistics":   orderStatisticsSchema,
	"PathQuery":         pathQuerySchema,
	"Problem":           problemSchema,
	"Queue":             queueSchema,
	"Result":            resultSchema,
	"Schedule":          scheduleSchema,
	"Statistics":        statisticsSchema,
	"StatisticsEvent":   statisticsEventSchema,
	"StatusBody":        statusSchema,
	"StoredEvent":       storedEventSchema,
	"Stream":            streamSchema,
	"StreamConsumer":    streamConsumerSchema,
	"StreamEvent":       streamEventSchema,
	"SyncTask":          syncTaskSchema,
	"Target":            targetSchema,
	"TaskID":            taskIDSchema,
	"Torn":              tornSchema,
	"Why":               whySchema,
	"WhyOrder":          whyOrderSchema,
}

// schemaOf returns the schema of that name.
func schemaOf(name string) *schema {
	if k := kindOf(name); k != nil {
		return k.elementSchema()
	}
	if k := kindOf(strings.TrimSuffix(name, "s")); k != nil {
		return k.snapshotSchema()
	}
	return schemas[name]()
}

// schemasAt is where the document has its named schemas.
const schemasAt = "#/components/schemas/"

func ref(name string) *schema { return &schema{Ref: schemasAt + name} }

func text(doc string) *schema { return &schema{Type: "string", Description: doc} }

// textOf describes a text of least to most characters.
func textOf(doc string, least, most int) *schema {
	return &schema{Type: "string", Description: doc, MinLength: least, MaxLength: most}
}

// shortText describes a text of as many characters as a name may have.
func shortText(doc string) *schema { return textOf(doc, 1, definition.MaxName) }

// dateTime describes a time.
func dateTime(doc string) *schema {
	return &schema{Type: "string", Format: "date-time", Description: doc}
}

// span describes a duration in a document, where it may be a number too.
func span(doc string) *schema {
	return &schema{Description: doc + ". A number is seconds; or as 200ms, 60s, 5m, 1h2m3s, 7d; or ISO 8601",
		OneOf: []*schema{{Type: "number"}, {Type: "string"}}}
}

func whole(doc string, least int64) *schema {
	return &schema{Type: "integer", Description: doc, Minimum: least}
}

// between describes a whole number in a range.
func between(doc string, least, most int64) *schema {
	return &schema{Type: "integer", Description: doc, Minimum: least, Maximum: most}
}

func eventID(doc string) *schema {
	return &schema{Type: "integer", Format: "int64", Description: doc, Minimum: 0, Maximum: event.MaxID}
}

func yesNo(doc string) *schema { return &schema{Type: "boolean", Description: doc} }

func constant(value string) *schema { return choice("", value) }

func choice(doc string, words ...string) *schema {
	s := text(doc)
	for _, word := range words {
		s.Enum = append(s.Enum, word)
	}
	return s
}

func listOf(item *schema) *schema { return &schema{Type: "array", Items: item} }

// listUpTo describes a list of at most so many elements.
func listUpTo(most int, item *schema) *schema {
	return &schema{Type: "array", Items: item, MaxItems: most}
}

// listed describes a list of one element at least, and of most at most; 0 is no bound.
func listed(item *schema, most int) *schema {
	return &schema{Type: "array", Items: item, MinItems: 1, MaxItems: most}
}

func oneOf(schemas ...*schema) *schema { return &schema{OneOf: schemas} }

// object describes an object that has these members; more says whether it may have others.
func object(doc string, all members, more bool, required ...string) *schema {
	return &schema{Type: "object", Description: doc, Properties: all, Additional: more, Required: required}
}

// named describes an object whose members' names are the client's own.
func named(doc string, value *schema) *schema {
	return &schema{Type: "object", Description: doc, Additional: value}
}

func with(all, more members) members {
	for name, s := range more {
		all[name] = s
	}
	return all
}

func queryParam(name, doc string, required bool, s *schema) *param {
	return &param{Name: name, In: "query", Description: doc, Required: required, Schema: s}
}

func pathParam(name, doc string) *param {
	return &param{Name: name, In: "path", Description: doc, Required: true, Schema: &schema{Type: "string", MinLength: 1}}
}

// nameParam describes a name in the path, see [exchange.named].
func nameParam(name, doc string) *param {
	p := pathParam(name, doc)
	p.Schema.MaxLength = definition.MaxName
	return p
}

// pageParams describes limit and cursor.
func pageParams() params {
	limit := between("", 1, maxPage)
	limit.Default = defaultPage
	return params{
		queryParam("limit", "At most so many elements", false, limit),
		queryParam("cursor", "Where an earlier page ended, from its header Link", false, text("")),
	}
}

// idempotencyKey describes the header Idempotency-Key.
func idempotencyKey() *param {
	key := textOf("", 1, maxKey)
	key.Pattern = "^[!-~]+$"
	return &param{
		Name: "Idempotency-Key", In: "header", Schema: key,
		Description: "Makes the request happen once, however often it is sent within 24 h",
	}
}

// lastEventID describes the header Last-Event-ID of operations that stream. It is any text, as nothing reads it where they do not.
func lastEventID(doc string) *param {
	return &param{Name: "Last-Event-ID", In: "header", Description: doc, Schema: text("")}
}

// jsonBody describes a body that must be there.
func jsonBody(s *schema, example any) *requestBody {
	return &requestBody{Required: true, Content: map[string]*media{typeJSON: {Schema: s, Example: example}}}
}

// answers describes the one response of success.
func answers(status int, kind string, s *schema) responses {
	return responses{strconv.Itoa(status): responded(status, kind, s)}
}

func responded(status int, kind string, s *schema) *response {
	return &response{
		Description: http.StatusText(status),
		Headers:     map[string]*param{"X-Request-Id": {Schema: text("The request's X-Request-Id, or a fresh one"), Required: true}},
		Content:     map[string]*media{kind: {Schema: s}},
	}
}

// empty describes the response of an act that returns nothing.
func empty() responses {
	r := responded(http.StatusNoContent, "", nil)
	r.Content = nil
	return responses{"204": r}
}

// newOrThere describes a response that is 201 for what is new, and 200, of that meaning, for what was there already.
func newOrThere(s *schema, meaning string) responses {
	both := answers(http.StatusCreated, typeJSON, s)
	both["200"] = responded(http.StatusOK, typeJSON, s)
	both["200"].Description = meaning
	return both
}

// pageOf describes the response of a list, which may go on.
func pageOf(s *schema) responses {
	all := answers(http.StatusOK, typeJSON, s)
	all["200"].Headers["Link"] = &param{Schema: text(`Where the list goes on: <URL>; rel="next". Not there at its end`)}
	return all
}

// pageIn describes the response of a list that is the one member of an object.
func pageIn(member string, element *schema) responses {
	return pageOf(object("", members{member: listOf(element)}, false, member))
}

func problemSchema() *schema {
	code := text("Stable and machine-readable")
	meanings := map[string]string{}
	for name, f := range failures {
		code.Enum = append(code.Enum, string(name))
		meanings[string(name)] = strconv.Itoa(f.status) + ": " + f.meaning
	}
	slices.SortFunc(code.Enum, func(a, b any) int { return slices.Compare([]byte(a.(string)), []byte(b.(string))) })
	fields := listOf(ref("FieldError"))
	fields.Description = "The fields at fault"
	s := object("", members{
		"type": {Type: "string", Format: "uri-reference", Description: "Where the code is explained"}, "title": text("The status in words"),
		"status": between("", 400, 599), "detail": text("What is wrong with this request"), "code": code, "message": text("The same as detail"),
		"errors": fields, "request_id": text("The X-Request-Id of this request"),
		"retry_after": whole("In how many seconds to come back, of a problem that is a line; else the header Retry-After says so", 1),
	}, false, "type", "title", "status", "detail", "code", "message")
	s.Codes = meanings
	return s
}

func fieldErrorSchema() *schema {
	return object("", members{
		"location": text("Such as body.priority, body[2].key, query.after, path or header.Idempotency-Key"), "message": text(""),
	}, false, "location", "message")
}
