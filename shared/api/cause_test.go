package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/schedule"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/stream"
)

// whole is a server with all that makes events, whose clock tests move.
type whole struct {
	bundle
	t         *testing.T
	began     time.Time
	ahead     atomic.Int64 // of began
	journal   *journal.Journal
	queue     *queue.Queue
	schedules *schedule.Scheduler
}

// causeStores are both kinds of stores: one that processes share, and one that a process has to itself.
func causeStores() map[string]store.Store {
	return map[string]store.Store{
		"shared": memory.New(memory.Options{Shared: true}), "owned": memory.New(memory.Options{}),
	}
}

func newWhole(t *testing.T, s store.Store, keep journal.Retention) *whole {
	t.Helper()
	w := &whole{t: t, began: time.Now()}
	now := func() time.Time { return w.began.Add(time.Duration(w.ahead.Load())) }
	w.journal = journal.Open(s, journal.Options{Folds: projection.Folds(), Now: now, Retention: keep})
	t.Cleanup(func() { _ = w.journal.Close() })
	catalog := definition.OpenCatalog(definition.CatalogOptions{Store: s, Journal: w.journal, Now: now})
	there := membership.Open(membership.Options{Store: s, Now: now})
	orders := order.Open(order.Options{Store: s, Journal: w.journal, Definitions: catalog, Now: now})
	w.queue = queue.Open(queue.Options{
		Store: s, Journal: w.journal, Definitions: catalog, Now: now, Heard: there.Heard, History: 10 * time.Minute, Steps: orders,
	})
	orders.Use(w.queue)
	w.schedules = schedule.Open(schedule.Options{Store: s, Journal: w.journal, Queue: w.queue, Orders: orders, Definitions: catalog, Now: now})
	streams := stream.Open(stream.Options{Store: s, Journal: w.journal})
	w.api = api.New(api.Options{Tokens: tokens(), CanStream: true},
		api.Emit(w.journal), api.Events(w.journal), api.Objects(w.journal), api.Enqueue(w.queue, catalog), api.Tasks(w.queue, catalog),
		api.Handlers(w.queue, catalog), api.Jobs(w.queue, catalog), api.Queues(w.queue, catalog), api.Define(catalog), api.Append(streams),
		api.Instances(there, w.queue), api.Schedules(w.schedules, w.queue, catalog), api.Orders(orders))
	return w
}

// does sends a request that must succeed, and returns a member of the response.
func (w *whole) does(role access.Role, method, target, body, member string) string {
	w.t.Helper()
	got := w.as(w.t, role, method, target, body)
	if got.StatusCode >= 300 {
		w.t.Fatalf("%s %s = %d %s", method, target, got.StatusCode, got.body)
	}
	var all map[string]any
	if _ = json.Unmarshal([]byte(got.body), &all); member == "" {
		return ""
	}
	return fmt.Sprint(all[member])
}

// defines puts definitions in force.
func (w *whole) defines(text string) {
	w.t.Helper()
	got := w.as(w.t, access.Admin, "PUT", definitionsPath, text, "Content-Type", "application/yaml")
	if got.StatusCode != http.StatusOK {
		w.t.Fatalf("PUT definitions = %d %s", got.StatusCode, got.body)
	}
}

// tick lets time pass, and does what is to be done at that time.
func (w *whole) tick(by time.Duration) {
	w.t.Helper()
	w.ahead.Add(int64(by))
	now := w.began.Add(time.Duration(w.ahead.Load()))
	if _, err := w.schedules.Make(w.t.Context(), now.Add(2*time.Second)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.queue.Sweep(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// starts claims a task for the instance, which must get one.
func (w *whole) starts(instance string) (token string) {
	w.t.Helper()
	got := into[struct{ Claims []struct{ Token string } }](w.t,
		w.as(w.t, access.Worker, "POST", instance+"/claims", `{"max":1}`), http.StatusOK)
	if len(got.Claims) != 1 {
		w.t.Fatalf("claimed %d tasks, want 1", len(got.Claims))
	}
	return got.Claims[0].Token
}

func (w *whole) ends(token, result string) {
	w.t.Helper()
	w.does(access.Worker, "POST", "/api/v1/leases/"+token+"/complete", `{"result":"`+result+`"}`, "")
}

// caused is an event as it is shown with its cause.
type caused struct {
	EventID event.ID `json:"eventId"`
	TYPE    string
	Key     any
	Cause   event.ID
	By      string
}

// events returns all events with their causes.
func (w *whole) events() []caused {
	w.t.Helper()
	return into[struct{ EventSnapshots []caused }](w.t,
		w.as(w.t, access.Viewer, "GET", eventPath+"?after=0&with=cause", ""), http.StatusOK).EventSnapshots
}

const causeDefinitions = `
jobs: [{path: /topics/a, target: {instances: true}, queue: q}, {path: /topics/b, target: {instances: true}, queue: p}]
queues: [{name: q, retries: 1}, {name: p}]
sources: {S: {target: {instances: true}, collections: [{name: C, schedule: "* * * * * ?"}]}}
handlers: [{canvas: c, space: WORKER, name: n, target: {instances: true}}]
`

const causeSchedule = `schedules: [{name: s, cron: "* * * * * ?", job: /topics/b}]
`

// live leads everything that makes events through its life.
func (w *whole) live() {
	t := w.t
	w.defines(causeDefinitions + causeSchedule)
	w.does(access.Producer, "POST", eventPath, `[{"TYPE":"Said"}]`, "")
	instance := "/api/v1/instances/" + w.does(access.Worker, "POST", "/api/v1/instances", `{"name":"w","jobs":["/topics/a"],"capacity":9}`, "id")

	first := w.does(access.Producer, "POST", "/api/v1/jobs", `{"topic":"a"}`, "id") // fails, is retried, and fails for good
	w.ends(w.starts(instance), "failed")
	w.tick(5 * time.Second)
	w.ends(w.starts(instance), "failed")
	w.does(access.Operator, "POST", "/api/v1/jobs/"+first+"/retry", "", "")
	w.ends(w.starts(instance), "ok")
	w.does(access.Operator, "DELETE", "/api/v1/jobs/"+first, "", "") // of the history

	waits := w.does(access.Producer, "POST", "/api/v1/jobs", `{"topic":"a","run_at":"2200-01-01T00:00:00Z"}`, "id")
	w.does(access.Operator, "POST", "/api/v1/jobs/"+waits+"/stop", "", "")
	runs := w.does(access.Producer, "POST", "/api/v1/jobs", `{"topic":"a"}`, "id")
	token := w.starts(instance)
	w.does(access.Operator, "POST", "/api/v1/jobs/"+runs+"/stop", "", "")
	w.ends(token, "cancel")
	gone := w.does(access.Producer, "POST", "/api/v1/jobs", `{"topic":"a"}`, "id")
	w.starts(instance)
	w.does(access.Operator, "DELETE", "/api/v1/jobs/"+gone, "", "")
	w.does(access.Producer, "POST", "/api/v1/jobs", `{"topic":"a"}`, "")
	w.starts(instance)
	w.tick(10 * time.Minute) // its lease is lost

	w.does(access.Producer, "POST", "/api/v1/tasks?source=S&collection=C", "", "")
	w.does(access.Producer, "POST", "/api/v1/canvases/c/handlers/WORKER/missing/events", `{"value":1}`, "")
	w.does(access.Operator, "PUT", "/api/v1/canvases/c/handlers/WORKER/n/rules/pause", "", "")
	w.does(access.Operator, "POST", "/api/v1/queues/q/suspend", "", "")
	w.does(access.Operator, "POST", "/api/v1/queues/q/resume", "", "")
	w.does(access.Producer, "POST", "/api/v1/jobs", `{"topic":"a"}`, "")
	w.does(access.Operator, "POST", "/api/v1/queues/q/purge", "", "")

	w.tick(5 * time.Second)
	w.does(access.Operator, "POST", "/api/v1/schedules/s/suspend", "", "")
	w.does(access.Operator, "POST", "/api/v1/schedules/s/resume", "", "")
	w.tick(5 * time.Second)
	w.does(access.Operator, "POST", "/api/v1/schedules/s/trigger", "", "")
	w.defines(causeDefinitions)
	w.tick(time.Second)

	got := w.as(t, access.Producer, "POST", "/api/v1/streams/x/events", happened("placed"), "X-Producer-ID", producer1)
	if got.StatusCode != http.StatusCreated {
		t.Fatalf("append = %d %s", got.StatusCode, got.body)
	}
	w.tick(10 * time.Minute)
	for range 16 { // the history is cleaned, a sixteenth each minute
		w.tick(time.Minute)
	}
}

// Every event names the event that brought it about, unless a request did; acts name who acted. A cause lies before its effect.
func TestEveryEventHasAnOrigin(t *testing.T) {
	t.Parallel()
	for name, s := range causeStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWhole(t, s, journal.Retention{})
			w.live()
			events, types := map[event.ID]caused{}, map[string]bool{}
			for _, e := range w.events() {
				types[e.TYPE] = true
				if e.Cause == 0 && e.By == "" {
					t.Errorf("nothing has brought about %+v", e)
				}
				if e.Cause != 0 && events[e.Cause].TYPE == "" {
					t.Errorf("there is no event before %+v that has brought it about", e)
				}
				events[e.EventID] = e
			}
			for _, want := range []string{"Said", "FileBasedAdded", "FileBasedActivated", "FileBasedRemoved", "TaskAdded", "TaskStarted", "TaskEnded",
				"TaskClosed", "TaskRemoved", "JobStateChanged", "QueueSuspended", "QueueResumed", "ScheduleFired", "ScheduleMissed", "ScheduleSuspended",
				"ScheduleResumed", "StreamAppended"} {
				if !types[want] {
					t.Errorf("the test makes no %s", want)
				}
			}
			pairs := map[string]bool{} // TYPE, the role that did it, and the TYPE of the cause
			for _, e := range events {
				pairs[strings.Join([]string{e.TYPE, e.By, events[e.Cause].TYPE}, " ")] = true
			}
			if diff := cmp.Diff(causePairs, sortedNames(pairs)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func sortedNames(set map[string]bool) (names []string) {
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// causePairs are the types of events, who did what they tell, and the types of what brought them about.
var causePairs = []string{
	"FileBasedActivated admin FileBasedAdded",
	"FileBasedAdded admin ",
	"FileBasedRemoved admin ",
	"JobStateChanged operator ",
	"QueueResumed operator ",
	"QueueSuspended operator ",
	"Said producer ",
	"ScheduleDue  TaskAdded",
	"ScheduleFired  FileBasedActivated",
	"ScheduleFired  ScheduleResumed",
	"ScheduleMissed  FileBasedActivated",
	"ScheduleResumed operator ",
	"ScheduleSkipped  TaskClosed",
	"ScheduleSuspended operator ",
	"StreamAppended producer ",
	"TaskAdded  FileBasedActivated",
	"TaskAdded  ScheduleResumed",
	"TaskAdded operator ",
	"TaskAdded operator TaskClosed",
	"TaskAdded producer ",
	"TaskClosed  FileBasedRemoved",
	"TaskClosed  ScheduleSuspended",
	"TaskClosed  TaskAdded",
	"TaskClosed operator TaskAdded",
	"TaskClosed operator TaskEnded",
	"TaskClosed producer TaskAdded",
	"TaskClosed worker TaskEnded",
	"TaskEnded  TaskStarted",
	"TaskEnded operator TaskStarted",
	"TaskEnded worker TaskStarted",
	"TaskRemoved  TaskClosed",
	"TaskRemoved  TaskRemoved",
	"TaskRemoved operator TaskClosed",
	"TaskStarted worker TaskAdded",
	"TaskStarted worker TaskEnded",
}

// Whatever the form and the call, events are shown with their causes where that is asked for, and only there.
func TestCausesInEveryForm(t *testing.T) {
	t.Parallel()
	w := newWhole(t, memory.New(memory.Options{}), journal.Retention{})
	w.defines(causeDefinitions)
	w.does(access.Producer, "POST", eventPath, `[{"TYPE":"Said","key":"/a","by":"boss","n":1}]`, "")
	instance := "/api/v1/instances/" + w.does(access.Worker, "POST", "/api/v1/instances", `{"name":"w","jobs":["/topics/a"],"capacity":9}`, "id")
	w.does(access.Producer, "POST", "/api/v1/jobs", `{"topic":"a"}`, "")
	w.starts(instance)
	for name, test := range map[string]struct{ method, path, body, accept, want string }{
		"event":           {"GET", "/event?return=TaskStarted", "", "", `"TYPE":"TaskStarted","cause":@,"by":"worker","attempt":1`},
		"task":            {"GET", "/task/topics/?return=TaskStarted", "", "", `"TYPE":"TaskStarted","cause":@,"by":"worker","attempt":1`},
		"task, by a body": {"POST", "/task?return=TaskStarted", `{"path":"/topics/a"}`, "", `"TYPE":"TaskStarted","cause":@,"by":"worker","attempt":1`},
		"newest":          {"GET", "/event?return=Event&limit=-1", "", "", `"TYPE":"TaskStarted","cause":@,"by":"worker","attempt":1`},
		"server-sent":     {"GET", "/event?return=TaskStarted&timeout=0", "", "text/event-stream", `"TYPE":"TaskStarted","cause":@,"by":"worker","attempt":1`},
		"followed":        {"GET", "/event?return=TaskStarted&limit=1&timeout=9", "", "text/event-stream", `"TYPE":"TaskStarted","cause":@,"by":"worker","attempt":1`},
		"lines":           {"GET", "/event?return=TaskStarted&timeout=0", "", "application/x-ndjson", `"TYPE":"TaskStarted","cause":@,"by":"worker","attempt":1`},
		"cloud events":    {"GET", "/event?return=TaskStarted", "", "application/cloudevents-batch+json", `"TYPE":"TaskStarted","cause":@,"by":"worker","attempt":1`},
		"one object":      {"GET", "/object/a?return=Said", "", "", `"TYPE":"Said","by":"producer","n":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			added := w.events()[len(w.events())-2]
			path := base + test.path + "&after=0"
			plain := w.as(t, access.Viewer, test.method, path, test.body, "Accept", test.accept)
			if strings.Contains(plain.body, "cause") || strings.Contains(plain.body, `"by":"producer"`) || strings.Contains(plain.body, `"by":"worker"`) {
				t.Errorf("not asked for, but told: %s", plain.body)
			}
			got := w.as(t, access.Viewer, test.method, path+"&with=cause", test.body, "Accept", test.accept)
			want := strings.ReplaceAll(test.want, "@", fmt.Sprint(added.EventID))
			if got.StatusCode != http.StatusOK || !strings.Contains(got.body, want) {
				t.Errorf("%d %s, want %s", got.StatusCode, got.body, want)
			}
		})
	}
	line := w.as(t, access.Producer, "POST", eventPath, `{"TYPE":"Lined"}`+"\n"+`{"idempotencyKey":"k","events":[{"TYPE":"Lined"}]}`, "Content-Type", "application/x-ndjson")
	lined := w.as(t, access.Viewer, "GET", eventPath+"?return=Lined&after=0&with=cause", "")
	if line.StatusCode != http.StatusOK || strings.Count(lined.body, `"TYPE":"Lined","by":"producer"`) != 2 {
		t.Errorf("emitted as lines: %d %s, and shown as %s, want two events by the producer", line.StatusCode, line.body, lined.body)
	}
	for _, with := range []string{"", "by", "cause,by", "cause&with=cause"} {
		got := w.as(t, access.Viewer, "GET", eventPath+"?after=0&with="+with, "")
		if got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, `"query.with"`) {
			t.Errorf("with=%s: %d %s, want a 400 that names it", with, got.StatusCode, got.body)
		}
	}
}

// lineage is the response about an event, its events by type and cause.
func (w *whole) lineage(id event.ID) (ancestors, descendants []string) {
	w.t.Helper()
	got := into[struct{ Ancestors, Descendants []caused }](w.t,
		w.as(w.t, access.Viewer, "GET", fmt.Sprintf("%s/journal/cause/%d", base, id), ""), http.StatusOK)
	for _, e := range got.Ancestors {
		ancestors = append(ancestors, e.TYPE)
	}
	for _, e := range got.Descendants {
		descendants = append(descendants, e.TYPE)
	}
	return ancestors, descendants
}

func TestLineage(t *testing.T) {
	t.Parallel()
	for name, s := range causeStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWhole(t, s, journal.Retention{Events: 2})
			instance := "/api/v1/instances/" + w.does(access.Worker, "POST", "/api/v1/instances", `{"name":"w","jobs":["/topics/a"],"capacity":9}`, "id")
			other := w.does(access.Producer, "POST", "/api/v1/jobs", `{"topic":"b"}`, "id")
			id := w.does(access.Producer, "POST", "/api/v1/jobs", `{"topic":"a","retries":0}`, "id")
			w.ends(w.starts(instance), "failed")
			w.does(access.Operator, "POST", "/api/v1/jobs/"+other+"/stop", "", "")
			w.does(access.Operator, "POST", "/api/v1/jobs/"+id+"/retry", "", "")
			w.starts(instance)
			life := []string{"TaskAdded", "TaskStarted", "TaskEnded", "TaskClosed", "TaskAdded", "TaskStarted"}
			all := slices.DeleteFunc(w.events(), func(e caused) bool {
				return e.Key.(map[string]any)["taskId"] == other
			})
			for i, e := range all {
				before, after := w.lineage(e.EventID)
				if !slices.Equal(before, life[:i]) || !slices.Equal(after, life[i+1:]) {
					t.Errorf("the lineage of event %d is %v and %v, want %v and %v", i, before, after, life[:i], life[i+1:])
				}
			}
			newest := all[len(all)-1].EventID
			for range 3 {
				if _, err := w.journal.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if before, _ := w.lineage(newest); len(before) == 0 || len(before) == len(life)-1 {
				t.Errorf("after events were evicted, the ancestors are %v, want those that are kept", before)
			}
			for path, want := range map[string]string{
				fmt.Sprint(all[0].EventID): `"code":"torn"`, fmt.Sprint(newest + 1): `"code":"not_found"`, "x": `"path.eventId"`, "9007199254740993": `"path.eventId"`,
			} {
				got := w.as(t, access.Viewer, "GET", base+"/journal/cause/"+path, "")
				status := map[string]int{`"code":"torn"`: 410, `"code":"not_found"`: 404, `"path.eventId"`: 400}[want]
				if got.StatusCode != status || !strings.Contains(got.body, want) {
					t.Errorf("the lineage of %s: %d %s, want %d and %s", path, got.StatusCode, got.body, status, want)
				}
			}
		})
	}
}
