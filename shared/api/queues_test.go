package api_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/queue"
)

const queuesPath = "/api/v1/queues"

func (w *works) queue(t *testing.T, role access.Role, method, name, body string, status int) map[string]any {
	t.Helper()
	return into[map[string]any](t, w.as(t, role, method, queuesPath+"/"+name, body), status)
}

func TestQueueIsDeclaredAndTakenBack(t *testing.T) {
	t.Parallel()
	w := topical(t, run("mail/a"))
	put := `{"topics":["mail/*"],"type":"ordered","retries":3,"retry_delay":"1m","keep_jobs":true,"weights":{"/topics/mail/*":3}}`
	got := w.queue(t, access.Admin, "PUT", "mail-%7B0%7D", put, 201)
	none := map[string]any{
		"queued": 0.0, "active": 0.0, "finished": 0.0, "failed": 0.0, "cancelled": 0.0, "processed": 0.0, "average_waiting_ms": 0.0, "average_processing_ms": 0.0,
	}
	want := map[string]any{
		"name": "mail-{0}", "topics": []any{"mail/*"}, "type": "ordered", "max_parallel": 1.0, "retries": 3.0, "retry_delay": "1m", "keep_jobs": true,
		"weights": map[string]any{"/topics/mail/*": 3.0}, "suspended": false, "statistics": none,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if job := w.add(t, 201, `{"topic":"mail/a"}`); job["queue"] != "mail-a" || job["retries"] != 3.0 {
		t.Errorf("job = %v, want it in its family's queue", job)
	}
	if got := w.queue(t, access.Viewer, "GET", "mail-a", "", 200); got["max_parallel"] != 1.0 || got["statistics"].(map[string]any)["queued"] != 1.0 {
		t.Errorf("queue = %v", got)
	}
	w.queue(t, access.Admin, "PUT", "mail-%7B0%7D", `{"topics":["mail/*"]}`, 200)
	wantProblem(t, w.as(t, access.Admin, "PUT", queuesPath+"/q", `{"max_parallel":0}`), 400, api.CodeInvalid, "body.max_parallel")
	wantProblem(t, w.as(t, access.Admin, "PUT", queuesPath+"/q", `{"name":"other"}`), 400, api.CodeInvalid, "body.name")
	if r := w.as(t, access.Admin, "DELETE", queuesPath+"/mail-%7B0%7D", ""); r.StatusCode != 204 {
		t.Errorf("DELETE = %d", r.StatusCode)
	}
	wantProblem(t, w.as(t, access.Admin, "DELETE", queuesPath+"/mail-%7B0%7D", ""), 404, api.CodeNotFound)
	wantProblem(t, w.as(t, access.Viewer, "GET", queuesPath+"/nothing", ""), 404, api.CodeNotFound)
}

func TestFamilyActs(t *testing.T) {
	t.Parallel()
	w := topical(t, run("m/a", "m/b")+"queues:\n  - {name: \"m-{0}\", topics: [m/*]}\n")
	act := func(what string, status int) {
		t.Helper()
		if r := w.as(t, access.Operator, "POST", queuesPath+"/m-%7B0%7D/"+what, ""); r.StatusCode != status {
			t.Errorf("%s = %d %s, want %d", what, r.StatusCode, r.body, status)
		}
	}
	w.add(t, 201, `{"topic":"m/a"}`)
	act("suspend", 204)
	w.add(t, 201, `{"topic":"m/b"}`)
	for _, name := range []string{"m-%7B0%7D", "m-a", "m-b"} {
		if got := w.queue(t, access.Viewer, "GET", name, "", 200); got["suspended"] != true || got["suspended_since"] == nil {
			t.Errorf("queue %s = %v, want it suspended", name, got)
		}
	}
	if n := len(w.claim(t)); n != 0 {
		t.Errorf("%d jobs of a suspended family were started", n)
	}
	act("resume", 204)
	if n := len(w.claim(t)); n != 2 {
		t.Errorf("%d jobs were started, want 2", n)
	}
}

// What nothing is declared as, and nothing waits in, is no queue: it is neither shown nor acted on.
func TestActsOnQueuesThatAreNotThere(t *testing.T) {
	t.Parallel()
	const declared = "queues:\n  - {name: q, topics: [a]}\n  - {name: r, topics: [b]}\n  - {name: \"m-{0}\", topics: [m/*]}\n"
	w := topical(t, run("a", "b")+declared)
	is := func(name string, there bool, acts ...string) {
		t.Helper()
		got := []reply{w.as(t, access.Viewer, "GET", queuesPath+"/"+name, "")}
		for _, act := range acts {
			got = append(got, w.as(t, access.Operator, "POST", queuesPath+"/"+name+"/"+act, ""))
		}
		for _, r := range got {
			if !there {
				wantProblem(t, r, 404, api.CodeNotFound)
			} else if r.StatusCode >= 300 {
				t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
			}
		}
	}
	is("typo", false, "suspend", "resume", "purge")
	if page := w.as(t, access.Viewer, "GET", queuesPath, ""); strings.Contains(page.body, "typo") {
		t.Errorf("it is listed: %s", page.body)
	}
	is("m-b", true, "suspend", "resume", "purge") // of a family, though it has no tasks yet
	w.add(t, 201, `{"topic":"a","run_at":"2999-01-01T00:00:00Z"}`)
	w.add(t, 201, `{"topic":"b"}`)
	is("q", true, "suspend")
	for _, name := range []string{"q", "r"} {
		if r := w.as(t, access.Admin, "DELETE", queuesPath+"/"+name, ""); r.StatusCode != 204 {
			t.Fatal(r.StatusCode, r.body)
		}
	}
	is("r", true, "suspend", "resume") // a task has stayed in it
	is("q", true, "resume")            // it has stayed suspended
	if got := w.as(t, access.Operator, "POST", queuesPath+"/q/purge", ""); got.body != `{"dropped":1}` {
		t.Errorf("purge = %d %s, want the task that has stayed in it dropped", got.StatusCode, got.body)
	}
	is("q", false, "suspend", "resume", "purge")
}

func TestQueueActs(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a")+"queues:\n  - {name: q, topics: [a]}\n")
	act := func(what string, status int) string {
		t.Helper()
		r := w.as(t, access.Operator, "POST", queuesPath+"/q/"+what, "")
		if r.StatusCode != status {
			t.Errorf("%s = %d %s, want %d", what, r.StatusCode, r.body, status)
		}
		return r.body
	}
	id := w.add(t, 201, `{"topic":"a"}`)["id"].(string)
	act("suspend", 204)
	if got := w.queue(t, access.Viewer, "GET", "q", "", 200); got["suspended"] != true || got["suspended_since"] == nil {
		t.Errorf("queue = %v", got)
	}
	if n := len(w.claim(t)); n != 0 {
		t.Errorf("%d jobs of a suspended queue were started", n)
	}
	if why := w.why(t, id); why.Code != "suspended" || why.State != "QUEUED" {
		t.Errorf("why = %+v", why)
	}
	act("resume", 204)
	if n := len(w.claim(t)); n != 1 {
		t.Errorf("%d jobs were started, want 1", n)
	}
	w.add(t, 201, `{"topic":"a"}`)
	w.add(t, 201, `{"topic":"a","run_at":"2999-01-01T00:00:00Z"}`)
	if diff := cmp.Diff(`{"dropped":2}`, act("purge", 200)); diff != "" {
		t.Error(diff)
	}
	if got := w.ids(t, "GET", jobsPath, ""); !slices.Equal(got, []string{id}) {
		t.Errorf("left = %v, want that which runs", got)
	}
	page := w.as(t, access.Viewer, "GET", queuesPath+"?limit=3", "")
	names := func(r reply) (all []string) {
		for _, q := range into[map[string][]map[string]any](t, r, 200)["queues"] {
			all = append(all, q["name"].(string))
		}
		return all
	}
	if diff := cmp.Diff([]string{"handler-events", "main", "q"}, names(page)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"sync-tasks"}, names(w.as(t, access.Viewer, "GET", linked(page), ""))); diff != "" {
		t.Error(diff)
	}
}

func TestQueueStatistics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := topical(t, run("a", "b"))
		a, b := `{"topic":"a","retries":1,"retry_delay":0}`, `{"topic":"b"}`
		w.add(t, 201, a)
		w.add(t, 201, b)
		time.Sleep(2 * time.Second)
		leases := w.claim(t) // both have waited 2 s
		time.Sleep(3 * time.Second)
		for _, l := range leases {
			outcome := queue.OK
			if l.Task.Job == "/topics/a" {
				outcome = queue.Failed
			}
			w.finish(t, l, outcome)
		}
		w.finish(t, w.claim(t)[0], queue.Failed) // the last attempt, at once
		w.add(t, 201, b)
		want := map[string]any{
			"queued": 1.0, "active": 0.0, "finished": 1.0, "failed": 1.0, "cancelled": 1.0, "processed": 3.0,
			"average_waiting_ms": 1333.0, "average_processing_ms": 3000.0,
		}
		got := into[map[string]any](t, w.as(t, access.Viewer, "GET", "/api/v1/statistics", ""), 200)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("all (-want +got):\n%s", diff)
		}
		page := w.as(t, access.Viewer, "GET", "/api/v1/statistics/topics?limit=1", "")
		first := into[map[string][]map[string]any](t, page, 200)["topics"]
		rest := into[map[string][]map[string]any](t, w.as(t, access.Viewer, "GET", linked(page), ""), 200)["topics"]
		topics := append(first, rest...)
		if len(topics) != 2 || topics[0]["topic"] != "a" || topics[0]["failed"] != 1.0 || topics[1]["topic"] != "b" || topics[1]["average_waiting_ms"] != 2000.0 {
			t.Errorf("topics = %v", topics)
		}
		if got := w.queue(t, access.Viewer, "GET", "main", "", 200)["statistics"]; cmp.Diff(any(want), got) != "" {
			t.Errorf("of the queue = %v", got)
		}
	})
}

// Responses about jobs and queues have the members that their schemas name, and no others.
func TestOpenAPIOfJobsHolds(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	doc, _ := description(t, &w.bundle)
	first := w.add(t, 201, `{"topic":"a","properties":{},"unique":"u","concurrency":{"key":"k","limit":1}}`)["id"].(string)
	w.claim(t)
	w.as(t, access.Operator, "POST", queuesPath+"/main/suspend", "")
	for schema, answer := range map[string]string{
		"Job":        w.as(t, access.Viewer, "GET", jobsPath+"/"+first, "").body,
		"Queue":      w.as(t, access.Viewer, "GET", queuesPath+"/main", "").body,
		"Statistics": w.as(t, access.Viewer, "GET", "/api/v1/statistics", "").body,
	} {
		var members map[string]any
		if err := json.Unmarshal([]byte(answer), &members); err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		described := doc.Components.Schemas[schema].(map[string]any)
		properties := described["properties"].(map[string]any)
		for name := range members {
			if properties[name] == nil {
				t.Errorf("%s: %s is not described", schema, name)
			}
		}
		for _, name := range described["required"].([]any) {
			if _, there := members[name.(string)]; !there {
				t.Errorf("%s: %s is not there: %s", schema, name, answer)
			}
		}
	}
	paths := strings.Join(slices.Sorted(maps.Keys(doc.Paths)), " ")
	for _, path := range []string{
		jobsPath, jobsPath + "/search", jobsPath + "/{id}", jobsPath + "/{id}/stop", queuesPath, queuesPath + "/{name}", queuesPath + "/{name}/suspend",
		queuesPath + "/{name}/resume", queuesPath + "/{name}/purge", "/api/v1/statistics", "/api/v1/statistics/topics",
	} {
		if !strings.Contains(" "+paths+" ", " "+path+" ") {
			t.Errorf("%s is not described", path)
		}
	}
}
