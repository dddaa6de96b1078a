package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
)

const jobsPath = "/api/v1/jobs"

// topical is an API for jobs of topics that this server runs, with these definitions to begin with.
func topical(t *testing.T, yaml string) *works {
	t.Helper()
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	catalog := definition.OpenCatalog(definition.CatalogOptions{Store: s, Journal: j})
	set, err := definition.Read("test", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.Apply(t.Context(), set, definition.FromFile); err != nil {
		t.Fatal(err)
	}
	w := &works{Queue: queue.Open(queue.Options{Store: s, Journal: j, Definitions: catalog})}
	w.api = api.New(api.Options{Tokens: tokens(), CanStream: true}, api.Tasks(w.Queue, catalog), api.Jobs(w.Queue, catalog), api.Queues(w.Queue, catalog))
	return w
}

// run declares topics that this server runs.
func run(topics ...string) string {
	var b strings.Builder
	b.WriteString("jobs:\n")
	for _, topic := range topics {
		fmt.Fprintf(&b, "  - {path: /topics/%s, target: {go: f}}\n", topic)
	}
	return b.String()
}

type job map[string]any

func (w *works) add(t *testing.T, status int, body string, headers ...string) job {
	t.Helper()
	return into[job](t, w.as(t, access.Producer, "POST", jobsPath, body, headers...), status)
}

func (w *works) job(t *testing.T, id any) job {
	t.Helper()
	return into[job](t, w.as(t, access.Producer, "GET", fmt.Sprint(jobsPath, "/", id), ""), 200)
}

func TestAWholeNumberMayBeWrittenWithAFraction(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	got := w.add(t, 201, `{"topic":"a","priority":-7.0,"retries":2e0}`)
	if got["priority"] != -7.0 || got["retries"] != 2.0 {
		t.Errorf("got %v, want priority -7 and retries 2", got)
	}
	for _, value := range []string{"1.5", "1e300", "1e999", `"5"`, "true", "10000000000000000000"} {
		if w.add(t, 400, `{"topic":"a","priority":`+value+`}`)["detail"] == nil {
			t.Errorf("priority %s: no detail", value)
		}
	}
}

func TestAddJob(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	got := w.add(t, 201, `{"topic":"a","properties":{"x":[1, 2]},"priority":-7,"run_at":"2999-01-01T00:00:00Z","retries":2,"retry_delay":"5m",
		"unique":{"key":"u","window":60},"fairness_key":"ada","concurrency":{"key":"k","limit":3},"prefer_instance":"i"}`)
	want := job{
		"id": got["id"], "topic": "a", "job": "/topics/a", "state": "QUEUED", "queue": "main", "priority": -7.0, "created_at": got["created_at"],
		"run_at": "2999-01-01T00:00:00.000000Z", "attempt": 0.0, "retries": 2.0, "unique": "u", "fairness_key": "ada",
		"concurrency": map[string]any{"key": "k", "limit": 3.0}, "prefer_instance": "i", "properties": map[string]any{"x": []any{1.0, 2.0}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, w.job(t, got["id"])); diff != "" {
		t.Errorf("GET (-posted +got):\n%s", diff)
	}
	if again := w.add(t, 200, `{"topic":"a","unique":"u"}`); again["id"] != got["id"] {
		t.Errorf("the unique key is held by %v, answered %v", got["id"], again["id"])
	}
	if other := w.add(t, 201, `{"topic":"b/c","unique":"u"}`); other["id"] == got["id"] || other["retries"] != 10.0 {
		t.Errorf("another topic's = %v", other)
	}
}

// The same request under the same key gets the first response again, whatever has become of the job and of the definitions.
func TestAddJobOnce(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"plain":   `{"topic":"a"}`,
		"delayed": `{"topic":"a","run_at":"2000-01-01T01:00:00Z"}`,
		"unique":  `{"topic":"a","unique":"u","properties":{"n":1}}`,
		"large":   `{"topic":"a","properties":{"text":"` + strings.Repeat("x", 10_000) + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // it is midnight, 2000-01-01
				w := topical(t, run("a"))
				again := func() job { return w.add(t, 201, body, "Idempotency-Key", "k") }
				first := again()
				answers := map[string]job{"waits": again()}
				time.Sleep(2 * time.Hour) // of virtual time
				leases := w.claim(t)
				answers["runs"] = again()
				w.finish(t, leases[0], queue.OK)
				answers["has left"] = again()
				w.add(t, 201, `{"topic":"a","unique":"u"}`)
				answers["has left, and another one holds its unique key"] = again()
				for when, got := range answers {
					if diff := cmp.Diff(first, got); diff != "" {
						t.Errorf("again when the job %s (-first +again):\n%s", when, diff)
					}
				}
			})
		})
	}
}

// The first response tells of a job that was there already: so does each later one with the key, whatever has become of that job.
func TestAddJobOnceThatIsThere(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"small": "x", "large": strings.Repeat("x", 10_000)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := topical(t, run("a"))
			there := w.add(t, 201, `{"topic":"a","unique":"u","priority":7,"properties":{"text":"`+text+`"}}`)
			one, all := `{"topic":"a","unique":"u"}`, `[{"topic":"a","unique":"v"},{"topic":"a","unique":"u"},{"topic":"a","unique":"v","priority":3}]`
			again := func() string {
				t.Helper()
				single := w.as(t, access.Producer, "POST", jobsPath, one, "Idempotency-Key", "k")
				batch := w.addAll(t, all, "Idempotency-Key", "k")
				if diff := cmp.Diff(there, into[job](t, single, 200)); diff != "" {
					t.Errorf("(-job that was there +response):\n%s", diff)
				}
				return single.body + batch.body
			}
			first := again()
			path := fmt.Sprint(jobsPath, "/", there["id"])
			for _, act := range []func(){
				func() { w.claim(t) },
				func() { w.as(t, access.Operator, "DELETE", path, "") },
				func() { w.as(t, access.Operator, "DELETE", path, "") },
			} {
				act()
				if got := again(); got != first {
					t.Errorf("again: %.600s\nwant %.600s", got, first)
				}
			}
			wantProblem(t, w.as(t, access.Viewer, "GET", path, ""), 404, api.CodeNotFound)
		})
	}
}

func TestAddJobRefuses(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	for body, at := range map[string]string{
		`{}`:                                                "body.topic",
		`{"topic":"a//b"}`:                                  "body.topic",
		`{"topic":"ä"}`:                                     "body.topic",
		`{"topic":7}`:                                       "body.topic",
		`{"topic":"a","properties":[]}`:                     "body.properties",
		`{"topic":"a","properties":null}`:                   "body.properties",
		`{"topic":"a","priority":1.5}`:                      "body.priority",
		`{"topic":"a","retries":-2}`:                        "body.retries",
		`{"topic":"a","retry_delay":"x"}`:                   "body.retry_delay",
		`{"topic":"a","retry_delay":-1}`:                    "body.retry_delay",
		`{"topic":"a","run_at":"tomorrow"}`:                 "body.run_at",
		`{"topic":"a","run_at":"9999-01-01T00:00:00Z"}`:     "body.run_at",
		`{"topic":"a","unique":""}`:                         "body.unique",
		`{"topic":"a","unique":{"window":1}}`:               "body.unique.key",
		`{"topic":"a","concurrency":{"key":"k","limit":0}}`: "body.concurrency.limit",
		`{"topic":"a","concurrency":{"limit":1}}`:           "body.concurrency.key",
		`{"topic":"a","more":1}`:                            "body.more",
	} {
		wantProblem(t, w.as(t, access.Producer, "POST", jobsPath, body), 400, api.CodeInvalid, at)
	}
	wantProblem(t, w.as(t, access.Producer, "POST", jobsPath, `{"topic":"a","properties":{"x":"`+strings.Repeat("x", 256<<10)+`"}}`), 413, api.CodeTooLarge)
}

func TestJobEnds(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a")+"queues:\n  - {name: q, topics: [a], keep_jobs: true, retries: 1, retry_delay: 0}\n")
	for outcome, want := range map[queue.Outcome]string{queue.OK: "SUCCEEDED", queue.Cancel: "ERROR", queue.Thrown: "ERROR"} {
		id := w.add(t, 201, `{"topic":"a"}`)["id"]
		w.finish(t, w.claim(t)[0], outcome)
		if got := w.job(t, id); got["state"] != want || got["instance"] != "hand" || got["finished_at"] == nil {
			t.Errorf("after %s: %v", outcome, got)
		}
	}
	id := w.add(t, 201, `{"topic":"a","retry_delay":0}`)["id"]
	for attempt := range 2 {
		w.finish(t, w.claim(t)[0], queue.Failed)
		if got := w.job(t, id); got["attempt"] != float64(attempt+1) {
			t.Errorf("attempt %d: %v", attempt+1, got)
		}
	}
	if got := w.job(t, id)["state"]; got != "GIVEN_UP" {
		t.Errorf("state = %v, want GIVEN_UP", got)
	}
}

func TestRemoveAndStopJob(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	act := func(method, id, more string) reply { return w.as(t, access.Operator, method, jobsPath+"/"+id+more, "") }
	status := func(r reply, want int) {
		t.Helper()
		if r.StatusCode != want {
			t.Errorf("status = %d %s, want %d", r.StatusCode, r.body, want)
		}
	}
	running := w.add(t, 201, `{"topic":"a"}`)["id"].(string)
	lease := w.claim(t)[0]
	status(act("POST", running, "/stop"), 204)
	if alive, err := w.Heartbeat(t.Context(), lease.Token, queue.Beat{Progress: &queue.Progress{Step: 1, Steps: 2}}); err != nil || !alive.Stop {
		t.Errorf("Heartbeat = %v, %v, want a stop", alive, err)
	}
	if got := w.job(t, running); got["state"] != "ACTIVE" || fmt.Sprint(got["progress"]) != "map[step:1 steps:2]" {
		t.Errorf("running = %v", got)
	}
	status(act("DELETE", running, ""), 204)
	if got := w.job(t, running)["state"]; got != "DROPPED" {
		t.Errorf("state = %v, want DROPPED", got)
	}
	status(act("POST", running, "/stop"), 409)
	status(act("DELETE", running, ""), 204) // out of the history
	status(act("DELETE", running, ""), 404)
	status(act("GET", running, ""), 404)
	queued := w.add(t, 201, `{"topic":"a"}`)["id"].(string)
	status(act("POST", queued, "/stop"), 204)
	if got := w.job(t, queued)["state"]; got != "STOPPED" {
		t.Errorf("state = %v, want STOPPED", got)
	}
	status(act("DELETE", "nothing", ""), 404)
}

// ids reads all pages of a list.
func (w *works) ids(t *testing.T, method, path, body string) []string {
	t.Helper()
	ids := []string{}
	for path != "" {
		r := w.as(t, access.Viewer, method, path, body)
		for _, j := range into[map[string][]job](t, r, 200)["jobs"] {
			ids = append(ids, j["id"].(string))
		}
		path = linked(r)
	}
	return ids
}

func TestListJobs(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a", "b")+"queues:\n  - {name: q, topics: ['*'], keep_jobs: true, retries: 0}\n")
	ended := map[string]string{}
	for _, end := range []struct{ outcome, state string }{{"ok", "SUCCEEDED"}, {"failed", "GIVEN_UP"}, {"cancel", "ERROR"}, {"", "DROPPED"}, {"", "STOPPED"}} {
		id := w.add(t, 201, `{"topic":"a"}`)["id"].(string)
		switch end.state {
		case "DROPPED":
			w.as(t, access.Operator, "DELETE", jobsPath+"/"+id, "")
		case "STOPPED":
			w.as(t, access.Operator, "POST", jobsPath+"/"+id+"/stop", "")
		default:
			w.finish(t, w.claim(t)[0], queue.Outcome(end.outcome))
		}
		ended[end.state] = id
	}
	active := w.add(t, 201, `{"topic":"b"}`)["id"].(string)
	w.claim(t)
	queued := []string{
		w.add(t, 201, `{"topic":"a"}`)["id"].(string), w.add(t, 201, `{"topic":"b","properties":{"x":"`+strings.Repeat("x", 2000)+`"}}`)["id"].(string),
	}
	history := []string{ended["STOPPED"], ended["DROPPED"], ended["ERROR"], ended["GIVEN_UP"], ended["SUCCEEDED"]}
	for query, want := range map[string][]string{
		"": append([]string{active}, queued...), "type=ALL&limit=1": append([]string{active}, queued...), "type=ACTIVE": {active},
		"type=QUEUED": queued, "type=HISTORY&limit=2": history, "type=CANCELLED": history[:4], "type=SUCCEEDED": history[4:],
		"type=STOPPED": history[:1], "type=DROPPED": history[1:2], "type=ERROR": history[2:3], "type=GIVEN_UP": history[3:4],
		"topic=b": {active, queued[1]}, "type=HISTORY&topic=b": {}, "topic=none": {},
	} {
		if diff := cmp.Diff(want, w.ids(t, "GET", jobsPath+"?"+query, "")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	for _, query := range []string{"type=all", "topic=a//b", "limit=0", "cursor=x", "type=HISTORY&cursor=" + active} {
		wantProblem(t, w.as(t, access.Viewer, "GET", jobsPath+"?"+query, ""), 400, api.CodeInvalid)
	}
}

func TestSearchJobs(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a", "b"))
	var ids []string
	for _, body := range []string{
		`{"topic":"a","priority":1,"properties":{"n":9007199254740993,"name":"ada","topic":"x"}}`,
		`{"topic":"a","priority":2,"properties":{"n":9007199254740992,"name":"bob","ok":true}}`,
		`{"topic":"b","priority":3,"properties":{"n":10,"name":"cleo","big":"` + strings.Repeat("x", 2000) + `"}}`,
		`{"topic":"b","run_at":"2999-01-01T00:00:00+01:00"}`,
		`{"topic":"a","properties":{"in":{"deep":1},"\u006eame":"e\u0076e","q\"t":2,"é":[1,{"a":null}]}}`,
	} {
		ids = append(ids, w.add(t, 201, body)["id"].(string))
	}
	of := func(which string) []string {
		found := []string{}
		for i, id := range ids {
			if strings.Contains(which, fmt.Sprint(i)) {
				found = append(found, id)
			}
		}
		return found
	}
	for body, want := range map[string]string{
		`{}`: "01234", `{"templates":[]}`: "01234", `{"templates":[{}]}`: "01234", `{"topic":"b"}`: "23", `{"type":"ACTIVE"}`: "",
		`{"templates":[{"name":"ada"}]}`:                                 "0",
		`{"templates":[{"name":"eve"}]}`:                                 "4",
		`{"templates":[{"q\"t":2}]}`:                                     "4",
		`{"templates":[{"é":[1,{"a":null}]}]}`:                           "4",
		`{"templates":[{"deep":1}]}`:                                     "",
		`{"templates":[{"name":"ada","properties.topic":"y"}]}`:          "",
		`{"templates":[{"=name":"ada"},{"name":"bob"}]}`:                 "01",
		`{"templates":[{">=name":"b","<name":"c"}]}`:                     "1",
		`{"templates":[{"~name":"O"}]}`:                                  "12",
		`{"templates":[{"~n":"5"}]}`:                                     "",
		`{"templates":[{">n":9007199254740992}]}`:                        "0",
		`{"templates":[{"<=n":9007199254740992}]}`:                       "12",
		`{"templates":[{"n":1e1}]}`:                                      "2",
		`{"templates":[{"ok":true}]}`:                                    "1",
		`{"templates":[{"ok":"true"}]}`:                                  "",
		`{"templates":[{">name":1}]}`:                                    "",
		`{"templates":[{"topic":"b","priority":3}]}`:                     "2",
		`{"templates":[{"properties.topic":"x"}]}`:                       "0",
		`{"templates":[{"run_at":"2998-12-31T23:00:00Z"}]}`:              "3",
		`{"templates":[{"<run_at":"2998-12-31T23:00:01Z"}]}`:             "3",
		`{"templates":[{"priority":3},{">=priority":1,"<=priority":1}]}`: "02",
	} {
		if diff := cmp.Diff(of(want), w.ids(t, "POST", jobsPath+"/search?limit=1", body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
	for body, at := range map[string]string{
		`{"type":"all"}`: "body.type", `{"type":""}`: "body.type", `{"topic":"/"}`: "body.topic", `{"templates":{}}`: "body.templates",
		`{"templates":[1]}`: "body.templates[0]", `{"templates":[{"<ok":true}]}`: "body.templates[0].<ok", `{"templates":[{"=":1}]}`: "body.templates[0].=",
		`{"templates":[{"~name":5}]}`: "body.templates[0].~name", `{"templates":[{"~name":""}]}`: "body.templates[0].~name",
	} {
		wantProblem(t, w.as(t, access.Viewer, "POST", jobsPath+"/search", body), 400, api.CodeInvalid, at)
	}
}

func TestJobRoles(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	id := w.add(t, 201, `{"topic":"a"}`)["id"].(string)
	for call, may := range map[string]string{ // viewer, producer, consumer, worker, operator, admin
		"POST " + jobsPath:                      ".p..oa",
		"POST " + jobsPath + ":batch":           ".p..oa",
		"GET " + jobsPath:                       "v...oa",
		"POST " + jobsPath + "/search":          "v...oa",
		"GET " + jobsPath + "/" + id:            "vp..oa",
		"POST " + jobsPath + "/" + id + "/stop": "....oa",
		"DELETE " + jobsPath + "/" + id:         "....oa",
	} {
		method, path, _ := strings.Cut(call, " ")
		for i, role := range []access.Role{access.Viewer, access.Producer, access.Consumer, access.Worker, access.Operator, access.Admin} {
			body := ""
			if path == jobsPath+"/search" {
				body = "{}"
			}
			status := w.as(t, role, method, path, body).StatusCode
			if allowed := may[i] != '.'; allowed == slices.Contains([]int{http.StatusForbidden, http.StatusUnauthorized}, status) {
				t.Errorf("%s as %s = %d", call, role, status)
			}
		}
	}
}

// spelled draws a way to write a text, or a number, in JSON: with escapes or without.
func spelled(rt *rapid.T, text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		if r == '"' || r == '\\' || rapid.IntRange(0, 5).Draw(rt, "escaped") == 0 {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// TestASearchMissesNothing compares a search with what each job's properties are when all of them are decoded.
func TestASearchMissesNothing(t *testing.T) {
	t.Parallel()
	names := rapid.SampledFrom([]string{"a", "ab", "é", `q"`, `\`, "<", "topic", "\uFFFD"})
	texts := map[string]string{"1": "1", "10": "1e1", "true": "true", "null": "null", "[1]": "[ 1]"}
	value := func(rt *rapid.T) (text string, means any) {
		if rapid.Bool().Draw(rt, "text") {
			name := names.Draw(rt, "value")
			return spelled(rt, name), name
		}
		key := rapid.SampledFrom([]string{"1", "10", "true", "null", "[1]"}).Draw(rt, "value")
		text = rapid.SampledFrom([]string{key, texts[key]}).Draw(rt, "spelling")
		_ = json.Unmarshal([]byte(text), &means)
		return text, means
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := topical(t, run("a"))
		var ids []string
		var properties []map[string]any
		for range rapid.IntRange(1, 4).Draw(rt, "jobs") {
			has, members := map[string]any{}, []string{}
			for _, name := range rapid.SliceOfNDistinct(names, 0, 3, rapid.ID).Draw(rt, "names") {
				text, means := value(rt)
				has[name], members = means, append(members, spelled(rt, name)+" : "+text)
			}
			ids = append(ids, w.add(t, 201, `{"topic":"a","properties":{`+strings.Join(members, ",")+`}}`)["id"].(string))
			properties = append(properties, has)
		}
		var sought []string
		found := make([]bool, len(ids))
		for range rapid.IntRange(1, 2).Draw(rt, "templates") {
			holds := slices.Repeat([]bool{true}, len(ids))
			var members []string
			for _, name := range rapid.SliceOfNDistinct(names, 1, 2, rapid.ID).Draw(rt, "conditions") {
				text, means := value(rt)
				members = append(members, spelled(rt, "properties."+name)+":"+text)
				for i, has := range properties {
					is, there := has[name]
					holds[i] = holds[i] && there && cmp.Equal(is, means)
				}
			}
			sought = append(sought, "{"+strings.Join(members, ",")+"}")
			for i := range found {
				found[i] = found[i] || holds[i]
			}
		}
		want := []string{}
		for i, id := range ids {
			if found[i] {
				want = append(want, id)
			}
		}
		body := `{"templates":[` + strings.Join(sought, ",") + `]}`
		if diff := cmp.Diff(want, w.ids(t, "POST", jobsPath+"/search", body)); diff != "" {
			rt.Fatalf("%s in %v (-want +got):\n%s", body, properties, diff)
		}
	})
}
