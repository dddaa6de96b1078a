package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/queue"
)

// syncTask is a sync task as a client of EventNative's task API reads it.
type syncTask struct {
	ID         string
	Source     string
	Collection string
	Priority   int64
	CreatedAt  *string `json:"created_at"`
	StartedAt  *string `json:"started_at"`
	FinishedAt *string `json:"finished_at"`
	Status     string
	Score      int64
}

func (w *works) task(t *testing.T, id string) syncTask {
	t.Helper()
	return into[syncTask](t, w.as(t, access.Viewer, "GET", "/api/v1/tasks/"+url.PathEscape(id), ""), 200)
}

func TestSyncTaskLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the clock stands at 2000-01-01 until somebody sleeps
		w := working(t)
		id := w.sync(t, "orders")
		if !strings.HasPrefix(id, "shop_orders_") || len(id) != len("shop_orders_")+36 {
			t.Errorf("id = %q, want shop_orders_UUID", id)
		}
		at := func(s string) *string { return &s }
		created, none := "2000-01-01T00:00:00.000000Z", at("")
		want := syncTask{ID: id, Source: "shop", Collection: "orders", Priority: 300, CreatedAt: at(created), StartedAt: none, FinishedAt: none,
			Status: "SCHEDULED", Score: 300*1_000_000_000_000 - 946_684_800}
		if diff := cmp.Diff(want, w.task(t, id)); diff != "" {
			t.Error(diff)
		}
		time.Sleep(1500 * time.Millisecond)
		leases := w.claim(t)
		want.Status, want.StartedAt = "RUNNING", at("2000-01-01T00:00:01.500000Z")
		if diff := cmp.Diff(want, w.task(t, id)); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Microsecond)
		w.finish(t, leases[0], queue.OK)
		want.Status, want.FinishedAt = "SUCCESS", at("2000-01-01T00:00:01.500001Z")
		if diff := cmp.Diff(want, w.task(t, id)); diff != "" {
			t.Error(diff)
		}
	})
}

// While a collection is under way, the response is 200 with its task; after any end there is a new one.
func TestOneSyncTaskAtATime(t *testing.T) {
	t.Parallel()
	ends := map[string]func(w *works, t *testing.T, id string){
		"success": func(w *works, t *testing.T, _ string) { w.finish(t, w.claim(t)[0], queue.OK) },
		"failure": func(w *works, t *testing.T, _ string) { w.finish(t, w.claim(t)[0], queue.Failed) },
		"cancel": func(w *works, t *testing.T, id string) {
			if got := w.as(t, access.Operator, "POST", "/tasks/"+id+"/cancel", ""); got.body != `{"status":"ok"}` {
				t.Errorf("cancel = %s", got.body)
			}
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := working(t)
			id := w.sync(t, "orders")
			again := w.as(t, access.Producer, "POST", "/tasks/?source=shop&collection=orders", "")
			if want := `{"task_id":"` + id + `"}`; again.StatusCode != 200 || again.body != want {
				t.Errorf("again = %d %s, want 200 %s", again.StatusCode, again.body, want)
			}
			if other := w.sync(t, "customers"); other == id {
				t.Error("another collection has the same task")
			}
			w.as(t, access.Operator, "POST", "/tasks/"+w.listed(t, "collection=customers")[0].ID+"/cancel", "")
			end(w, t, id)
			if next := w.sync(t, "orders"); next == id {
				t.Error("the same task after its end")
			}
		})
	}
}

func TestSyncTaskNames(t *testing.T) {
	t.Parallel()
	w := working(t)
	target := "/tasks?source=" + url.QueryEscape("gö shop!") + "&collection=" + url.QueryEscape("a b/c")
	id := into[map[string]string](t, w.as(t, access.Producer, "POST", target, ""), 201)["task_id"]
	if !strings.HasPrefix(id, "g__shop__a_b_c_") {
		t.Errorf("id = %q, want what may stand in a URL", id)
	}
	if got := w.task(t, id); got.Source != "gö shop!" || got.Collection != "a b/c" {
		t.Errorf("task = %+v", got)
	}
}

func TestSyncTaskPriorities(t *testing.T) {
	t.Parallel()
	w := working(t)
	for _, ok := range []string{"1", "100", "9223372036854775807"} {
		w := working(t)
		got := w.as(t, access.Producer, "POST", "/tasks?source=shop&collection=c&priority="+ok, "")
		id := into[map[string]string](t, got, 201)["task_id"]
		if shown := w.as(t, access.Viewer, "GET", "/tasks/"+id, ""); !strings.Contains(shown.body, `"priority":`+ok+",") || strings.Contains(shown.body, `"score":-`) {
			t.Errorf("priority %s is shown as %s", ok, shown.body)
		}
	}
	for _, bad := range []string{"", "0", "-1", "+5", "1.5", "1e3", "high", "%20300", "9223372036854775808", "300&priority=200"} {
		got := w.as(t, access.Producer, "POST", "/tasks?source=shop&collection=c&priority="+bad, "")
		wantProblem(t, got, 400, api.CodeInvalid, "query.priority")
	}
	if n := len(w.listed(t, "")); n != 0 {
		t.Errorf("%d tasks were made of refused requests", n)
	}
}

func TestSyncTaskRefused(t *testing.T) {
	t.Parallel()
	w := working(t)
	for query, want := range map[string]struct {
		status   int
		code     api.Code
		location string
	}{
		"":                                    {400, api.CodeInvalid, "query.source"},
		"source=shop":                         {400, api.CodeInvalid, "query.collection"},
		"collection=c":                        {400, api.CodeInvalid, "query.source"},
		"source=&collection=c":                {400, api.CodeInvalid, "query.source"},
		"source=shop&source=x&collection=c":   {400, api.CodeInvalid, "query.source"},
		"source=%zz&collection=c":             {400, api.CodeInvalid, "query"},
		"source=nowhere&collection=c":         {404, api.CodeNotFound, "query.source"},
		"source=shop&collection=nothing":      {404, api.CodeNotFound, "query.collection"},
		"source=SHOP&collection=c":            {404, api.CodeNotFound, "query.source"},
		"source=shop&collection=c&priority=x": {400, api.CodeInvalid, "query.priority"},
	} {
		wantProblem(t, w.as(t, access.Producer, "POST", "/api/v1/tasks?"+query, ""), want.status, want.code, want.location)
	}
	wantProblem(t, w.as(t, access.Producer, "PUT", "/api/v1/tasks", ""), 405, api.CodeMethod)
	if got := w.as(t, access.Admin, "DELETE", "/tasks/", ""); got.Header.Get("Allow") != "GET, HEAD, POST, OPTIONS" {
		t.Errorf("Allow = %q", got.Header.Get("Allow"))
	}
}

// A token in the query is good for reading only.
func TestSyncTaskTokenInQuery(t *testing.T) {
	t.Parallel()
	w := working(t)
	id := w.sync(t, "orders")
	if got := w.as(t, "", "GET", "/tasks/"+id+"?token="+secret(access.Viewer), ""); got.StatusCode != 200 {
		t.Errorf("GET with ?token= = %d", got.StatusCode)
	}
	if got := w.as(t, "", "POST", "/tasks/?source=shop&collection=c&token="+secret(access.Admin), ""); got.StatusCode != 401 {
		t.Errorf("POST with ?token= = %d", got.StatusCode)
	}
}

// The same key gets the same response; the request for which it was first used counts.
func TestSyncTaskOnce(t *testing.T) {
	t.Parallel()
	w := working(t)
	send := func(collection, key string) reply {
		return w.as(t, access.Producer, "POST", "/tasks?source=shop&collection="+collection, "", "Idempotency-Key", key)
	}
	first := send("c", "k")
	second := send("c", "k2") // 200: it is under way
	w.finish(t, w.claim(t)[0], queue.OK)
	for _, c := range []struct {
		key  string
		want reply
	}{{"k", first}, {"k2", second}} {
		again := send("c", c.key)
		if again.StatusCode != c.want.StatusCode || again.body != c.want.body || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s again = %d %s, want %d %s", c.key, again.StatusCode, again.body, c.want.StatusCode, c.want.body)
		}
	}
	if first.StatusCode != 201 || second.StatusCode != 200 {
		t.Errorf("first = %d, second = %d", first.StatusCode, second.StatusCode)
	}
	wantProblem(t, send("d", "k"), 422, api.CodeMismatch, "header.Idempotency-Key")
	wantProblem(t, send("nothing", "k3"), 404, api.CodeNotFound)
	if got := send("d", "k3"); got.StatusCode != 201 {
		t.Errorf("a refused request has kept its key: %d %s", got.StatusCode, got.body)
	}
	alias := w.as(t, access.Producer, "POST", "/api/v1/tasks?source=shop&collection=c", "", "Idempotency-Key", "k")
	if alias.body != first.body {
		t.Errorf("the same call at its other path = %s, want %s", alias.body, first.body)
	}
}

func TestCancelSyncTask(t *testing.T) {
	t.Parallel()
	w := working(t)
	cancel := func(id string) reply { return w.as(t, access.Operator, "POST", "/api/v1/tasks/"+id+"/cancel", "") }
	id := w.sync(t, "orders")
	if got := cancel(id); got.StatusCode != 200 || got.body != `{"status":"ok"}` {
		t.Errorf("cancel = %d %s", got.StatusCode, got.body)
	}
	if got := w.task(t, id); got.Status != "CANCELED" || *got.FinishedAt == "" {
		t.Errorf("a queued task after cancel = %+v", got)
	}
	wantProblem(t, cancel(id), 409, api.CodeConflict)

	id = w.sync(t, "orders")
	lease := w.claim(t)[0]
	if got := cancel(id); got.StatusCode != 200 {
		t.Errorf("cancel of a running task = %d %s", got.StatusCode, got.body)
	}
	if got := w.task(t, id); got.Status != "RUNNING" {
		t.Errorf("a running task after cancel is %s", got.Status)
	}
	if why := into[reason](t, w.as(t, access.Viewer, "GET", "/api/v1/jobs/"+id+"/why", ""), 200); why.Code != "stopping" {
		t.Errorf("why = %+v", why)
	}
	w.finish(t, lease, queue.Cancel)
	if got := w.task(t, id); got.Status != "CANCELED" {
		t.Errorf("after its worker has answered it is %s", got.Status)
	}
	wantProblem(t, cancel(id), 409, api.CodeConflict)
}

// listed returns the list of the shop's tasks, of any time unless the query says one.
func (w *works) listed(t *testing.T, query string) []syncTask {
	t.Helper()
	got := w.as(t, access.Viewer, "GET", "/tasks/?source=shop&"+anyTime(query), "")
	return into[map[string][]syncTask](t, got, 200)["tasks"]
}

func anyTime(query string) string {
	if strings.Contains(query, "start=") {
		return query
	}
	return "start=1999-01-01T00:00:00Z&end=2999-01-01T00:00:00%2B02:00&" + query
}

func ids(tasks []syncTask) []string {
	all := []string{}
	for _, t := range tasks {
		all = append(all, t.Collection)
	}
	return all
}

func TestListSyncTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := working(t)
		for _, collection := range []string{"orders", "customers", "c", "d", "e"} { // at 0, 1, 2, 3 and 4 s
			w.sync(t, collection)
			time.Sleep(time.Second)
		}
		leases := w.claim(t)
		for i, o := range []queue.Outcome{queue.OK, queue.Failed, queue.OK} {
			w.finish(t, leases[i], o)
		}
		w.as(t, access.Operator, "POST", "/tasks/"+string(leases[3].Task.ID)+"/cancel", "")
		w.finish(t, leases[3], queue.Cancel)
		const at = "2000-01-01T00:00:0"
		for query, want := range map[string][]string{
			"":                 {"orders", "customers", "c", "d", "e"},
			"status=SUCCESS":   {"orders", "c"},
			"status=success":   {"orders", "c"},
			"status=Failed":    {"customers"},
			"status=CANCELED":  {"d"},
			"status=canceled":  {"d"},
			"status=running":   {"e"},
			"status=SCHEDULED": {},
			"collection=c":     {"c"},
			"limit=2":          {"orders", "customers"},
			"limit=1&status=failed&collection=customers":         {"customers"},
			"collection=c&status=failed":                         {},
			"start=" + at + "1Z&end=" + at + "3Z":                {"customers", "c", "d"},
			"start=" + at + "1Z&end=" + at + "1Z":                {"customers"},
			"start=" + at + "1.000001Z&end=" + at + "3Z":         {"c", "d"},
			"start=" + at + "1Z&end=" + at + "2.999999Z":         {"customers", "c"},
			"start=" + at + "3Z&end=" + at + "1Z":                {},
			"start=2000-01-01T02:00:03%2B02:00&end=" + at + "3Z": {"d"},
		} {
			if diff := cmp.Diff(want, ids(w.listed(t, query))); diff != "" {
				t.Errorf("%s: %s", query, diff)
			}
		}
		var pages []string
		for next := "/tasks?source=shop&limit=2&token=" + secret(access.Viewer) + "&" + anyTime(""); next != ""; {
			got := w.as(t, access.Viewer, "GET", next, "")
			page := ids(into[map[string][]syncTask](t, got, 200)["tasks"])
			pages = append(pages, strings.Join(page, "+"))
			if next = linked(got); strings.Contains(next, "secret") {
				t.Errorf("Link holds the token: %s", next)
			}
		}
		if diff := cmp.Diff([]string{"orders+customers", "c+d", "e"}, pages); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEmptySyncTaskList(t *testing.T) {
	t.Parallel()
	got := working(t).as(t, access.Viewer, "GET", "/api/v1/tasks?source=shop&"+anyTime(""), "")
	if got.body != `{"tasks":[]}` || got.Header.Get("Link") != "" {
		t.Errorf("nothing = %s, Link %q", got.body, got.Header.Get("Link"))
	}
}

func TestListSyncTasksRefused(t *testing.T) {
	t.Parallel()
	w := working(t)
	const span = "&start=2020-01-01T00:00:00Z&end=2021-01-01T00:00:00Z"
	for query, want := range map[string]struct {
		status   int
		location string
	}{
		"":                                       {400, "query.source"},
		span:                                     {400, "query.source"},
		"source=shop":                            {400, "query.start"},
		"source=shop&start=2020-01-01T00:00:00Z": {400, "query.end"},
		"source=shop&end=2020-01-01T00:00:00Z":   {400, "query.start"},
		"source=shop&start=&end=2020-01-01T00:00:00Z":                     {400, "query.start"},
		"source=shop&start=2020-01-01&end=2021-01-01":                     {400, "query.start"},
		"source=shop&start=0&end=1":                                       {400, "query.start"},
		"source=shop&start=2020-01-01T00:00:00Z&end=tomorrow":             {400, "query.end"},
		"source=shop&start=2020-02-30T00:00:00Z&end=2021-01-01T00:00:00Z": {400, "query.start"},
		"source=shop&status=WAITING" + span:                               {400, "query.status"},
		"source=shop&status=" + span:                                      {400, "query.status"},
		"source=shop&limit=0" + span:                                      {400, "query.limit"},
		"source=shop&limit=1001" + span:                                   {400, "query.limit"},
		"source=shop&limit=-1" + span:                                     {400, "query.limit"},
		"source=shop&limit=x" + span:                                      {400, "query.limit"},
		"source=shop&limit=" + span:                                       {400, "query.limit"},
		"source=shop&cursor=x" + span:                                     {400, "query.cursor"},
		"source=shop&cursor=" + span:                                      {400, "query.cursor"},
		"source=nowhere" + span:                                           {404, "query.source"},
		"source=shop&collection=none" + span:                              {404, "query.collection"},
	} {
		code := map[int]api.Code{400: api.CodeInvalid, 404: api.CodeNotFound}[want.status]
		wantProblem(t, w.as(t, access.Viewer, "GET", "/api/v1/tasks?"+query, ""), want.status, code, want.location)
	}
	for _, limit := range []string{"1", "1000"} {
		if got := w.as(t, access.Viewer, "GET", fmt.Sprintf("/tasks?source=shop&limit=%s%s", limit, span), ""); got.StatusCode != 200 {
			t.Errorf("limit %s = %d %s", limit, got.StatusCode, got.body)
		}
	}
}

// A tick that was made ahead is created, as it is shown and listed, when its time comes, and one that met another task is not listed.
func TestTicksOfACollectionAreListedFromTheirTimeOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the clock stands at 2000-01-01 until somebody sleeps
		w := working(t)
		for _, after := range []time.Duration{time.Second, 2 * time.Second, time.Minute} {
			tick := queue.SyncTask("shop", "orders", 200)
			tick.NotBefore, tick.Same, tick.Schedule, tick.Late = time.Now().Add(after), "tick", "tick", true
			if _, err := w.Enqueue(t.Context(), nil, tick); err != nil {
				t.Fatal(err)
			}
		}
		if ahead := w.listed(t, ""); len(ahead) > 0 {
			t.Errorf("%+v is listed before its time", ahead)
		}
		time.Sleep(2 * time.Second)
		if _, err := w.Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := w.listed(t, "")
		if len(got) != 1 || *got[0].CreatedAt != "2000-01-01T00:00:01.000000Z" || got[0].Status != "SCHEDULED" {
			t.Fatalf("%+v are listed, want the first tick", got)
		}
		at := *got[0].CreatedAt
		of := into[map[string][]syncTask](t, w.as(t, access.Viewer, "GET", "/tasks?source=shop&start="+at+"&end="+at, ""), 200)["tasks"]
		if len(of) != 1 || of[0].ID != got[0].ID || of[0].Score != 200*1_000_000_000_000-946_684_801 {
			t.Errorf("%+v is created at %s, want %+v", of, at, got[0])
		}
	})
}

// A bound finer than a microsecond is neither cut nor rounded: what was created before the start is not in the list.
func TestSyncTaskBoundsAreExact(t *testing.T) {
	t.Parallel()
	w := working(t)
	created := strings.TrimSuffix(*w.task(t, w.sync(t, "orders")).CreatedAt, "Z")
	for bounds, want := range map[string]int{
		"&start=" + created + "Z&end=" + created + "Z":      1,
		"&start=" + created + "1Z&end=2100-01-01T00:00:00Z": 0,
		"&start=2000-01-01T00:00:00Z&end=" + created + "1Z": 1,
	} {
		got := w.as(t, access.Viewer, "GET", "/tasks?source=shop"+bounds, "")
		if n := len(into[map[string][]any](t, got, 200)["tasks"]); n != want {
			t.Errorf("%s: %d tasks, want %d", bounds, n, want)
		}
	}
}

// A body that is too large is refused where none is taken, too, and nothing is done.
func TestNoOperationTakesALargeBody(t *testing.T) {
	t.Parallel()
	w := working(t)
	large := strings.Repeat(" ", 1<<20+1)
	wantProblem(t, w.as(t, access.Producer, "POST", "/tasks?source=shop&collection=orders", large), 413, api.CodeTooLarge, "body")
	wantProblem(t, w.as(t, "", "POST", "/tasks?source=shop&collection=orders", large), 401, api.CodeUnauthorized)
	if leases := w.claim(t); len(leases) > 0 {
		t.Error("what was refused was added")
	}
}

// Nothing may be said as an empty body, as an object without members, or as null.
func TestABodyThatSaysNothing(t *testing.T) {
	t.Parallel()
	w := working(t)
	for n, nothing := range []string{"", "\n", "{}", " { } ", "null"} {
		status := 200
		if n == 0 {
			status = 201
		}
		if got := w.as(t, access.Producer, "POST", "/tasks?source=shop&collection=orders", nothing); got.StatusCode != status {
			t.Errorf("%q: %d %s", nothing, got.StatusCode, got.body)
		}
	}
}
