package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
)

// addAll adds jobs by one request of a producer.
func (w *works) addAll(t *testing.T, body string, headers ...string) reply {
	t.Helper()
	return w.as(t, access.Producer, "POST", jobsPath+":batch", body, headers...)
}

// What a batch says of its jobs, of new ones and of one that was there, is what GET says of each.
func TestJobBatchSaysWhatGetSays(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	full := `{"topic":"a","properties":{"x":[1, "\u00e4<>&\u2028\"\\"], "y" : {}},"priority":-7,"run_at":"2999-01-01T00:00:00.5Z","retries":-1,
		"unique":"<ü>","fairness_key":"a&\u2028\u0001b","concurrency":{"key":"\ud83d\ude00","limit":3},"prefer_instance":"i\"\\"}`
	for i, added := range into[[]job](t, w.addAll(t, "["+full+`,{"topic":"a/b"},`+full+"]"), 201) {
		want := w.job(t, added["id"])
		if i == 2 {
			want["existing"] = true
		}
		if diff := cmp.Diff(want, added); diff != "" {
			t.Errorf("job %d (-GET +batch):\n%s", i, diff)
		}
	}
}

// manyJobs returns a batch of n jobs of the topic a, numbered from 0.
func manyJobs(n int, more string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"topic":"a","properties":{"n":%d}%s}`, i, more)
	}
	return "[" + strings.Join(all, ",") + "]"
}

func TestJobBatch(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	for _, n := range []int{1, 24, 25, 100, 1000} {
		added := into[[]job](t, w.addAll(t, manyJobs(n, "")), 201)
		if len(added) != n {
			t.Fatalf("%d results, want %d", len(added), n)
		}
		ids := map[any]bool{}
		for i, a := range added {
			ids[a["id"]] = true
			if a["properties"].(map[string]any)["n"] != float64(i) || a["state"] != "QUEUED" || a["existing"] != nil {
				t.Fatalf("job %d of %d = %v", i, n, a)
			}
			if i > 0 && fmt.Sprint(a["created_at"]) <= fmt.Sprint(added[i-1]["created_at"]) {
				t.Fatalf("job %d of %d was created at %v, that before it at %v", i, n, a["created_at"], added[i-1]["created_at"])
			}
		}
		if len(ids) != n {
			t.Errorf("%d ids of %d jobs", len(ids), n)
		}
		if diff := w.job(t, added[n-1]["id"])["properties"]; fmt.Sprint(diff) != fmt.Sprint(added[n-1]["properties"]) {
			t.Errorf("GET the last of %d = %v", n, diff)
		}
	}
}

func TestJobBatchRefused(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	for body, location := range map[string]string{
		"": "body", "[": "body", "{}": "body", "[]": "body", "[1]": "body[0]", `[{"topic":"a"},{}]`: "body[1].topic",
		`[{"topic":"a"},{"topic":"a b"}]`: "body[1].topic", `[{"topic":"a"},{"topic":"a","x":1}]`: "body[1].x",
		`[{"topic":"a"},{"topic":"a","unique":{"key":""}}]`: "body[1].unique.key", `[{"topic":"a","topic":"a"}]`: "body[0].topic",
		`[{"topic":"a","concurrency":{"key":"k"}}]`: "body[0].concurrency.limit", manyJobs(1001, ""): "body",
	} {
		wantProblem(t, w.addAll(t, body), 400, api.CodeInvalid, location)
	}
	large := `{"topic":"a","properties":{"x":"` + strings.Repeat("x", 256<<10) + `"}}`
	wantProblem(t, w.addAll(t, `[{"topic":"a"},`+large+`]`), 413, api.CodeTooLarge, "body[1].properties")
	wantProblem(t, w.addAll(t, "["+large+","+large+","+large+","+large+"]"), 413, api.CodeTooLarge, "body")
	wantProblem(t, w.addAll(t, "[]", "Content-Type", "text/csv"), 415, api.CodeMediaType)
	if all := w.ids(t, "GET", jobsPath+"?limit=1", ""); len(all) != 0 {
		t.Errorf("%d jobs, want none: an invalid one refuses all", len(all))
	}
}

// A job that is there already, in the store or before it in the batch, is the result of the ones that have its key.
func TestJobBatchUnique(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	there := w.add(t, 201, `{"topic":"a","unique":"old"}`)["id"]
	var all []string
	for i := range 60 { // more than one write holds
		all = append(all, fmt.Sprintf(`{"topic":"a","unique":"%d"}`, i%50))
	}
	got := into[[]job](t, w.addAll(t, "["+strings.Join(all, ",")+`,{"topic":"a","unique":"old"}]`), 201)
	for i, a := range got[:60] {
		if existing := i >= 50; (a["existing"] == true) != existing || a["id"] != got[i%50]["id"] {
			t.Errorf("job %d = %v", i, a)
		}
	}
	if got[60]["id"] != there || got[60]["existing"] != true {
		t.Errorf("the one that was there = %v, want %v", got[60], there)
	}
}

func TestJobBatchOnce(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	first := w.addAll(t, manyJobs(100, ""), "Idempotency-Key", "k")
	added := into[[]job](t, first, 201)
	again := w.addAll(t, manyJobs(100, ""), "Idempotency-Key", "k")
	if again.body != first.body || again.StatusCode != 201 || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again = %d %.200s", again.StatusCode, again.body)
	}
	for _, n := range []int{1, 99, 101, 300} {
		wantProblem(t, w.addAll(t, manyJobs(n, ""), "Idempotency-Key", "k"), 422, api.CodeMismatch, "header.Idempotency-Key")
	}
	if all := w.ids(t, "GET", jobsPath+"?limit=1000", ""); len(all) != len(added) {
		t.Errorf("%d jobs, want %d: what is refused adds nothing", len(all), len(added))
	}
}

func TestSyncTaskBatch(t *testing.T) {
	t.Parallel()
	w := working(t)
	send := func(body string, headers ...string) reply {
		return w.as(t, access.Producer, "POST", "/api/v1/tasks:batch", body, headers...)
	}
	there := w.sync(t, "orders")
	body := `[{"source":"shop","collection":"c"},{"source":"shop","collection":"orders"},{"source":"shop","collection":"d","priority":7},{"source":"shop","collection":"c"}]`
	got := into[[]job](t, send(body, "Idempotency-Key", "k"), 201)
	if len(got) != 4 || got[1]["task_id"] != there || got[3]["task_id"] != got[0]["task_id"] {
		t.Fatalf("%v", got)
	}
	for i, members := range []int{1, 2, 1, 2} { // existing is there only if true
		if len(got[i]) != members || (members == 2) != (got[i]["existing"] == true) {
			t.Errorf("task %d = %v", i, got[i])
		}
	}
	if p := w.task(t, fmt.Sprint(got[2]["task_id"])).Priority; p != 7 {
		t.Errorf("priority %v, want 7", p)
	}
	if p := w.task(t, fmt.Sprint(got[0]["task_id"])).Priority; p != 300 {
		t.Errorf("priority %v, want the default", p)
	}
	if again := send(body, "Idempotency-Key", "k"); again.Header.Get("Idempotent-Replayed") != "true" || again.StatusCode != 201 {
		t.Errorf("again = %d %s", again.StatusCode, again.body)
	}
	wantProblem(t, send(`[{"source":"shop","collection":"c"}]`, "Idempotency-Key", "k"), 422, api.CodeMismatch)
	for body, location := range map[string]string{
		"[]": "body", `{"source":"shop","collection":"e"}`: "body", `[{"collection":"e"}]`: "body[0].source",
		`[{"source":"shop","collection":"e"},{"source":"nobody","collection":"e"}]`: "body[1].source",
		`[{"source":"shop","collection":"e"},{"source":"shop","collection":"x"}]`:   "body[1].collection",
		`[{"source":"shop","collection":"e","priority":0}]`:                         "body[0].priority",
		`[{"source":"shop","collection":""}]`:                                       "body[0].collection",
		`[{"source":"","collection":"e"}]`:                                          "body[0].source",
		`[{"source":1,"collection":"e"}]`:                                           "body[0].source",
	} {
		wantProblem(t, send(body), 400, api.CodeInvalid, location)
	}
	if n := len(w.claim(t)); n != 3 {
		t.Errorf("%d tasks, want 3: a refused batch leaves none", n)
	}
}

// A batch takes few calls of the store: as many jobs go in each write as it holds.
func TestJobBatchCost(t *testing.T) {
	t.Parallel()
	m := meter.New(memory.New(memory.Options{}))
	j := journal.Open(m, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	set, err := definition.Read("test", []byte(run("a")))
	if err != nil {
		t.Fatal(err)
	}
	d := declared{set}
	w := &works{Queue: queue.Open(queue.Options{Store: m, Journal: j, Definitions: d})}
	w.api = api.New(api.Options{Tokens: tokens()}, api.Jobs(w.Queue, d))
	w.add(t, 201, `{"topic":"a"}`) // what is read once in a while is behind us
	for _, headers := range [][]string{nil, {"Idempotency-Key", "k"}} {
		m.Reset()
		into[[]job](t, w.addAll(t, manyJobs(100, ""), headers...), 201)
		if u := m.Usage(); u.Write.Calls > 3 || u.Total().Calls > 6 {
			t.Errorf("100 jobs with %v took %d writes and %d calls of the store, want at most 3 and 6: %+v", headers, u.Write.Calls, u.Total().Calls, u)
		}
	}
}

// Results have the members that their schema names, and no others.
func TestOpenAPIOfJobBatch(t *testing.T) {
	t.Parallel()
	w := topical(t, run("a"))
	doc, _ := description(t, &w.bundle)
	w.add(t, 201, `{"topic":"a","unique":"u"}`)
	var got []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(w.addAll(t, `[{"topic":"a","unique":"u"}]`).body), &got); err != nil {
		t.Fatal(err)
	}
	described := doc.Components.Schemas["AddedJob"].(map[string]any)["properties"].(map[string]any)
	for name := range got[0] {
		if described[name] == nil {
			t.Errorf("%s is not described", name)
		}
	}
	if described["existing"] == nil || !slices.Contains(slices.Collect(maps.Keys(doc.Paths)), "/api/v1/jobs:batch") {
		t.Error("existing, or the path, is not described")
	}
}
