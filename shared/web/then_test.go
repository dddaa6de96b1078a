package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestWhatTheJournalTellsOfAMoment: pages of what has no overview show, as of any moment, what stood then and nothing of what came later.
func TestWhatTheJournalTellsOfAMoment(t *testing.T) {
	s := start(t)
	fields := func(got response) (all map[string]any) {
		t.Helper()
		if got.StatusCode >= http.StatusMultipleChoices {
			t.Fatalf("%d %s", got.StatusCode, got.body)
		}
		_ = json.Unmarshal([]byte(got.body), &all) // a list, or nothing, is not asked for
		return all
	}
	do := func(method, path, body string) map[string]any {
		t.Helper()
		return fields(s.call("admin-secret", method, path, body))
	}
	appended := func(name string) {
		r := s.browser().request(http.MethodPost, "/api/v1/streams/meters/events", fmt.Sprintf(`{"event":{"name":%q},"payload":{},"trigger":{"type":"manual","name":"t"},`+
			`"system":{"id":%q,"name":"n","time":"2026-01-01T00:00:00Z","timezone":"UTC"}}`, name, somebody))
		r.Header.Set("Authorization", "Bearer admin-secret")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Producer-ID", somebody)
		fields(s.browser().do(r))
	}
	claim := func(instance any) string {
		claims, _ := do(http.MethodPost, fmt.Sprintf("/api/v1/instances/%s/claims", instance), `{"max":1}`)["claims"].([]any)
		if len(claims) != 1 {
			t.Fatalf("%d claims, want one", len(claims))
		}
		one, _ := claims[0].(map[string]any)
		return fmt.Sprint(one["token"])
	}
	do(http.MethodPost, "/api/v1/jobs", `{"topic":"a"}`)
	instance := do(http.MethodPost, "/api/v1/instances", `{"name":"busy-bee","jobs":["/topics/*"],"capacity":2}`)["id"]
	quiet := s.stamp()

	token := claim(instance)
	do(http.MethodPost, "/api/v1/queues/main/suspend", "")
	do(http.MethodPut, "/api/v1/canvases/demo/handlers/WORKER/%3Cb%3Egreet/rules/pause", "")
	do(http.MethodPost, "/api/v1/schedules/nightly/suspend", "")
	appended("said")
	appended("said")
	appended("heard")
	busy := s.stamp()

	do(http.MethodPost, "/api/v1/leases/"+token+"/complete", `{"result":"cancel","message":"no more"}`)
	do(http.MethodPost, "/api/v1/queues/main/resume", "")
	do(http.MethodDelete, "/api/v1/canvases/demo/handlers/WORKER/%3Cb%3Egreet/rules/pause", "")
	do(http.MethodPost, "/api/v1/schedules/nightly/resume", "")
	appended("said")
	after := s.stamp()
	appended("said")
	do(http.MethodPost, "/api/v1/jobs", `{"topic":"a"}`)

	waiting, running, cancelled := row("/topics/a", "run", 1, 0, 0, 0, 0), row("/topics/a", "run", 0, 1, 0, 0, 0), row("/topics/a", "run", 0, 0, 0, 0, 1)
	b := s.signedIn("viewer-secret")
	for _, c := range []struct {
		page, at       string
		shows, without []string
	}{
		{"/queues", quiet, []string{waiting, "No queue was suspended."}, nil},
		{"/queues", busy, []string{running, "main was suspended."}, nil},
		{"/queues", after, []string{cancelled, "No queue was suspended."}, nil},
		{"/handlers", quiet, []string{"/canvases/demo/WORKER/&lt;b&gt;greet</td><td>run<"}, []string{"/topics/a"}},
		{"/handlers", busy, []string{`&lt;b&gt;greet</td><td><strong class="bad">pause</strong>`}, nil},
		{"/handlers", after, []string{"&lt;b&gt;greet</td><td>run<"}, nil},
		{"/sources", busy, []string{"None had had a task"}, []string{"/topics/a"}},
		{"/schedules", quiet, []string{">nightly</a></td>"}, []string{"suspended"}},
		{"/schedules", busy, []string{`>nightly</a> <strong class="bad">suspended</strong>`}, nil},
		{"/schedules", after, []string{">nightly</a></td>"}, nil},
		{"/schedules/nightly", quiet, []string{"was declared", "Nothing that the journal still has."}, nil},
		{"/schedules/nightly", busy, []string{"<td>ScheduleSuspended</td>"}, []string{"<td>ScheduleResumed</td>"}},
		{"/schedules/nightly", after, []string{"<td>ScheduleSuspended</td>", "<td>ScheduleResumed</td>"}, nil},
		{"/schedules/none", after, []string{"was not declared"}, nil},
		{"/streams", quiet, []string{"No stream had got an event."}, nil},
		{"/streams", busy, []string{`>meters</a></td><td><code>` + somebody + `</code></td><td class="n">3</td><td class="n">2</td>`}, nil},
		{"/streams", after, []string{`</code></td><td class="n">4</td><td class="n">2</td>`}, nil},
		{"/streams/meters", quiet, []string{"It had got none."}, nil},
		{"/streams/meters", busy, []string{`<td>said</td><td class="n">2</td></tr>`, `<td>heard</td><td class="n">1</td></tr>`}, nil},
		{"/streams/meters", after, []string{`<td>said</td><td class="n">3</td></tr>`}, []string{`<td class="n">4</td>`}},
		{"/instances", quiet, []string{"None ran a task."}, nil},
		{"/instances", busy, []string{`</code></td><td class="n">1</td><td>/topics/a </td>`}, nil},
		{"/instances", after, []string{"None ran a task."}, nil},
		{"/failures", busy, []string{"Nothing had failed for good."}, nil},
		{"/failures", after, []string{`<td class="n">1</td><td>/topics/a</td><td>cancel</td>`}, nil},
	} {
		got := b.get(c.page + "?all=1&at=" + c.at) // however long it takes
		if got.StatusCode != http.StatusOK || strings.Contains(got.body, `href="/act`) {
			t.Errorf("%s as of %s: %d, or it offers acts:\n%s", c.page, c.at, got.StatusCode, got.body)
		}
		for _, text := range c.shows {
			if !strings.Contains(got.body, text) {
				t.Errorf("%s as of %s is without %s:\n%s", c.page, c.at, text, got.body)
			}
		}
		for _, text := range c.without {
			if strings.Contains(got.body, text) {
				t.Errorf("%s as of %s has %s:\n%s", c.page, c.at, text, got.body)
			}
		}
	}
}

// row is how a page shows what had become of a job's tasks, as far as its times.
func row(job, state string, counts ...int) string {
	text := "<tr><td>" + job + "</td><td>" + state + "</td>"
	for _, n := range counts {
		text += fmt.Sprintf(`<td class="n">%d</td>`, n)
	}
	return text
}
