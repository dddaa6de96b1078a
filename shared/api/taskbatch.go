package api

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// batchRule is what a client is told of both batches.
const batchRule = "Up to 1,000 in one request. The response has their results in the same order; existing is there, and true, for one " +
	"that was there already. One that is invalid refuses all, and nothing is added. The Idempotency-Key is of the whole request: " +
	"one that got through in part, because the store failed, is completed when it is repeated."

func describeAddJobs() *operation {
	return byLines(&operation{
		ID: "addJobs", Tags: []string{"Jobs"}, Summary: "Add jobs to topics",
		Description: batchRule + " Jobs that were there already are shown without properties and output where the response would be too large.",
		Parameters:  params{idempotencyKey()},
		Body: jsonBody(listed(ref("NewJob"), queue.MaxEnqueue), []any{
			map[string]any{"topic": "mail/send", "properties": map[string]any{"to": "ada@example.com"}},
			map[string]any{"topic": "mail/send", "priority": 10},
		}),
		Responses: answers(http.StatusCreated, typeJSON, listOf(ref("AddedJob"))),
	})
}

// addedJob is a job, and whether it was there already.
type addedJob struct {
	jobView
	Existing bool
}

// addAll adds jobs, in as few writes as they take.
func (j *jobs) addAll(x *exchange) error {
	answer, err := j.addMany(x, readNewJobs(), nil)
	if err != nil {
		return err
	}
	size, now := 0, time.Now().UnixMicro()
	views := make([]addedJob, len(answer.Tasks))
	for i := range answer.Tasks {
		t, existing := answer.Tasks[i].Task, answer.Tasks[i].Existing
		if size += max(t.Apart, len(t.Payload)) + len(t.Output); existing && size > x.api.maxAnswer {
			t.Payload, t.Output = nil, nil
		} else if err := x.fill(j.engine, &t); err != nil && !errors.Is(err, queue.ErrNoTask) { // it may have gone since
			return err
		}
		views[i] = addedJob{viewJob(&t, now), existing}
	}
	x.jobs(views)
	return nil
}

// addMany enqueues the elements of the body. allowed says what refuses them although each is well formed; nil: nothing does.
func (s *submission) addMany(
	x *exchange, read func(location string, value jsontext.Value) (queue.New, error), allowed func() error,
) (queue.Enqueued, error) {
	b := take()
	defer b.give()
	body, err := x.within(b) // what is read of tasks is copied
	if err != nil {
		return queue.Enqueued{}, err
	}
	var all []queue.New
	err = readList("body", body, queue.MaxEnqueue, func(location string, value jsontext.Value) error {
		n, err := read(location, value)
		all = append(all, n)
		return err
	})
	if err == nil && allowed != nil {
		err = allowed()
	}
	if err != nil {
		return queue.Enqueued{}, err
	}
	return s.add(x, "", b.bytes, all...)
}

func describeSyncBatch() *operation {
	return byLines(&operation{
		ID: "enqueueSyncTasks", Tags: []string{"Sync tasks"}, Summary: "Synchronize collections",
		Description: batchRule + " Sources and collections must be defined.",
		Parameters:  params{idempotencyKey()},
		Body: jsonBody(listed(ref("NewTask"), queue.MaxEnqueue), []any{
			map[string]any{"source": "shop", "collection": "orders"}, map[string]any{"source": "shop", "collection": "customers", "priority": 100},
		}),
		Responses: answers(http.StatusCreated, typeJSON, listOf(ref("AddedTask"))),
	})
}

// addedTask is the id of a sync task, and whether it was there already.
type addedTask struct {
	ID       task.ID `json:"task_id"`
	Existing bool    `json:"existing,omitempty"`
}

// syncs enqueues sync tasks, in as few writes as they take.
func (s *submission) syncs(x *exchange) error {
	var asked collections
	answer, err := s.addMany(x, asked.read, func() error { return asked.declared(x.r.Context(), s.definitions) })
	if err != nil {
		return err
	}
	views := make([]addedTask, len(answer.Tasks))
	for i, added := range answer.Tasks {
		views[i] = addedTask{added.Task.ID, added.Existing}
	}
	return x.value(http.StatusCreated, views)
}

// collections are those that a batch asks to synchronize.
type collections []struct{ location, source, collection string }

// read reads one element.
func (c *collections) read(location string, value jsontext.Value) (queue.New, error) {
	var source, collection string
	priority := int64(byHand)
	name := func(name string, into *string) member {
		return member{name: name, required: true, read: func(location string, value jsontext.Value) (err error) {
			if *into, err = readText(location, value); err == nil && *into == "" {
				err = invalid(location, "is empty")
			}
			return err
		}}
	}
	err := readObject(location, value, name("source", &source), name("collection", &collection),
		integerMember("priority", 1, math.MaxInt64, &priority))
	*c = append(*c, struct{ location, source, collection string }{location, source, collection})
	return queue.SyncTask(source, collection, priority), err
}

// declared returns a 400 unless all are defined.
func (c collections) declared(ctx context.Context, d Definitions) error {
	unknown := func(set *definition.Set) error {
		for _, one := range c {
			if at, err := undeclared(set, one.source, one.collection); err != nil {
				return invalid(one.location+"."+at, "%s", err)
			}
		}
		return nil
	}
	set, err := search(ctx, d, func(set *definition.Set) bool { return unknown(set) == nil })
	if err != nil {
		return err
	}
	return unknown(set)
}

func existingSchema() *schema {
	return yesNo("It was there already: nothing was added. Left out if not")
}

func addedJobSchema() *schema {
	s := jobSchema()
	s.Properties["existing"] = existingSchema()
	return s
}

func addedTaskSchema() *schema {
	s := taskIDSchema()
	s.Properties["existing"] = existingSchema()
	return s
}

func newTaskSchema() *schema {
	return object("A collection to synchronize", members{
		"source": text(""), "collection": text(""), "priority": priorityOfSync(),
	}, false, "source", "collection")
}
