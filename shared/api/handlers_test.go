package api_test

import (
	"encoding/json"
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

const shop = "/api/v1/canvases/shop"

func handlerOf(name string) string { return shop + "/handlers/WORKER/" + url.PathEscape(name) }

type emitted struct{ ID, Status string }

// emit emits an event to a handler of the shop.
func (w *works) emit(t *testing.T, name, body string) emitted {
	t.Helper()
	return into[emitted](t, w.as(t, access.Producer, "POST", handlerOf(name)+"/events", body), 202)
}

// row is an event of a handler as a client reads it.
type row struct {
	ID              string
	Status          string
	Canvas          string
	Space           string
	Name            string
	Modifier        string
	Value           any
	Retries         int
	DelayUntil      string  `json:"delay_until"`
	EnqueuedAt      string  `json:"enqueued_at"`
	LastProcessedAt *string `json:"last_processed_at"`
	DequeuedBy      *string `json:"dequeued_by"`
}

func (w *works) row(t *testing.T, id string) row {
	t.Helper()
	return into[row](t, w.as(t, access.Viewer, "GET", shop+"/events/"+id, ""), 200)
}

// The life of an event in Dark's words: three attempts, five minutes apart.
func TestHandlerEventLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := working(t)
		added := w.emit(t, "mail", `{"value":{"to":"you","n":[1,null]}}`)
		if added.Status != "new" {
			t.Errorf("status = %s, want new", added.Status)
		}
		hand := "hand"
		want := row{ID: added.ID, Status: "scheduled", Canvas: "shop", Space: "WORKER", Name: "mail", Modifier: "_",
			Value: map[string]any{"to": "you", "n": []any{1.0, nil}}, DelayUntil: "2000-01-01T00:00:00.000000Z", EnqueuedAt: "2000-01-01T00:00:00.000000Z"}
		check := func(change func()) {
			t.Helper()
			change()
			got := w.row(t, added.ID)
			if got.Status != "new" { // until when it was delayed is past
				got.DelayUntil = want.DelayUntil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
		check(func() {})
		for i, minute := range []int{0, 5, 10} {
			at := fmt.Sprintf("2000-01-01T00:%02d:00.000000Z", minute)
			var lease queue.Lease
			check(func() {
				lease = w.claim(t)[0]
				want.Status, want.LastProcessedAt, want.DequeuedBy, want.Retries = "locked", &at, &hand, i
			})
			check(func() {
				w.finish(t, lease, queue.Failed)
				if want.Status = "error"; i < 2 {
					want.Status, want.Retries, want.DelayUntil = "new", i+1, fmt.Sprintf("2000-01-01T00:%02d:00.000000Z", minute+5)
				}
			})
			time.Sleep(5 * time.Minute)
			if _, err := w.Promote(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestHandlerEventDone(t *testing.T) {
	t.Parallel()
	w := working(t)
	id := w.emit(t, "größe & co", `{"value":null,"modifier":"Daily"}`).ID
	w.finish(t, w.claim(t)[0], queue.OK)
	got := w.row(t, id)
	if got.Status != "done" || got.Retries != 0 || got.Value != nil || got.Modifier != "Daily" || got.Name != "größe & co" {
		t.Errorf("event = %+v", got)
	}
}

func TestHandlerEventDelayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := working(t)
		id := w.emit(t, "mail", `{"value":1,"delay_until":"2000-01-01T02:00:10+01:00"}`).ID
		if got := w.row(t, id); got.Status != "new" || got.DelayUntil != "2000-01-01T01:00:10.000000Z" {
			t.Errorf("event = %+v", got)
		}
		if leases := w.claim(t); len(leases) > 0 {
			t.Error("started too early")
		}
		time.Sleep(time.Hour + 10*time.Second)
		if got := w.row(t, id); got.Status != "scheduled" {
			t.Errorf("when its time has come it is %s", got.Status)
		}
		past := w.emit(t, "mail", `{"value":1,"delay_until":"1999-01-01T00:00:00Z"}`).ID
		if got := w.row(t, past); got.Status != "scheduled" || got.DelayUntil != "1999-01-01T00:00:00.000000Z" {
			t.Errorf("delayed until the past: %+v", got)
		}
	})
}

func TestHandlerMissing(t *testing.T) {
	t.Parallel()
	w := working(t)
	for _, handler := range []string{"nobody", "MAIL", "a b", "100%"} {
		added := w.emit(t, handler, `{"value":"x"}`)
		if got := w.row(t, added.ID); added.Status != "missing" || got.Status != "missing" || got.Name != handler || got.Value != "x" || got.LastProcessedAt != nil {
			t.Errorf("%s: %+v, %+v", handler, added, got)
		}
		retried := w.as(t, access.Operator, "POST", "/api/v1/jobs/"+added.ID+"/retry", "")
		wantProblem(t, retried, 409, api.CodeConflict)
	}
	other := into[emitted](t, w.as(t, access.Producer, "POST", "/api/v1/canvases/other%20one/handlers/CRON/mail/events", `{"value":1}`), 202)
	if other.Status != "missing" {
		t.Errorf("on another canvas = %+v", other)
	}
	if leases := w.claim(t); len(leases) > 0 {
		t.Errorf("started %v", leases)
	}
}

func TestHandlerEventRefused(t *testing.T) {
	t.Parallel()
	w := working(t)
	value := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	for body, want := range map[string]struct {
		status   int
		code     api.Code
		location string
	}{
		"":                                   {400, api.CodeInvalid, "body"},
		"{":                                  {400, api.CodeInvalid, "body"},
		"[]":                                 {400, api.CodeInvalid, "body"},
		"null":                               {400, api.CodeInvalid, "body"},
		"{}":                                 {400, api.CodeInvalid, "body.value"},
		`{"value":1} {}`:                     {400, api.CodeInvalid, "body"},
		`{"value":1,"value":2}`:              {400, api.CodeInvalid, "body.value"},
		`{"value":{"a":1,"a":2}}`:            {400, api.CodeInvalid, "body.value.a"},
		"{\"value\":\"\xff\"}":               {400, api.CodeInvalid, "body"},
		`{"value":1,"priority":3}`:           {400, api.CodeInvalid, "body.priority"},
		`{"value":1,"delay_until":null}`:     {400, api.CodeInvalid, "body.delay_until"},
		`{"value":1,"delay_until":5}`:        {400, api.CodeInvalid, "body.delay_until"},
		`{"value":1,"delay_until":"5m"}`:     {400, api.CodeInvalid, "body.delay_until"},
		`{"value":1,"modifier":null}`:        {400, api.CodeInvalid, "body.modifier"},
		`{"value":1,"modifier":1}`:           {400, api.CodeInvalid, "body.modifier"},
		`{"value":1,"modifier":""}`:          {400, api.CodeInvalid, "body.modifier"},
		`{"value":` + value(256<<10+1) + `}`: {413, api.CodeTooLarge, "body.value"},
		`{"value":` + value(1<<20) + `}`:     {413, api.CodeTooLarge, "body"},
	} {
		wantProblem(t, w.as(t, access.Producer, "POST", handlerOf("mail")+"/events", body), want.status, want.code, want.location)
	}
	wantProblem(t, w.as(t, access.Producer, "POST", handlerOf("mail")+"/events", "value=1", "Content-Type", "text/plain"), 415, api.CodeMediaType)
	for path, location := range map[string]string{
		"/api/v1/canvases/a%2Fb/handlers/W/n/events":                            "path.canvas",
		"/api/v1/canvases/a/handlers/W%2FX/n/events":                            "path.space",
		"/api/v1/canvases/a/handlers/W/" + strings.Repeat("n", 256) + "/events": "path.name",
		"/api/v1/canvases/a/handlers/W/%ff/events":                              "path.name",
		"/api/v1/canvases/a/handlers/W/n%0a/events":                             "path.name",
	} {
		wantProblem(t, w.as(t, access.Producer, "POST", path, `{"value":1}`), 400, api.CodeInvalid, location)
	}
	if got := w.as(t, access.Producer, "POST", handlerOf("mail")+"/events", `{"value":`+value(256<<10)+`}`); got.StatusCode != 202 {
		t.Errorf("a value of 256 KiB = %d %s", got.StatusCode, got.body)
	}
	if n := len(w.rows(t, "mail", "")); n != 1 {
		t.Errorf("%d events, want the one that was taken", n)
	}
}

func TestHandlerEventBatch(t *testing.T) {
	t.Parallel()
	w := working(t)
	send := func(body string, headers ...string) reply {
		return w.as(t, access.Producer, "POST", handlerOf("mail")+"/events:batch", body, headers...)
	}
	var body []map[string]any
	for i := range 60 { // more than the engine takes at once
		body = append(body, map[string]any{"value": i})
	}
	text, _ := json.Marshal(body)
	first := send(string(text), "Idempotency-Key", "k")
	added := into[[]emitted](t, first, 202)
	if len(added) != 60 {
		t.Fatalf("%d answers, want 60", len(added))
	}
	for i, a := range added {
		if got := w.row(t, a.ID); a.Status != "new" || got.Value != float64(i) {
			t.Errorf("event %d = %+v, %+v", i, a, got)
		}
	}
	if again := send(string(text), "Idempotency-Key", "k"); again.body != first.body || again.StatusCode != 202 || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again = %d %s", again.StatusCode, again.body)
	}
	wantProblem(t, send(`[{"value":1}]`, "Idempotency-Key", "k"), 422, api.CodeMismatch)
	for body, location := range map[string]string{
		`{"value":1}`: "body", "[]": "body", "[1]": "body[0]", `[{"value":1},{}]`: "body[1].value",
		`[{"value":1},{"value":1,"delay_until":"x"}]`: "body[1].delay_until", `[{"value":1},{"value":1,"x":1}]`: "body[1].x",
		`[{"value":1},{"value":1,"value":1}]`:                       "body[1].value",
		"[" + strings.Repeat(`{"value":1},`, 1000) + `{"value":1}]`: "body",
	} {
		wantProblem(t, send(body), 400, api.CodeInvalid, location)
	}
	if n := len(w.rows(t, "mail", "")); n != 60 {
		t.Errorf("%d events, want 60: a refused batch leaves none, a repeated one no more", n)
	}
	missing := into[[]emitted](t, w.as(t, access.Producer, "POST", handlerOf("nobody")+"/events:batch", `[{"value":1}]`), 202)
	if missing[0].Status != "missing" {
		t.Errorf("a batch for nobody = %+v", missing)
	}
}

// A repeated request gets the first response again, whatever has become of the event.
func TestHandlerEventOnce(t *testing.T) {
	t.Parallel()
	w := working(t)
	for _, name := range []string{"mail", "nobody"} {
		send := func(body string) reply {
			return w.as(t, access.Producer, "POST", handlerOf(name)+"/events", body, "Idempotency-Key", "k-"+name)
		}
		first := send(`{"value":1}`)
		for _, l := range w.claim(t) {
			w.finish(t, l, queue.OK)
		}
		if again := send(`{"value":1}`); again.body != first.body || again.StatusCode != 202 || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("again = %d %s, want %s", again.StatusCode, again.body, first.body)
		}
		wantProblem(t, send(`{"value":2}`), 422, api.CodeMismatch)
	}
	other := w.as(t, access.Producer, "POST", handlerOf("größe & co")+"/events", `{"value":1}`, "Idempotency-Key", "k-mail")
	if other.StatusCode != 202 || other.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the same key for another handler = %d %s", other.StatusCode, other.body)
	}
}

// rows lists a handler's events.
func (w *works) rows(t *testing.T, name, query string) []row {
	t.Helper()
	var all []row
	for next := handlerOf(name) + "/events?" + query; next != ""; {
		got := w.as(t, access.Viewer, "GET", next, "")
		all = append(all, into[map[string][]row](t, got, 200)["events"]...)
		next = linked(got)
	}
	return all
}

func values(rows []row) string {
	var all []string
	for _, r := range rows {
		all = append(all, fmt.Sprint(r.Value))
	}
	return strings.Join(all, " ")
}

func TestListHandlerEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := working(t)
		for i := range 5 {
			w.emit(t, "mail", fmt.Sprintf(`{"value":%d}`, i))
			time.Sleep(time.Millisecond)
		}
		w.emit(t, "mail", `{"value":"later","delay_until":"2001-01-01T00:00:00Z"}`)
		w.emit(t, "größe & co", `{"value":"another's"}`)
		for _, l := range w.claim(t)[:3] {
			if string(l.Task.Payload) == "0" {
				w.finish(t, l, queue.OK)
			}
		}
		for query, want := range map[string]string{
			"": "later 4 3 2 1 0", "limit=2": "later 4 3 2 1 0", "status=done": "0", "status=DONE": "0", "status=locked": "4 3 2 1",
			"status=new": "later", "status=error&limit=1": "", "status=locked&limit=3": "4 3 2 1",
		} {
			if got := values(w.rows(t, "mail", query)); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
	})
	w := working(t)
	for query, location := range map[string]string{
		"status=SUCCESS": "query.status", "limit=0": "query.limit", "limit=1001": "query.limit", "cursor=x": "query.cursor",
	} {
		wantProblem(t, w.as(t, access.Viewer, "GET", handlerOf("mail")+"/events?"+query, ""), 400, api.CodeInvalid, location)
	}
	if got := w.as(t, access.Viewer, "GET", handlerOf("nobody")+"/events", ""); got.body != `{"events":[]}` {
		t.Errorf("of nobody = %d %s", got.StatusCode, got.body)
	}
}

// Large values make pages shorter, not larger than the host can carry.
func TestListLargeHandlerEvents(t *testing.T) {
	t.Parallel()
	w := working(t, func(o *api.Options) { o.MaxAnswer = 300_000 })
	for range 5 {
		w.emit(t, "mail", `{"value":"`+strings.Repeat("x", 100_000)+`"}`)
	}
	first := w.as(t, access.Viewer, "GET", handlerOf("mail")+"/events", "")
	if n := len(into[map[string][]row](t, first, 200)["events"]); n != 2 || linked(first) == "" {
		t.Errorf("%d events in one answer, Link %q", n, linked(first))
	}
	if n := len(w.rows(t, "mail", "")); n != 5 {
		t.Errorf("%d events, want 5", n)
	}
}

type handlerState struct {
	Name, Space, State string
	Counts             map[string]int
	OldestWait         *int64 `json:"oldest_wait_ms"`
}

func (w *works) handlers(t *testing.T) map[string]handlerState {
	t.Helper()
	all := map[string]handlerState{}
	for next := shop + "/handlers?limit=2"; next != ""; {
		got := w.as(t, access.Viewer, "GET", next, "")
		for _, h := range into[map[string][]handlerState](t, got, 200)["handlers"] {
			all[h.Name] = h
		}
		next = linked(got)
	}
	return all
}

func TestHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := working(t)
		w.emit(t, "nobody", `{"value":1}`)
		w.emit(t, "mail", `{"value":1}`)
		w.finish(t, w.claim(t)[0], queue.OK)
		time.Sleep(time.Millisecond)
		w.emit(t, "mail", `{"value":1,"delay_until":"2001-01-01T00:00:00Z"}`)
		time.Sleep(1500 * time.Millisecond)
		w.emit(t, "mail", `{"value":1}`)
		time.Sleep(time.Second)
		rule := func(method, name, kind string) {
			t.Helper()
			if got := w.as(t, access.Admin, method, handlerOf(name)+"/rules/"+kind, ""); got.StatusCode != 204 || got.body != "" {
				t.Errorf("%s %s = %d %s", method, kind, got.StatusCode, got.body)
			}
		}
		rule("PUT", "later", "block")
		wait := int64(1000) // of the one without delay_until
		counts := func(change map[string]int) map[string]int {
			all := map[string]int{"new": 0, "scheduled": 0, "locked": 0, "done": 0, "error": 0, "missing": 0}
			for status, n := range change {
				all[status] = n
			}
			return all
		}
		want := map[string]handlerState{
			"mail":       {"mail", "WORKER", "run", counts(map[string]int{"done": 1, "new": 1, "scheduled": 1}), &wait},
			"größe & co": {"größe & co", "WORKER", "run", counts(nil), nil},
			"nobody":     {"nobody", "WORKER", "run", counts(map[string]int{"missing": 1}), nil},
			"later":      {"later", "WORKER", "block", counts(nil), nil},
		}
		if diff := cmp.Diff(want, w.handlers(t)); diff != "" {
			t.Error(diff)
		}
		for _, cursor := range []string{"x", "/canvases/other/WORKER/mail"} {
			got := w.as(t, access.Viewer, "GET", shop+"/handlers?cursor="+url.QueryEscape(cursor), "")
			wantProblem(t, got, 400, api.CodeInvalid, "query.cursor")
		}
	})
}

// Rules are independent of each other, and block wins.
func TestRules(t *testing.T) {
	t.Parallel()
	w := working(t)
	id := w.emit(t, "mail", `{"value":1}`).ID
	for _, step := range []struct{ method, kind, state, status, code string }{
		{"PUT", "pause", "pause", "new", "paused"},
		{"PUT", "pause", "pause", "new", "paused"},
		{"PUT", "block", "block", "new", "blocked"},
		{"DELETE", "pause", "block", "new", "blocked"},
		{"PUT", "pause", "block", "new", "blocked"},
		{"DELETE", "block", "pause", "new", "paused"},
		{"DELETE", "pause", "run", "scheduled", "next"},
		{"DELETE", "pause", "run", "scheduled", "next"},
	} {
		if got := w.as(t, access.Admin, step.method, handlerOf("mail")+"/rules/"+step.kind, ""); got.StatusCode != 204 || got.body != "" {
			t.Fatalf("%s %s = %d %s", step.method, step.kind, got.StatusCode, got.body)
		}
		why := into[reason](t, w.as(t, access.Viewer, "GET", "/api/v1/jobs/"+id+"/why", ""), 200)
		got := [3]string{w.handlers(t)["mail"].State, w.row(t, id).Status, why.Code}
		if want := [3]string{step.state, step.status, step.code}; got != want || why.State != step.status {
			t.Errorf("after %s %s: %v and %s, want %v", step.method, step.kind, got, why.State, want)
		}
		if listed := w.rows(t, "mail", "status="+step.status); len(listed) != 1 {
			t.Errorf("after %s %s: %d listed", step.method, step.kind, len(listed))
		}
		if counts := w.handlers(t)["mail"].Counts; counts[step.status] != 1 {
			t.Errorf("after %s %s: counts %v", step.method, step.kind, counts)
		}
		if leases := w.claim(t); step.state != "run" && len(leases) > 0 {
			t.Fatalf("started while the state is %s", step.state)
		} else if len(leases) > 0 {
			return
		}
	}
	wantProblem(t, w.as(t, access.Admin, "PUT", handlerOf("mail")+"/rules/stop", ""), 404, api.CodeNotFound)
	wantProblem(t, w.as(t, access.Admin, "POST", handlerOf("mail")+"/rules/pause", ""), 405, api.CodeMethod)
}
