package api_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
)

// TestSchedulesAreListedByNameOrByTime: nothing else orders them, not even the name of no order.
func TestSchedulesAreListedByNameOrByTime(t *testing.T) {
	t.Parallel()
	w := newWhole(t, memory.New(memory.Options{}), journal.Retention{})
	w.defines(`schedules: [{name: a, cron: "0 0 0 1 1 ?", job: /topics/b}, {name: b, cron: "* * * * * ?", job: /topics/b}]`)
	w.tick(time.Second)
	for order, want := range map[string][]string{"": {"a", "b"}, "?order=name": {"a", "b"}, "?order=next": {"b", "a"}} {
		var got []string
		list := into[struct{ Schedules []struct{ Name string } }](t, w.as(t, access.Viewer, "GET", "/api/v1/schedules"+order, ""), 200)
		for _, s := range list.Schedules {
			got = append(got, s.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", order, diff)
		}
	}
	for _, order := range []string{"?order=", "?order=last", "?order=name&order=next"} {
		wantProblem(t, w.as(t, access.Viewer, "GET", "/api/v1/schedules"+order, ""), 400, api.CodeInvalid, "query.order")
	}
}

// A backfill with a key is made once: the first response again, and no other under that key. Each schedule has keys of its own.
func TestBackfillWithAKey(t *testing.T) {
	t.Parallel()
	w := newWhole(t, memory.New(memory.Options{}), journal.Retention{})
	w.defines(`schedules: [{name: s, cron: "0 0 * * * ?", job: /topics/b}, {name: r, cron: "0 0 * * * ?", job: /topics/b}]`)
	send := func(act, body string) reply {
		return w.as(t, access.Operator, "POST", "/api/v1/schedules/"+act, body, "Idempotency-Key", "k")
	}
	span := func(hours int) string {
		from := w.began.Truncate(time.Hour).Add(-72 * time.Hour)
		return `{"from":"` + from.Format(time.RFC3339) + `","to":"` + from.Add(time.Duration(hours-1)*time.Hour).Format(time.RFC3339) + `"}`
	}
	for _, c := range []struct{ act, body, other string }{
		{"s/backfill", span(30), span(31)}, // more than one write of tasks
		{"r/backfill", span(1), span(2)},
	} {
		first, again, other := send(c.act, c.body), send(c.act, c.body), send(c.act, c.other)
		if first.StatusCode != 202 || first.Header.Get("Idempotent-Replayed") != "" {
			t.Fatal(c.act, first.StatusCode, first.body)
		}
		if again.StatusCode != 202 || again.body != first.body || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s again: %d %s, want %s", c.act, again.StatusCode, again.body, first.body)
		}
		wantProblem(t, other, 422, api.CodeMismatch, "header.Idempotency-Key")
	}
	all := into[struct{ Jobs []struct{} }](t, w.as(t, access.Viewer, "GET", "/api/v1/jobs?type=ALL", ""), 200)
	if len(all.Jobs) != 31 {
		t.Errorf("%d jobs, want 30 ticks and 1", len(all.Jobs))
	}
}

// ofAnOrder are definitions with a schedule of an order, which fires at each New Year.
const ofAnOrder = `jobs: [{path: /j, target: {go: f}}]
job_chains: [{path: /c, nodes: [{id: A, job: /j}, {id: end}]}]
schedules: [{name: o, cron: "0 0 0 1 1 ?", order: {chain: /c, id: yearly}}]
`

// TestAScheduleOfAnOrderIsShown: its ticks have no tasks, so its last one has a time only.
func TestAScheduleOfAnOrderIsShown(t *testing.T) {
	t.Parallel()
	w := newWhole(t, memory.New(memory.Options{}), journal.Retention{})
	w.defines(ofAnOrder)
	const declared = `{"cron":"0 * * * * ?","order":{"chain":"/c","id":"o"}}`
	w.does(access.Admin, "PUT", "/api/v1/schedules/o", declared, "")
	w.tick(time.Second)
	w.tick(time.Minute)
	type shown struct{ Last map[string]string }
	is := func(s shown) {
		t.Helper()
		if len(s.Last) != 1 || s.Last["fired_at"] == "" {
			t.Errorf("last = %v, want the time alone", s.Last)
		}
	}
	is(into[shown](t, w.as(t, access.Viewer, "GET", "/api/v1/schedules/o", ""), 200))
	is(into[shown](t, w.as(t, access.Admin, "PUT", "/api/v1/schedules/o", declared), 200))
	for _, order := range []string{"name", "next"} {
		list := into[struct{ Schedules []shown }](t, w.as(t, access.Viewer, "GET", "/api/v1/schedules?order="+order, ""), 200)
		is(list.Schedules[0])
	}
}

// TestAnOrderIsTriggeredAndBackfilledAsFarAsItCan: what it does not take is not told to be made.
func TestAnOrderIsTriggeredAndBackfilledAsFarAsItCan(t *testing.T) {
	t.Parallel()
	w := newWhole(t, memory.New(memory.Options{}), journal.Retention{})
	w.defines(ofAnOrder)
	w.tick(time.Second)
	path := "/api/v1/schedules/o"
	years := fmt.Sprintf(`{"from":%q,"to":%q}`, w.began.AddDate(-5, 0, 0).Format(time.RFC3339), w.began.Format(time.RFC3339))
	backfills := func(ticks string) {
		t.Helper()
		if got := w.does(access.Operator, "POST", path+"/backfill", years, "ticks"); got != ticks {
			t.Errorf("%s ticks were made, want %s", got, ticks)
		}
	}
	trigger := func(key string) reply {
		return w.as(t, access.Operator, "POST", path+"/trigger", "", "Idempotency-Key", key)
	}
	ends := func() {
		t.Helper()
		leases, err := w.queue.Claim(t.Context(), queue.Claimer{Instance: "i"}, 2)
		if err != nil || len(leases) != 1 {
			t.Fatalf("%d steps, %v, want one", len(leases), err)
		}
		if _, err := w.queue.Complete(t.Context(), leases[0].Token, queue.Result{Outcome: queue.OK}); err != nil {
			t.Fatal(err)
		}
	}
	backfills("1")
	backfills("0")
	wantProblem(t, trigger("a"), 409, api.CodeConflict)
	ends()
	first := trigger("a")
	if id := into[map[string]string](t, first, 202)["task_id"]; id == "" {
		t.Errorf("trigger = %s, want the task of the step", first.body)
	}
	ends()
	step := into[map[string]string](t, first, 202)["task_id"]
	wantProblem(t, w.as(t, access.Operator, "POST", "/api/v1/jobs/"+step+"/retry", ""), 409, api.CodeConflict) // it is an order's
	if again := trigger("a"); again.body != first.body || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("trigger again = %v %s, want that it is replayed: %s", again.Header, again.body, first.body)
	}
	w.does(access.Operator, "POST", "/api/v1/orders/c/yearly/suspend", "", "")
	backfills("0")
	wantProblem(t, trigger("b"), 409, api.CodeConflict)
	w.does(access.Operator, "POST", "/api/v1/orders/c/yearly/resume", "", "")
	w.does(access.Operator, "POST", "/api/v1/chains/c/stop", "", "")
	w.tick(time.Second)
	if got := trigger("b"); got.StatusCode != 202 || got.body != "{}" {
		t.Errorf("trigger where the chain is stopped = %d %s, want no task", got.StatusCode, got.body)
	}
}
