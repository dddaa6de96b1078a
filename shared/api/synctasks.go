package api

import (
	"context"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/task"
)

// byHand is the priority of a task that is asked for without one.
const byHand = 300

// priorityOfSync describes the priority of a sync task.
func priorityOfSync() *schema {
	priority := between("100 low, 200 by schedule, 300 by hand; higher is better", 1, 1<<63-1024) // of those that are exact in a float64
	priority.Format, priority.Default = "int64", byHand
	return priority
}

func describeSync() *operation {
	return &operation{
		ID: "enqueueSyncTask", Tags: []string{"Sync tasks"}, Summary: "Synchronize a collection",
		Description: "201 with the id of a new task, or 200 with that of the one which is scheduled or running for the collection " +
			"already. Source and collection must be defined.",
		Parameters: params{
			queryParam("source", "", true, text("")), queryParam("collection", "", true, text("")),
			queryParam("priority", "", false, priorityOfSync()), idempotencyKey(),
		},
		Responses: newOrThere(ref("TaskID"), "The collection's task under way"),
		failures:  []int{404},
	}
}

// sync enqueues a sync task, and responds with its id or that of the one under way.
func (s *submission) sync(x *exchange) error {
	n, content, err := s.wanted(x)
	if err != nil {
		return err
	}
	answer, err := s.add(x, "", content, n)
	if err != nil {
		return err
	}
	status, added := http.StatusCreated, answer.Tasks[0]
	if added.Existing {
		status = http.StatusOK
	}
	return x.value(status, map[string]task.ID{"task_id": added.Task.ID})
}

// wanted returns the task that the query asks for, and the query's values in one form, for the fingerprint.
func (s *submission) wanted(x *exchange) (n queue.New, content []byte, err error) {
	q, err := x.query()
	if err != nil {
		return n, nil, err
	}
	source, err := q.needed("source")
	if err != nil {
		return n, nil, err
	}
	collection, err := q.needed("collection")
	if err != nil {
		return n, nil, err
	}
	priority, err := q.priority()
	if err != nil {
		return n, nil, err
	}
	if err := declared(x.r.Context(), s.definitions, source, collection); err != nil {
		return n, nil, err
	}
	content = []byte(strings.Join([]string{source, collection, strconv.FormatInt(priority, 10)}, "\x00"))
	return queue.SyncTask(source, collection, priority), content, nil
}

// declared returns a 404 unless the source, and the collection if one is named, are defined.
func declared(ctx context.Context, d Definitions, source, collection string) error {
	unknown := func(set *definition.Set) error {
		if at, err := undeclared(set, source, collection); err != nil {
			return problem(CodeNotFound, "%s", err).at("query." + at)
		}
		return nil
	}
	set, err := search(ctx, d, func(set *definition.Set) bool { return unknown(set) == nil })
	if err != nil {
		return err
	}
	return unknown(set)
}

// undeclared returns what is not defined, and its name in requests: the source, or the collection if one is named.
func undeclared(set *definition.Set, source, collection string) (at string, err error) {
	s, known := set.Sources[source]
	if !known {
		return "source", fmt.Errorf("there is no source %s", strconv.Quote(source))
	}
	has := func(c definition.Collection) bool { return c.Name == collection }
	if collection != "" && !slices.ContainsFunc(s.Collections, has) {
		return "collection", fmt.Errorf("the source %s has no collection %s", strconv.Quote(source), strconv.Quote(collection))
	}
	return "", nil
}

// priority reads a priority.
func (q query) priority() (int64, error) {
	value, given, err := q.one("priority")
	if !given || err != nil {
		return byHand, err
	}
	n, err := strconv.ParseUint(value, 10, 63)
	if err != nil || n == 0 {
		return 0, invalid("query.priority", "want a whole number from 1 to 2^63-1")
	}
	return int64(n), nil
}

// syncView is a sync task as EventNative's task API shows it.
type syncView struct {
	ID         task.ID     `json:"id"`
	Source     string      `json:"source"`
	Collection string      `json:"collection"`
	Priority   int64       `json:"priority"`
	CreatedAt  string      `json:"created_at"`
	StartedAt  string      `json:"started_at"`
	FinishedAt string      `json:"finished_at"`
	Status     task.Status `json:"status"`
	Score      *big.Int    `json:"score"`
}

// viewSync returns a task as it is shown. The task of a schedule's tick, which is made ahead, is created when its time comes.
func viewSync(t *task.Task) syncView {
	return syncView{
		ID: t.ID, Source: strings.TrimPrefix(t.ListedUnder(), queue.SourcePath("")), Collection: collectionOf(t), Priority: t.Priority,
		CreatedAt: stampOf(t.ID.Time()), StartedAt: stampOf(t.Started), FinishedAt: stampOf(t.Finished),
		Status: t.State.In(task.Sync), Score: scoreOf(t),
	}
}

func collectionOf(t *task.Task) string { return strings.TrimPrefix(t.Job, t.ListedUnder()+"/") }

// scoreOf returns priority*10^12 - created_at_unix, as EventNative's task scheduler does, exact for any priority.
func scoreOf(t *task.Task) *big.Int {
	score := new(big.Int).Mul(big.NewInt(t.Priority), big.NewInt(1_000_000_000_000))
	return score.Sub(score, big.NewInt(t.ID.Time()/1_000_000))
}

// taskReading is what the operations that look at tasks share.
type taskReading struct {
	engine      Engine
	definitions Definitions
}

func describeSyncTask() *operation {
	return &operation{
		ID: "syncTask", Tags: []string{"Sync tasks"}, Summary: "A sync task", Parameters: params{pathParam("id", "The task's id")},
		Responses: answers(http.StatusOK, typeJSON, ref("SyncTask")), failures: []int{404},
	}
}

func (t *taskReading) showSync(x *exchange) error {
	found, err := x.find(t.engine, task.Sync)
	if err != nil {
		return err
	}
	return x.value(http.StatusOK, viewSync(&found))
}

func describeCancel() *operation {
	return &operation{
		ID: "cancelSyncTask", Tags: []string{"Sync tasks"}, Summary: "Cancel a sync task",
		Description: "A task that is scheduled is CANCELED at once, a running one when its worker reports that it has stopped. " +
			"A finished one is a conflict.",
		Parameters: params{pathParam("id", "The task's id")},
		Responses:  answers(http.StatusOK, typeJSON, object("", members{"status": constant("ok")}, false, "status")),
		failures:   []int{404, 409},
	}
}

func (t *taskReading) cancel(x *exchange) error {
	found, err := x.find(t.engine, task.Sync)
	if err != nil {
		return err
	}
	if _, err := t.engine.Stop(x.r.Context(), found.ID); err != nil {
		return err
	}
	return x.value(http.StatusOK, map[string]string{"status": "ok"})
}

func describeSyncTasks() *operation {
	return &operation{
		ID: "syncTasks", Tags: []string{"Sync tasks"}, Summary: "The tasks of a source, by creation, oldest first",
		Parameters: append(params{
			queryParam("source", "", true, text("")),
			queryParam("start", "Created then or later", true, dateTime("")),
			queryParam("end", "Created then or earlier", true, dateTime("")),
			queryParam("collection", "Only of this collection", false, text("")),
			queryParam("status", "", false, text("One of "+join(statusesOf(task.Sync))+", in any case")),
		}, pageParams()...),
		Responses: pageIn("tasks", ref("SyncTask")), failures: []int{404, 422},
	}
}

// syncQuery is what a list of sync tasks is asked for.
type syncQuery struct {
	source, collection string
	start, end, now    time.Time
	status             task.Status
	limit              int
	cursor             string
}

func (q query) sync() (s syncQuery, err error) {
	if s.source, err = q.needed("source"); err != nil {
		return s, err
	}
	for _, bound := range []struct {
		name string
		at   *time.Time
	}{{"start", &s.start}, {"end", &s.end}} {
		if _, err = q.needed(bound.name); err != nil {
			return s, err
		}
		if *bound.at, err = q.time(bound.name); err != nil {
			return s, err
		}
	}
	if s.collection, _, err = q.one("collection"); err != nil {
		return s, err
	}
	if s.status, err = q.statusIn(task.Sync); err != nil {
		return s, err
	}
	if s.limit, err = q.page(); err != nil {
		return s, err
	}
	s.cursor, err = q.cursor()
	return s, err
}

func (t *taskReading) listSync(x *exchange) error {
	q, err := x.query()
	if err != nil {
		return err
	}
	s, err := q.sync()
	if err != nil {
		return err
	}
	s.now = time.Now()
	if err := declared(x.r.Context(), t.definitions, s.source, s.collection); err != nil {
		return err
	}
	page, err := t.engine.List(x.r.Context(), view.Listing{
		Group: queue.SourcePath(s.source), From: s.start, To: s.end, Limit: s.limit, Cursor: s.cursor, Match: s.match,
	})
	if err != nil {
		return x.ofList(q, &page, err)
	}
	x.next(q, page.Cursor)
	views := make([]syncView, len(page.Tasks))
	for i := range page.Tasks {
		views[i] = viewSync(&page.Tasks[i])
	}
	return x.value(http.StatusOK, map[string][]syncView{"tasks": views})
}

// match reports whether a task is listed. A tick whose time is still to come is not, nor is one that was skipped since another task was under way.
func (s *syncQuery) match(t *task.Task) bool {
	if t.Late && t.Attempt == 0 && (t.State == task.Dropped || t.State.Queued() && t.NotBefore > s.now.UnixMicro()) {
		return false
	}
	return t.Dialect == task.Sync && (s.collection == "" || collectionOf(t) == s.collection) &&
		(s.status == "" || t.State.In(task.Sync) == s.status)
}

// statusSchemaOf describes a dialect's words for the states of a task.
func statusSchemaOf(d task.Dialect) *schema {
	s := text("")
	for _, word := range statusesOf(d) {
		s.Enum = append(s.Enum, string(word))
	}
	return s
}

func taskIDSchema() *schema {
	return object("", members{"task_id": text("SOURCE_COLLECTION_UUID")}, false, "task_id")
}

func syncTaskSchema() *schema {
	reached := text(`"" until then`)
	return object("A synchronization of a collection", members{
		"id": text(""), "source": text(""), "collection": text(""), "priority": whole("", 1), "created_at": dateTime(""),
		"started_at": reached, "finished_at": reached, "status": statusSchemaOf(task.Sync),
		"score": {Type: "integer", Description: "priority*10^12 - created_at in seconds; tasks run in the order (priority, created_at in " +
			"microseconds, id), which agrees with it"},
	}, false, "id", "source", "collection", "priority", "created_at", "started_at", "finished_at", "status", "score")
}
