package services_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/tests/grants"
)

// TestWhatFunctionsDoSeldom: declarations that are too long for one item of the store, long causes, unique keys in a batch, rules and limits
// that stand in the way, round-robin queues that others fill, and the end of what has a log. Each takes permissions that nothing else does.
func TestWhatFunctionsDoSeldom(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.long(t)
	d.fair(t)
	d.held(t)
	d.causes(t)
	d.ends(t)
	d.streams(t)
	d.walk(t)
	for _, name := range functions {
		d.requests[name].Check(t)
	}
}

// long declares more than fits one item, and has every function read it, and then less.
func (d *deployment) long(t *testing.T) {
	t.Helper()
	type job struct {
		Path   string         `json:"path"`
		Target map[string]any `json:"target"`
	}
	var set struct {
		Jobs      []job            `json:"jobs"`
		Queues    []map[string]any `json:"queues"`
		Handlers  []map[string]any `json:"handlers"`
		Schedules []map[string]any `json:"schedules"`
	}
	for n := range 4000 {
		set.Jobs = append(set.Jobs, job{fmt.Sprintf("/topics/%0100d", n), map[string]any{"instances": true}})
	}
	set.Queues = []map[string]any{{"name": "fair", "topics": []string{"fair/*"}, "type": "round-robin", "retries": 1, "retry_delay": "1s"},
		{"name": "logged", "topics": []string{"logged/*"}, "type": "round-robin"}}
	set.Schedules = []map[string]any{{"name": "often", "cron": "0/2 * * * * ?", "job": "/topics/fair/often"}}
	for _, name := range []string{"first", "second"} {
		set.Handlers = append(set.Handlers, map[string]any{"canvas": "c", "space": "S", "name": name, "target": map[string]any{"instances": true}})
	}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	d.does(t, "dashboard", "PUT", "/api/v1/definitions", string(text))
	known := func(function, method, path, body string) {
		t.Helper()
		until(t, function+" knows what was declared", func() bool {
			status, answer := ask(t, method, d.urls[function]+path, body, "Authorization: Bearer "+secret, "Content-Type: application/json")
			return status < 300 && strings.Contains(answer, "fair")
		})
	}
	known("define", "GET", "/api/v1/definitions", "")
	d.does(t, "define", "PUT", "/api/v1/queues/other", `{"topics":["other/*"]}`)
	known("tasks", "GET", "/api/v1/queues", "")
	until(t, "dashboard knows what define has declared", func() bool {
		status, _ := ask(t, "GET", d.urls["dashboard"]+"/api/v1/queues/other", "", "Authorization: Bearer "+secret)
		return status == http.StatusOK
	})
	var instance struct{ ID string }
	d.ask(t, http.StatusCreated, "lease", "POST", "/api/v1/instances", `{"name":"reader","jobs":["/none/*"],"capacity":1}`, &instance)
	for function, looks := range map[string]func(){
		"worker": func() { hand(t.Context(), t, d.urls["worker"], `{"queue":"default"}`) },
		"cron":   func() { d.tick(t, "cron") },
		"sweep":  func() { d.tick(t, "sweep") },
		"lease":  func() { d.does(t, "lease", "POST", "/api/v1/instances/"+instance.ID+"/claims", `{"max":1}`) },
	} {
		until(t, function+" has read what was declared", func() bool {
			looks()
			return d.requests[function].Has(grants.Permission{Action: "dynamodb:BatchGetItem", Resource: "DefinitionsTable"})
		})
	}
	known("enqueue-task", "POST", "/api/v1/jobs", `{"topic":"fair/a","fairness_key":"a"}`)
}

// fair has each function add to a round-robin queue.
func (d *deployment) fair(t *testing.T) {
	t.Helper()
	keyed := `{"topic":"fair/a","fairness_key":"b","unique":"%s"}`
	two := "[" + fmt.Sprintf(keyed, "one") + "," + fmt.Sprintf(keyed, "two") + "]"
	for _, function := range []string{"enqueue-task", "dashboard"} {
		d.does(t, function, "POST", "/api/v1/jobs:batch", two)
	}
	until(t, "a tick has come to the round-robin queue", func() bool {
		d.tick(t, "cron")
		d.tick(t, "sweep")
		var got struct{ Jobs []json.RawMessage }
		d.ask(t, http.StatusOK, "tasks", "GET", "/api/v1/jobs?topic=fair%2Foften", "", &got)
		return len(got.Jobs) > 0
	})
	d.does(t, "define", "POST", "/api/v1/schedules/often/trigger", "")
}

// held has claims meet rules and limits.
func (d *deployment) held(t *testing.T) {
	t.Helper()
	const handlers = "/api/v1/canvases/c/handlers/S/"
	d.make(t, http.StatusAccepted, handlers+"first/events", `{"value":1}`)
	d.ask(t, http.StatusNoContent, "tasks", "PUT", handlers+"first/rules/pause", "", nil)
	var instance struct{ ID string }
	d.ask(t, http.StatusCreated, "lease", "POST", "/api/v1/instances", `{"name":"w","jobs":["/canvases/*"],"capacity":4}`, &instance)
	d.ask(t, http.StatusOK, "lease", "POST", "/api/v1/instances/"+instance.ID+"/claims", `{"max":4}`, nil)
}

// causes asks for the causes of two events that are far before them, and not in one write.
func (d *deployment) causes(t *testing.T) {
	t.Helper()
	var instance struct{ ID string }
	d.ask(t, http.StatusCreated, "lease", "POST", "/api/v1/instances", `{"name":"u","jobs":["/topics/caused"],"capacity":2}`, &instance)
	var jobs []string
	for range 2 {
		jobs = append(jobs, d.make(t, http.StatusCreated, "/api/v1/jobs", `{"topic":"caused","retries":0}`))
	}
	const api = "/jobscheduler/master/api/"
	for range 50 {
		d.does(t, "emit", "POST", api+"event", `[{"TYPE":"Between"}]`)
	}
	d.runs(t, instance.ID, jobs...)
	for function, path := range map[string]string{
		"read-after": api + "event?return=TaskStarted&limit=-2&with=cause",
		"dashboard":  api + "event?return=TaskStarted&limit=-2&with=cause",
		"snapshot":   api + "task/topics/caused?return=TaskStarted&limit=-2&with=cause",
	} {
		fresh := d.run(t, function, mustEndWell) // it has read nothing that it could remember
		if status, answer := ask(t, "GET", fresh+path, "", "Authorization: Bearer "+secret); status != http.StatusOK || strings.Count(answer, `"cause":`) != 2 {
			t.Errorf("%s: %d %s, want two causes", function, status, answer)
		}
	}
}

// streams asks for events of two names at once, and for one of many.
func (d *deployment) streams(t *testing.T) {
	t.Helper()
	const (
		stream   = "/api/v1/streams/s"
		happened = `{"event":{"name":%q},"trigger":{"type":"manual","name":"t"},"payload":{},` +
			`"system":{"id":"2480b859-e08a-4414-9c7d-003bc1a4c238","name":"n","time":"2021-03-10T22:13:32Z","timezone":"UTC"}}`
	)
	both := "[" + fmt.Sprintf(happened, "seen") + "," + fmt.Sprintf(happened, "heard") + "]"
	asks := func(function, method, path, body string) string {
		t.Helper()
		status, answer := ask(t, method, d.urls[function]+path, body, "Authorization: Bearer "+secret, "Content-Type: application/json",
			"X-Producer-ID: 2480b859-e08a-4414-9c7d-003bc1a4c238", "X-Consumer-ID: f3a7f4f1-6a58-4c43-9d1a-7b63ad1a2b10")
		if status/100 != 2 {
			t.Fatalf("%s %s: %d %s", method, path, status, answer)
		}
		return answer
	}
	asks("emit", "POST", stream+"/events", fmt.Sprintf(happened, "felt"))
	var appended []struct{ ID string }
	if answer := asks("emit", "POST", stream+"/events:batch", both); json.Unmarshal([]byte(answer), &appended) != nil || len(appended) != 2 {
		t.Fatalf("two events: %s", answer)
	}
	for _, e := range appended {
		asks("acknowledge", "POST", stream+"/events/"+e.ID, `{"action":"ACK"}`)
	}
	asks("read-after", "GET", "/api/v1/consumers?stream=s", "")
}

// walk leads orders along a chain whose steps are an instance's and a worker's, has them act on, and removes what is declared.
func (d *deployment) walk(t *testing.T) {
	t.Helper()
	d.does(t, "dashboard", "PUT", "/api/v1/definitions", `{"jobs":[{"path":"/by/instance","target":{"instances":true}},{"path":"/by/worker","target":{"http":{"url":"http://192.0.2.1/"}}}],
		"queues":[{"name":"fair","topics":["fair/*"],"type":"round-robin"}],
		"job_chains":[{"path":"/walk","nodes":[{"id":"wait","wait":{"event":"Come"}},{"id":"A","job":"/by/instance"},{"id":"B","job":"/by/worker"},{"id":"end"}]}]}`)
	until(t, "tasks knows the chain", func() bool {
		status, _ := ask(t, "POST", d.urls["tasks"]+"/api/v1/orders/%2Fwalk", `{"id":"1"}`, "Authorization: Bearer "+secret, "Content-Type: application/json")
		return status == http.StatusCreated
	})
	d.does(t, "dashboard", "POST", "/api/v1/orders/%2Fwalk", `{"id":"2"}`)
	d.does(t, "dashboard", "POST", "/api/v1/orders/%2Fwalk/2/suspend", "")
	d.does(t, "dashboard", "POST", "/api/v1/orders/%2Fwalk/2/resume", "")
	d.does(t, "emit", "POST", "/jobscheduler/master/api/event", `[{"TYPE":"Come","key":"/p"}]`)
	var instance struct{ ID string }
	d.ask(t, http.StatusCreated, "lease", "POST", "/api/v1/instances", `{"name":"walker","jobs":["/by/instance"],"capacity":1}`, &instance)
	until(t, "a step is there", func() bool {
		d.tick(t, "sweep")
		var claimed struct{ Claims []struct{ ID, Token string } }
		d.ask(t, http.StatusOK, "lease", "POST", "/api/v1/instances/"+instance.ID+"/claims", `{"max":1}`, &claimed)
		for _, c := range claimed.Claims {
			d.does(t, "lease", "POST", "/api/v1/leases/"+c.Token+"/complete", `{"result":"ok"}`)
		}
		return len(claimed.Claims) > 0
	})
	d.does(t, "tasks", "POST", "/api/v1/orders/%2Fwalk/1/suspend", "")
	d.does(t, "tasks", "DELETE", "/api/v1/orders/%2Fwalk/1", "")
	d.does(t, "define", "GET", "/api/v1/definitions", "")
	d.does(t, "define", "PUT", "/api/v1/definitions", "{}")
}

// ends has tasks with logs removed, by who asks, and by their queue.
func (d *deployment) ends(t *testing.T) {
	t.Helper()
	var job, instance struct{ ID string }
	d.ask(t, http.StatusCreated, "lease", "POST", "/api/v1/instances", `{"name":"v","jobs":["/topics/logged/*"],"capacity":40}`, &instance)
	for _, by := range []string{"tasks", "dashboard"} {
		d.ask(t, http.StatusCreated, "enqueue-task", "POST", "/api/v1/jobs", `{"topic":"logged/a","retries":0,"fairness_key":"l"}`, &job)
		d.runs(t, instance.ID, job.ID)
		d.does(t, "tasks", "POST", "/api/v1/jobs/"+job.ID+"/retry", "")
		d.does(t, by, "DELETE", "/api/v1/jobs/"+job.ID, "")
	}
}

// runs has an instance claim and fail what there is, with a log, until these jobs have run.
func (d *deployment) runs(t *testing.T, instance string, jobs ...string) {
	t.Helper()
	ran := map[string]bool{}
	until(t, fmt.Sprint("the jobs ", jobs, " have run"), func() bool {
		var claimed struct{ Claims []struct{ ID, Token string } }
		d.ask(t, http.StatusOK, "lease", "POST", "/api/v1/instances/"+instance+"/claims", `{"max":40,"wait":"20s"}`, &claimed)
		for _, c := range claimed.Claims {
			ran[c.ID] = true
			lease := "/api/v1/leases/" + c.Token
			d.does(t, "lease", "POST", lease+"/heartbeat", `{"logs":[{"message":"half done"}]}`)
			d.does(t, "lease", "POST", lease+"/complete", `{"result":"failed"}`)
		}
		return !slices.ContainsFunc(jobs, func(job string) bool { return !ran[job] })
	})
}

// does sends a request to a function, which must succeed.
func (d *deployment) does(t *testing.T, function, method, path, body string) {
	t.Helper()
	status, answer := ask(t, method, d.urls[function]+path, body, "Authorization: Bearer "+secret, "Content-Type: application/json")
	if status/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
}
