package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/view"
)

// QueueEngine keeps queues; a [queue.Queue] is one.
type QueueEngine interface {
	Suspend(ctx context.Context, name string, on bool) error
	Suspended(ctx context.Context) (map[string]time.Time, error)
	InUse(ctx context.Context, name string) (bool, error)
	Purge(ctx context.Context, name string) (dropped int, err error)
	Statistics(ctx context.Context, prefix string) (map[string]view.Statistics, error)
	QueueStatistics(ctx context.Context) (map[string]view.Statistics, error)
}

// QueueBook returns what is declared, and changes it; a [definition.Catalog] is one.
type QueueBook interface {
	Definitions
	Editor
}

// queues is what the operations on queues share.
type queues struct {
	engine  QueueEngine
	catalog QueueBook
}

func describeQueues() *operation {
	return &operation{
		ID: "queues", Tags: []string{"Queues"}, Summary: "All queues",
		Description: "Those that are declared, those that are always there, and those that have had tasks.",
		Parameters:  pageParams(),
		Responses:   pageIn("queues", ref("Queue")),
	}
}

func describeQueue() *operation {
	return &operation{
		ID: "queue", Tags: []string{"Queues"}, Summary: "A queue", Parameters: queueParams(),
		Responses: answers(http.StatusOK, typeJSON, ref("Queue")), failures: []int{404},
	}
}

func describePutQueue() *operation {
	return &operation{
		ID: "putQueue", Tags: []string{"Queues"}, Summary: "Declare a queue",
		Description: "{0} in the name stands for the part of a topic that the queue's pattern leaves open, so that each such part has a queue of its own.",
		Parameters:  queueParams(),
		Body:        jsonBody(declaredQueue(), map[string]any{"topics": []string{"mail/*"}, "type": "ordered"}),
		Responses:   newOrThere(ref("Queue"), "The queue was declared before"),
		failures:    []int{422},
	}
}

func describeDeleteQueue() *operation {
	return &operation{
		ID: "deleteQueue", Tags: []string{"Queues"}, Summary: "Remove the declaration of a queue",
		Description: "Its tasks stay in it, and run as in a queue with default settings.", Parameters: queueParams(),
		Responses: empty(), failures: []int{404},
	}
}

func describeSuspendQueue() *operation {
	return &operation{
		ID: "suspendQueue", Tags: []string{"Queues"}, Summary: "Keep a queue's tasks from being started",
		Description: "Tasks that run go on. A name with {0} means all queues of that family, also those to come; a member that is suspended by " +
			"itself as well stays so when the family is resumed. A queue stays suspended when its declaration is removed.",
		Parameters: queueParams(), Responses: empty(), failures: []int{404},
	}
}

func describeResumeQueue() *operation {
	return &operation{
		ID: "resumeQueue", Tags: []string{"Queues"}, Summary: "Let a queue's tasks be started again",
		Parameters: queueParams(), Responses: empty(), failures: []int{404},
	}
}

func describePurgeQueue() *operation {
	return &operation{
		ID: "purgeQueue", Tags: []string{"Queues"}, Summary: "Drop the tasks of a queue that wait",
		Description: "They go to the history as DROPPED. Tasks that run go on.", Parameters: queueParams(),
		Responses: answers(http.StatusOK, typeJSON, object("", members{"dropped": whole("How many", 0)}, false, "dropped")),
		failures:  []int{404},
	}
}

func queueParams() params { return params{pathParam("name", "The queue's name, escaped")} }

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

// survey is what is known of all queues at one moment.
type survey struct {
	set       *definition.Set
	suspended map[string]time.Time
	counted   map[string]view.Statistics
}

func (q *queues) look(ctx context.Context) (s survey, err error) {
	if s.set, err = q.catalog.Refresh(ctx); err != nil {
		return s, err
	}
	if s.suspended, err = q.engine.Suspended(ctx); err != nil {
		return s, err
	}
	s.counted, err = q.engine.QueueStatistics(ctx)
	return s, err
}

// names returns the names of the queues that are listed.
func (s *survey) names() map[string]bool {
	names := map[string]bool{definition.MainQueue: true, definition.SyncQueue: true, definition.EventQueue: true}
	for i := range s.set.Queues {
		names[s.set.Queues[i].Name] = true
	}
	for name := range s.suspended {
		names[name] = true
	}
	for name := range s.counted {
		names[name] = true
	}
	return names
}

func (s *survey) view(name string) queueView {
	v := queueView{configuration: s.set.QueueOf(name).JSON(), standing: standing{Statistics: viewStatistics(s.counted[name])}}
	since, is := s.suspended[name]
	if family, of := s.set.FamilyOf(name); of && !is {
		since, is = s.suspended[family]
	}
	if is {
		v.Suspended, v.SuspendedSince = true, formatTime(since)
	}
	return v
}

// one returns a queue: one that is listed, of a family, or whose declaration was removed while tasks waited in it. Others are a 404.
func (q *queues) one(ctx context.Context, name string) (queueView, error) {
	s, err := q.look(ctx)
	if err != nil {
		return queueView{}, err
	}
	there := s.names()[name]
	if !there {
		_, there = s.set.FamilyOf(name)
	}
	if !there {
		if there, err = q.engine.InUse(ctx, name); err != nil {
			return queueView{}, err
		}
	}
	if !there {
		return queueView{}, noQueue(name)
	}
	return s.view(name), nil
}

func (q *queues) list(x *exchange) error {
	query, limit, cursor, err := x.paging()
	if err != nil {
		return err
	}
	all, err := q.look(x.r.Context())
	if err != nil {
		return err
	}
	views := []queueView{}
	for _, name := range keysAfter(x, query, all.names(), cursor, limit) {
		views = append(views, all.view(name))
	}
	return x.value(http.StatusOK, map[string][]queueView{"queues": views})
}

func (q *queues) get(x *exchange) error { return q.show(x, http.StatusOK) }

func (q *queues) show(x *exchange, status int) error {
	v, err := q.one(x.r.Context(), x.r.PathValue("name"))
	if err != nil {
		return err
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

func (q *queues) suspend(x *exchange) error { return q.hold(x, true) }
func (q *queues) resume(x *exchange) error  { return q.hold(x, false) }

func (q *queues) hold(x *exchange, on bool) error {
	name, err := x.named("name")
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(x.r.Context()) // net/http takes it for the client's leaving that it sends no more
	if _, err := q.one(ctx, name); err != nil {
		return err
	}
	if err := q.engine.Suspend(ctx, name, on); err != nil {
		return err
	}
	return x.done()
}

func (q *queues) purge(x *exchange) error {
	name, err := x.named("name")
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(x.r.Context()) // as for hold
	dropped, err := q.engine.Purge(ctx, name)
	if err == nil && dropped == 0 { // tasks that wait for their time may be all that there is of a queue
		_, err = q.one(ctx, name)
	}
	if err != nil {
		return err
	}
	return x.value(http.StatusOK, map[string]int{"dropped": dropped})
}

func queueSchema() *schema {
	s := declaredQueue()
	s.Description = "A queue: its declaration, and its state"
	s.Properties = with(s.Properties, members{
		"suspended": yesNo(""), "suspended_since": dateTime("Left out unless it is suspended"), "statistics": ref("Statistics"),
	})
	s.Required = append(s.Required, "suspended", "statistics")
	return s
}
