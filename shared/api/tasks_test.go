package api_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// works is an API over a real engine, on a store in memory, with helpers that work its tasks.
type works struct {
	bundle
	*queue.Queue
}

// declared never changes.
type declared struct{ set *definition.Set }

func (d declared) Current(context.Context) (*definition.Set, error) { return d.set, nil }
func (d declared) Refresh(context.Context) (*definition.Set, error) { return d.set, nil }

func definitions() declared {
	target := definition.Target{Go: "f"}
	handler := func(name string) definition.Handler {
		return definition.Handler{Canvas: "shop", Space: "WORKER", Name: name, Target: target}
	}
	return declared{&definition.Set{
		Sources: map[string]definition.Source{
			"shop":     {Target: target, Collections: []definition.Collection{{Name: "orders"}, {Name: "customers"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}},
			"gö shop!": {Target: target, Collections: []definition.Collection{{Name: "a b/c"}}},
		},
		Handlers: []definition.Handler{handler("mail"), handler("größe & co")},
	}}
}

func working(t *testing.T, change ...func(*api.Options)) *works {
	t.Helper()
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	d := definitions()
	w := &works{Queue: queue.Open(queue.Options{Store: s, Journal: j, Definitions: d})}
	options := api.Options{Tokens: tokens(), CanStream: true}
	for _, c := range change {
		c(&options)
	}
	w.api = api.New(options, api.Enqueue(w.Queue, d), api.Tasks(w.Queue, d), api.Handlers(w.Queue, d))
	return w
}

// sync enqueues a sync task of the shop and returns its id.
func (w *works) sync(t *testing.T, collection string) string {
	t.Helper()
	got := w.as(t, access.Producer, "POST", "/api/v1/tasks?source=shop&collection="+collection, "")
	return into[struct {
		ID string `json:"task_id"`
	}](t, got, 201).ID
}

// claim starts the tasks there are and returns their leases.
func (w *works) claim(t *testing.T) []queue.Lease {
	t.Helper()
	leases, err := w.Claim(t.Context(), queue.Claimer{Instance: "hand"}, 100)
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

func (w *works) finish(t *testing.T, l queue.Lease, o queue.Outcome) {
	t.Helper()
	if _, err := w.Complete(t.Context(), l.Token, queue.Result{Outcome: o}); err != nil {
		t.Fatal(err)
	}
}

// into reads a response of that status.
func into[T any](t *testing.T, r reply, status int) T {
	t.Helper()
	var value T
	if r.StatusCode != status {
		t.Fatalf("status = %d, want %d: %s", r.StatusCode, status, r.body)
	}
	if err := json.Unmarshal([]byte(r.body), &value); err != nil {
		t.Fatalf("%s: %v", r.body, err)
	}
	return value
}

// linked returns the URL of the next page, "" if the list ends.
func linked(r reply) string {
	url, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Link"), "<"), ">")
	return url
}

func TestTaskRoles(t *testing.T) {
	t.Parallel()
	const handlers = "/api/v1/canvases/shop/handlers"
	const mail = handlers + "/WORKER/mail"
	want := map[string]string{ // who may: viewer, producer, consumer, worker, operator, admin
		"POST /api/v1/tasks?source=shop&collection=c": ".p..oa",
		"POST /tasks?source=shop&collection=c":        ".p..oa",
		"GET /api/v1/tasks/ID":                        "vp..oa",
		"GET /tasks/ID":                               "vp..oa",
		"GET /api/v1/tasks?source=shop&start=2020-01-01T00:00:00Z&end=2030-01-01T00:00:00Z": "v...oa",
		"GET /api/v1/tasks/ID/logs":           "v...oa",
		"POST /api/v1/tasks/ID/cancel":        "....oa",
		"POST " + mail + "/events":            ".p..oa",
		"POST " + mail + "/events:batch":      ".p..oa",
		"POST /api/v1/tasks:batch":            ".p..oa",
		"POST /tasks:batch":                   ".p..oa",
		"GET " + mail + "/events":             "v...oa",
		"GET /api/v1/canvases/shop/events/ID": "vp..oa",
		"GET " + handlers:                     "v...oa",
		"PUT " + mail + "/rules/pause":        "....oa",
		"DELETE " + mail + "/rules/pause":     "....oa",
		"PUT " + mail + "/rules/block":        ".....a",
		"DELETE " + mail + "/rules/block":     ".....a",
		"GET /api/v1/jobs/ID/why":             "v...oa",
		"POST /api/v1/jobs/ID/retry":          "....oa",
	}
	w := working(t)
	for call, who := range want {
		for i, role := range []access.Role{access.Viewer, access.Producer, access.Consumer, access.Worker, access.Operator, access.Admin} {
			method, target, _ := strings.Cut(call, " ")
			got := w.as(t, role, method, target, "")
			if may := who[i] != '.'; may == (got.StatusCode == 403) || got.StatusCode == 401 {
				t.Errorf("%s as %s = %d, want allowed %v", call, role, got.StatusCode, may)
			}
		}
		if got := w.as(t, "", strings.Fields(call)[0], strings.Fields(call)[1], ""); got.StatusCode != 401 {
			t.Errorf("%s without a token = %d", call, got.StatusCode)
		}
	}
}

// A malformed id and one that no task has are the same to clients.
func TestUnknownTasks(t *testing.T) {
	t.Parallel()
	w := working(t)
	event := w.emit(t, "mail", `{"value":1}`).ID
	for _, id := range []string{"x", "%20", "a%2Fb", "shop_orders_", string(task.NewID("shop_orders_", "/sources/shop", 1, 1)), event, strings.ToUpper(event)} {
		calls := []string{"GET /api/v1/tasks/" + id, "GET /tasks/" + id, "POST /tasks/" + id + "/cancel"}
		if id != event { // every kind of task has a log
			calls = append(calls, "GET /api/v1/tasks/"+id+"/logs")
		}
		for _, call := range calls {
			method, target, _ := strings.Cut(call, " ")
			wantProblem(t, w.as(t, access.Operator, method, target, ""), 404, api.CodeNotFound)
		}
	}
	id := w.sync(t, "orders")
	for _, id := range []string{"x", id[len("shop_"):], "X" + id, id + "0", event[:len(event)-1]} {
		for _, call := range []string{"GET /tasks/" + id, "GET /api/v1/jobs/" + id + "/why", "POST /api/v1/jobs/" + id + "/retry", "GET /api/v1/canvases/shop/events/" + id} {
			method, target, _ := strings.Cut(call, " ")
			wantProblem(t, w.as(t, access.Operator, method, target, ""), 404, api.CodeNotFound)
		}
	}
	wantProblem(t, w.as(t, access.Viewer, "GET", "/api/v1/canvases/other/events/"+event, ""), 404, api.CodeNotFound)
}

// unwell is an engine whose store is away.
type unwell struct{ api.Engine }

func (unwell) Enqueue(context.Context, *queue.Once, ...queue.New) (queue.Enqueued, error) {
	return queue.Enqueued{}, journal.ErrUnavailable
}

func (unwell) Get(context.Context, task.ID) (task.Task, error) {
	return task.Task{}, journal.ErrUnavailable
}

func TestTasksWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	d := definitions()
	b := &bundle{api: api.New(api.Options{Tokens: tokens()}, api.Enqueue(unwell{}, d), api.Tasks(unwell{}, d))}
	for _, call := range []string{"POST /tasks?source=shop&collection=c", "GET /tasks/" + string(task.NewID("", "/", time.Now().UnixMicro(), 1))} {
		method, target, _ := strings.Cut(call, " ")
		got := b.as(t, access.Operator, method, target, "")
		wantProblem(t, got, 503, api.CodeUnavailable)
		if got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: 503 without Retry-After", call)
		}
	}
}

// slow is an engine that takes its time.
type slow struct {
	api.Engine
	hold chan struct{}
}

func (s slow) Enqueue(ctx context.Context, once *queue.Once, news ...queue.New) (queue.Enqueued, error) {
	<-s.hold
	return s.Engine.Enqueue(ctx, once, news...)
}

func TestEnqueueInProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d := working(t), definitions()
		s := slow{w.Queue, make(chan struct{})}
		w.api = api.New(api.Options{Tokens: tokens()}, api.Enqueue(s, d))
		send := func() reply {
			return w.as(t, access.Producer, "POST", "/tasks?source=shop&collection=c", "", "Idempotency-Key", "k")
		}
		first := make(chan reply)
		go func() { first <- send() }()
		synctest.Wait()
		second := send()
		wantProblem(t, second, 409, api.CodeInProgress, "header.Idempotency-Key")
		if second.Header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After = %q, want 1", second.Header.Get("Retry-After"))
		}
		close(s.hold)
		if one, again := <-first, send(); one.StatusCode != 201 || again.body != one.body {
			t.Errorf("afterwards = %d %s, want %s", again.StatusCode, again.body, one.body)
		}
	})
}

// A hundred ask at once: one is told that the task is new, all are told its id.
func TestOneSyncTaskForAll(t *testing.T) {
	t.Parallel()
	w := working(t)
	answers := make(chan reply)
	for range 100 {
		go func() { answers <- w.as(t, access.Producer, "POST", "/tasks?source=shop&collection=c", "") }()
	}
	seen, bodies := map[int]int{}, map[string]bool{}
	for range 100 {
		got := <-answers
		seen[got.StatusCode]++
		bodies[got.body] = true
	}
	if seen[201] != 1 || seen[200] != 99 || len(bodies) != 1 {
		t.Errorf("answers %v, %d bodies", seen, len(bodies))
	}
}
