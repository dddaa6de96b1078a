package api

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
)

// QueueEngine keeps queues; a [queue.Queue] is one.
type QueueEngine interface {
	Suspend(ctx context.Context, name string, on bool) error
	Suspended(ctx context.Context) (map[string]time.Time, error)
	Purge(ctx context.Context, name string) (dropped int, err error)
	Statistics(ctx context.Context, prefix string) (map[string]queue.Statistics, error)
	QueueStatistics(ctx context.Context) (map[string]queue.Statistics, error)
}

// QueueBook returns what is declared, and changes it; a [definition.Catalog] is one.
type QueueBook interface {
	Definitions
	Editor
}

const (
	queuesPath = v1 + "/queues"
	queuePath  = queuesPath + "/{name}"
)

// queues is what the operations on queues share.
type queues struct {
	engine  QueueEngine
	catalog QueueBook
}

// Queues mounts the queues, as in Sling's job handling: their configuration, suspending and purging them, and statistics.
func Queues(e QueueEngine, b QueueBook) Resource {
	return func(a *API) {
		schemas := a.typed.OpenAPI().Components.Schemas.Map()
		schemas["Queue"], schemas["Statistics"] = queueSchema(), statisticsSchema()
		q := &queues{engine: e, catalog: b}
		q.mountDeclared(a)
		q.mountActs(a)
		q.mountStatistics(a)
	}
}

// mountQueue mounts an operation on queues, with the parameter name where its path has one.
func mountQueue(a *API, op huma.Operation, right Right, h func(*exchange) error) {
	op.Tags = []string{"Queues"}
	if op.Path != queuesPath {
		op.Parameters = append(op.Parameters, pathParam("name", "The queue's name, escaped"))
	}
	a.route(operation{Operation: op, right: right, handle: h})
}

func (q *queues) mountDeclared(a *API) {
	one := answers(http.StatusOK, typeJSON, ref("Queue"))
	put := maps.Clone(one)
	maps.Copy(put, answers(http.StatusCreated, typeJSON, ref("Queue")))
	mountQueue(a, huma.Operation{
		Method: http.MethodGet, Path: queuesPath, OperationID: "queues", Summary: "All queues",
		Description: "Those that are declared, those that are always there, and those that have had tasks.", Parameters: pageParams(),
		Responses: pageOf(object("", members{"queues": listOf(ref("Queue"))}, false, "queues")), Errors: []int{400, 503},
	}, Read, q.list)
	mountQueue(a, huma.Operation{
		Method: http.MethodGet, Path: queuePath, OperationID: "queue", Summary: "A queue", Responses: one, Errors: []int{404, 503},
	}, Read, q.get)
	mountQueue(a, huma.Operation{
		Method: http.MethodPut, Path: queuePath, OperationID: "putQueue", Summary: "Declare a queue",
		Description: "{0} in the name stands for the part of a topic that the queue's pattern leaves open, so that each such part has a queue of its own.",
		RequestBody: jsonBody(declaredQueue(), map[string]any{"topics": []string{"mail/*"}, "type": "ordered"}),
		Responses:   put, Errors: []int{400, 413, 415, 422, 503},
	}, Administer, q.put)
	mountQueue(a, huma.Operation{
		Method: http.MethodDelete, Path: queuePath, OperationID: "deleteQueue", Summary: "Remove the declaration of a queue",
		Description: "Its tasks stay in it, and run as in a queue with default settings.", Responses: empty(), Errors: []int{404, 503},
	}, Administer, q.remove)
}

func (q *queues) mountActs(a *API) {
	act := func(name, id, summary, description string, responses map[string]*huma.Response, h func(*exchange) error) {
		mountQueue(a, huma.Operation{
			Method: http.MethodPost, Path: queuePath + "/" + name, OperationID: id, Summary: summary, Description: description,
			Responses: responses, Errors: []int{400, 503},
		}, Operate, h)
	}
	act("suspend", "suspendQueue", "Keep a queue's tasks from being started", "Tasks that run go on. A queue may be suspended before it is declared. A name with {0} means all queues of that family, also "+
		"those to come; a member that is suspended by itself as well stays so when the family is resumed.",
		empty(), q.suspend(true))
	act("resume", "resumeQueue", "Let a queue's tasks be started again", "", empty(), q.suspend(false))
	act("purge", "purgeQueue", "Drop the tasks of a queue that wait", "They go to the history as DROPPED. Tasks that run go on.",
		answers(http.StatusOK, typeJSON, object("", members{"dropped": whole("How many", 0)}, false, "dropped")), q.purge)
}

// queueView is a queue as clients see it: its declaration, as in the definitions, and its state.
type queueView struct {
	configuration json.RawMessage
	standing
}

type standing struct {
	Suspended      bool           `json:"suspended"`
	SuspendedSince string         `json:"suspended_since,omitempty"`
	Statistics     statisticsView `json:"statistics"`
}

// MarshalJSON returns one object with the members of both.
func (v queueView) MarshalJSON() ([]byte, error) {
	rest, err := json.Marshal(v.standing)
	if err != nil {
		return nil, err
	}
	return slices.Concat(v.configuration[:len(v.configuration)-1], []byte{','}, rest[1:]), nil
}

// look returns the queues whose names are wanted, by name.
func (q *queues) look(ctx context.Context, wanted func(name string) bool) (map[string]queueView, error) {
	set, err := q.catalog.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	suspended, err := q.engine.Suspended(ctx)
	if err != nil {
		return nil, err
	}
	counted, err := q.engine.QueueStatistics(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{definition.MainQueue: true, definition.SyncQueue: true, definition.EventQueue: true}
	for i := range set.Queues {
		names[set.Queues[i].Name] = true
	}
	for name := range suspended {
		names[name] = true
	}
	for name := range counted {
		names[name] = true
	}
	views := map[string]queueView{}
	for name := range names {
		if !wanted(name) {
			continue
		}
		v := queueView{configuration: set.QueueOf(name).JSON(), standing: standing{Statistics: viewStatistics(counted[name])}}
		since, is := suspended[name]
		if family, of := set.FamilyOf(name); of && !is {
			since, is = suspended[family]
		}
		if is {
			v.Suspended, v.SuspendedSince = true, formatTime(since)
		}
		views[name] = v
	}
	return views, nil
}

func (q *queues) list(x *exchange) error {
	query, limit, cursor, err := x.paging()
	if err != nil {
		return err
	}
	all, err := q.look(x.r.Context(), func(name string) bool { return name > cursor })
	if err != nil {
		return err
	}
	views := []queueView{}
	for _, name := range keysAfter(x, query, all, cursor, limit) {
		views = append(views, all[name])
	}
	return x.value(http.StatusOK, map[string][]queueView{"queues": views})
}

func (q *queues) get(x *exchange) error { return q.show(x, http.StatusOK) }

func (q *queues) show(x *exchange, status int) error {
	name := x.r.PathValue("name")
	all, err := q.look(x.r.Context(), func(other string) bool { return other == name })
	if err != nil {
		return err
	}
	v, there := all[name]
	if !there {
		return noQueue(name)
	}
	return x.value(status, v)
}

func noQueue(name string) error {
	return problem(CodeNotFound, "there is no queue %s", quoted(name))
}

func (q *queues) put(x *exchange) error {
	name, err := x.named("name")
	if err != nil {
		return err
	}
	return x.put(q.catalog, name, (*definition.Set).PutQueue, q.show)
}

func (q *queues) remove(x *exchange) error {
	name := x.r.PathValue("name")
	there, err := x.remove(q.catalog, name, (*definition.Set).WithoutQueue)
	if err != nil {
		return err
	}
	if !there {
		return noQueue(name)
	}
	return x.done()
}

func (q *queues) suspend(on bool) func(*exchange) error {
	return func(x *exchange) error {
		name, err := x.named("name")
		if err != nil {
			return err
		}
		if err := q.engine.Suspend(x.r.Context(), name, on); err != nil {
			return err
		}
		return x.done()
	}
}

func (q *queues) purge(x *exchange) error {
	name, err := x.named("name")
	if err != nil {
		return err
	}
	dropped, err := q.engine.Purge(x.r.Context(), name)
	if err != nil {
		return err
	}
	return x.value(http.StatusOK, map[string]int{"dropped": dropped})
}

func queueSchema() *huma.Schema {
	s := declaredQueue()
	for name, schema := range (members{
		"suspended": {Type: "boolean"}, "suspended_since": dateTime("Left out unless it is suspended"), "statistics": ref("Statistics"),
	}) {
		s.Properties[name] = schema
	}
	s.Description = "A queue: its declaration, and its state"
	s.Required = append(slices.Clone(s.Required), "suspended", "statistics")
	return s
}
