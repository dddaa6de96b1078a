package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/queue"
)

type reason struct {
	State, Reason, Code, Since string
	Details                    map[string]any
}

func (w *works) why(t *testing.T, id string) reason {
	t.Helper()
	return into[reason](t, w.as(t, access.Viewer, "GET", "/api/v1/jobs/"+id+"/why", ""), 200)
}

func TestWhy(t *testing.T) {
	t.Parallel()
	w := working(t)
	first, second := w.sync(t, "orders"), w.sync(t, "customers")
	if got := w.why(t, first); got.Code != "next" || got.State != "SCHEDULED" || got.Since == "" || !strings.HasSuffix(got.Reason, ".") {
		t.Errorf("the next = %+v", got)
	}
	if got := w.why(t, second); got.Code != "behind" || got.Details["ahead"] != 1.0 {
		t.Errorf("behind it = %+v", got)
	}
	lease := w.claim(t)[0]
	got := w.why(t, first)
	if expires, _ := got.Details["lease_expires_at"].(string); got.Code != "running" || got.State != "RUNNING" || len(expires) != len("2000-01-01T00:00:00.000000Z") {
		t.Errorf("running = %+v", got)
	}
	w.finish(t, lease, queue.OK)
	if got := w.why(t, first); got.Code != "finished" || got.State != "SUCCESS" {
		t.Errorf("finished = %+v", got)
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	w := working(t)
	id := w.sync(t, "orders")
	retry := func() reply { return w.as(t, access.Operator, "POST", "/api/v1/jobs/"+id+"/retry", "") }
	wantProblem(t, retry(), 409, api.CodeConflict) // scheduled
	lease := w.claim(t)[0]
	wantProblem(t, retry(), 409, api.CodeConflict) // running
	w.finish(t, lease, queue.Failed)
	again := into[map[string]any](t, retry(), 201)
	want := map[string]any{
		"id": again["id"], "job": "/sources/shop/orders", "state": "SCHEDULED", "queue": "sync-tasks", "priority": 300.0,
		"created_at": again["created_at"], "attempt": 0.0, "retries": 0.0, "unique": "sync",
	}
	if diff := cmp.Diff(want, again); diff != "" {
		t.Error(diff)
	}
	if id = again["id"].(string); !strings.HasPrefix(id, "shop_orders_") || w.task(t, id).Status != "SCHEDULED" {
		t.Errorf("again = %v", again)
	}
	w.finish(t, w.claim(t)[0], queue.OK)
	wantProblem(t, retry(), 409, api.CodeConflict) // succeeded
}

// A retry that is repeated with its key gets the first response again, also if both tasks have left the history.
func TestRetryOnce(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	for name, text := range map[string]string{"small": "x", "large": strings.Repeat("x", 10_000)} {
		id := w.add(t, 201, `{"topic":"a","retries":0,"properties":{"text":"`+text+`"}}`)["id"].(string)
		w.finish(t, w.claim(t)[0], queue.Failed)
		retry := func() reply {
			return w.as(t, access.Operator, "POST", jobsPath+"/"+id+"/retry", "", "Idempotency-Key", name)
		}
		first := retry()
		w.finish(t, w.claim(t)[0], queue.OK)
		w.as(t, access.Operator, "DELETE", jobsPath+"/"+id, "")
		if again := retry(); again.StatusCode != 201 || again.body != first.body || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: again = %d %.300s\nwant %.300s", name, again.StatusCode, again.body, first.body)
		}
		wantProblem(t, w.as(t, access.Operator, "POST", jobsPath+"/"+id+"/retry", "", "Idempotency-Key", "other"), 404, api.CodeNotFound)
	}
}

// The same key for the retry of another task is another request.
func TestRetryOnceOfEachTask(t *testing.T) {
	t.Parallel()
	w := working(t)
	var ids []string
	for _, collection := range []string{"orders", "c"} {
		ids = append(ids, w.sync(t, collection))
		w.finish(t, w.claim(t)[0], queue.Failed)
	}
	seen := map[string]bool{}
	for range 2 {
		for _, id := range ids {
			again := into[map[string]any](t, w.as(t, access.Operator, "POST", "/api/v1/jobs/"+id+"/retry", "", "Idempotency-Key", "k"), 201)
			seen[again["id"].(string)] = true
		}
	}
	if len(seen) != len(ids) {
		t.Errorf("two retries of each of %d tasks have made %d, want one for each", len(ids), len(seen))
	}
}
