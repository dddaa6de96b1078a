package services_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/notifier/sqs"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/strict"
	"github.com/millrace/millrace/shared/task"
	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/process"
)

// target is an HTTP target of tasks. The first attempt of a job named flaky gets a 500, and that of one named slow gets nothing
// until the worker has gone. That of one named patient it accepts, and goes on with it by itself.
type target struct {
	url  string
	held chan struct{} // an attempt has come, and waits for a response
	took chan attempt  // those that were accepted

	mu       sync.Mutex
	received []attempt
}

type attempt struct {
	ID      string          `json:"id"`
	Job     string          `json:"job"`
	Number  int             `json:"attempt"`
	Payload json.RawMessage `json:"payload"`

	Callback string `json:"callback"`
}

func receiver(t *testing.T) *target {
	t.Helper()
	target := &target{held: make(chan struct{}, 1), took: make(chan attempt, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var a attempt
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil || r.Header.Get("Webhook-Signature") == "" {
			t.Errorf("the target was sent a request without a task (%v) or without a signature", err)
		}
		target.mu.Lock()
		target.received = append(target.received, a)
		target.mu.Unlock()
		switch {
		case strings.HasSuffix(a.Job, "/flaky") && a.Number == 1:
			w.WriteHeader(http.StatusInternalServerError)
		case strings.HasSuffix(a.Job, "/slow") && a.Number == 1:
			target.held <- struct{}{}
			<-r.Context().Done()
		case strings.HasSuffix(a.Job, "/patient"):
			w.WriteHeader(http.StatusAccepted)
			target.took <- a
		}
	}))
	t.Cleanup(server.Close)
	target.url = server.URL
	return target
}

// starts returns how often a job was started.
func (t *target) starts(job string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.received {
		if a.Job == job {
			n++
		}
	}
	return n
}

// declare puts definitions in force whose tasks go to the target.
func (d *deployment) declare(t *testing.T, target string) {
	t.Helper()
	d.apply(t, fmt.Sprintf(`
sources: {shop: {target: {http: {url: %[1]q}}, collections: [{name: orders}]}}
handlers:
  - {canvas: c, space: S, name: flaky, target: {http: {url: %[1]q}}, retry_delay: 1s}
  - {canvas: c, space: S, name: later, target: {http: {url: %[1]q}}}
  - {canvas: c, space: S, name: slow, target: {http: {url: %[1]q}}, retry_delay: 1s, lease: 2s}
  - {canvas: c, space: S, name: patient, target: {http: {url: %[1]q}}}
jobs:
  - {path: /topics/clock, target: {http: {url: %[1]q}}}
  - {path: /topics/elsewhere, target: {instances: true}}
job_chains:
  - {path: /parcels, nodes: [{id: wait, wait: {event: ParcelArrived}}, {id: ship, job: /topics/clock}, {id: end}]}
`, target))
}

// apply declares what a file says.
func (d *deployment) apply(t *testing.T, file string) {
	t.Helper()
	set := new(definition.Set)
	err := strict.Read("test", []byte(file), func(d *strict.Document, n *strict.Node, _ string) {
		definition.ReadSections(d, n, set, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	j := journal.Open(d.store, journal.Options{Folds: projection.Folds()})
	defer func() { _ = j.Close() }()
	catalog := definition.OpenCatalog(definition.CatalogOptions{Store: d.store, Journal: j})
	if _, err := catalog.Apply(t.Context(), set, definition.FromFile); err != nil {
		t.Fatal(err)
	}
}

// bridge carries messages from the queue to the worker, as a platform's event source does, until the test ends. A message
// that does not arrive is lost.
func (d *deployment) bridge(t *testing.T, worker func() (url string)) {
	t.Helper()
	cfg := containers.AWS(t)
	b, err := sqs.Open(t.Context(), sqs.Options{Queue: d.queue, AWS: &cfg})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var carrier sync.WaitGroup
	t.Cleanup(func() { cancel(); carrier.Wait(); _ = b.Close() })
	carrier.Go(func() {
		for {
			notices, err := b.Receive(ctx, 10)
			if err != nil {
				return
			}
			for _, notice := range notices {
				carrier.Go(func() { deliver(ctx, t, worker(), sqs.Format(notice)) })
			}
		}
	})
}

// deliver hands a message over. One that the worker could not process is delivered again, some times.
func deliver(ctx context.Context, t *testing.T, worker, notice string) {
	t.Helper()
	status := 0
	for range 5 {
		if status = hand(ctx, t, worker, notice); status < http.StatusInternalServerError {
			break
		}
	}
	if status != 0 && status != http.StatusNoContent {
		t.Errorf("worker: answer %d to %s, want 204", status, notice)
	}
}

// hand returns the worker's status; 0 if there is no worker.
func hand(ctx context.Context, t *testing.T, worker, notice string) (status int) {
	t.Helper()
	body := `{"specversion":"1.0","id":"1","source":"/notices","type":"notice","data":` + notice + `}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, worker, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Content-Type", "application/cloudevents+json")
	answer, err := process.Client.Do(r)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// TestTasksBySQS: from the request to the last attempt, with every function and the queue between them.
func TestTasksBySQS(t *testing.T) {
	t.Parallel()
	d, target := start(t), receiver(t)
	d.declare(t, target.url)
	d.bridge(t, func() string { return d.urls["worker"] })
	const handlers = "/api/v1/canvases/c/handlers/S/"
	later := time.Now().Add(3 * time.Second)

	sync := d.make(t, http.StatusCreated, "/api/v1/tasks?source=shop&collection=orders", "")
	flaky := d.make(t, http.StatusAccepted, handlers+"flaky/events", `{"value":{"n":1}}`)
	delayed := d.make(t, http.StatusAccepted, handlers+"later/events", fmt.Sprintf(`{"value":2,"delay_until":%q}`, later.UTC().Format(time.RFC3339Nano)))
	d.tick(t, "cron")

	d.await(t, "/api/v1/tasks/"+sync, "SUCCESS")
	d.await(t, "/api/v1/canvases/c/events/"+flaky, "done")
	d.await(t, "/api/v1/canvases/c/events/"+delayed, "done")
	if early := time.Until(later); early > 0 {
		t.Errorf("the delayed event was done %v before its time", early)
	}
	for job, want := range map[string]int{"/sources/shop/orders": 1, "/canvases/c/S/flaky": 2, "/canvases/c/S/later": 1} {
		if got := target.starts(job); got != want {
			t.Errorf("%s was started %d times, want %d", job, got, want)
		}
	}
	d.tick(t, "sweep")
	for _, name := range []string{"enqueue-task", "tasks", "worker", "cron", "sweep"} {
		d.requests[name].Check(t)
	}
}

// TestAKilledWorkerCostsAnAttempt: the lease runs out, the sweep gives the task back, and another worker ends it.
func TestAKilledWorkerCostsAnAttempt(t *testing.T) {
	t.Parallel()
	d, target := start(t), receiver(t)
	d.declare(t, target.url)
	doomed := make(chan *exec.Cmd, 1)
	first := d.run(t, "worker", func(_ *testing.T, cmd *exec.Cmd, _ *strings.Builder) { doomed <- cmd })
	var alive atomic.Value
	alive.Store(first)
	d.bridge(t, func() string { return alive.Load().(string) })

	event := d.make(t, http.StatusAccepted, "/api/v1/canvases/c/handlers/S/slow/events", `{"value":1}`)
	<-target.held
	alive.Store(d.urls["worker"])
	cmd := <-doomed
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed

	d.await(t, "/api/v1/canvases/c/events/"+event, "done", "sweep")
	if got := target.starts("/canvases/c/S/slow"); got != 2 {
		t.Errorf("the task was started %d times, want 2", got)
	}
}

// TestScheduleBySQS: a schedule fires by itself, ticks made ahead and started at their time.
func TestScheduleBySQS(t *testing.T) {
	t.Parallel()
	d, target := start(t), receiver(t)
	d.declare(t, target.url)
	d.bridge(t, func() string { return d.urls["worker"] })
	const schedule = "/api/v1/schedules/every-three-seconds"
	declared := time.Now() // a tick may come before the response does
	d.ask(t, http.StatusCreated, "define", "PUT", schedule, `{"cron":"0/3 * * * * ?","job":"/topics/clock"}`, nil)
	d.tick(t, "cron")
	d.tick(t, "cron") // makes nothing twice
	until(t, "two ticks have started a task each", func() bool { return target.starts("/topics/clock") >= 2 })
	if got, most := target.starts("/topics/clock"), int(time.Since(declared)/(3*time.Second))+1; got > most {
		t.Errorf("%d ticks in %v, want at most %d", got, time.Since(declared), most)
	}
	d.ask(t, http.StatusNoContent, "define", "DELETE", schedule, "", nil)
	d.tick(t, "cron")
	for _, name := range []string{"define", "worker", "cron"} {
		d.requests[name].Check(t)
	}
}

// TestTargetGoesOn: a target that accepts a task says by its callback how it ended.
func TestTargetGoesOn(t *testing.T) {
	t.Parallel()
	d, target := start(t), receiver(t)
	d.declare(t, target.url)
	d.bridge(t, func() string { return d.urls["worker"] })
	event := d.make(t, http.StatusAccepted, "/api/v1/canvases/c/handlers/S/patient/events", `{"value":1}`)
	lease, ok := strings.CutPrefix((<-target.took).Callback, d.urls["lease"])
	if !ok {
		t.Fatalf("the callback is not below %s", d.urls["lease"])
	}
	d.ask(t, http.StatusOK, "lease", "POST", lease+"/heartbeat", `{"progress":{"step":1,"steps":2}}`, nil)
	d.ask(t, http.StatusOK, "lease", "POST", lease+"/complete", `{"result":"ok"}`, nil)
	d.await(t, "/api/v1/canvases/c/events/"+event, "done")
	d.requests["lease"].Check(t)
}

// TestInstanceBySQS: an instance claims a job that another process has added.
func TestInstanceBySQS(t *testing.T) {
	t.Parallel()
	d := start(t)
	d.declare(t, "http://192.0.2.1/")
	const instances = "/api/v1/instances"
	var instance, job struct{ ID string }
	d.ask(t, http.StatusCreated, "lease", "POST", instances, `{"name":"w","jobs":["/topics/*"],"capacity":1}`, &instance)
	d.ask(t, http.StatusCreated, "enqueue-task", "POST", "/api/v1/jobs", `{"topic":"elsewhere","properties":{"n":1}}`, &job)
	var claimed struct{ Claims []struct{ ID, Token string } }
	d.ask(t, http.StatusOK, "lease", "POST", instances+"/"+instance.ID+"/claims", `{"max":4,"wait":"20s"}`, &claimed)
	if len(claimed.Claims) != 1 || claimed.Claims[0].ID != job.ID {
		t.Fatalf("claimed %v, want the job %s", claimed.Claims, job.ID)
	}
	d.ask(t, http.StatusOK, "lease", "PUT", instances+"/"+instance.ID, `{}`, nil)
	lease := "/api/v1/leases/" + claimed.Claims[0].Token
	d.ask(t, http.StatusOK, "lease", "POST", lease+"/heartbeat", `{"logs":[{"message":"half done"}]}`, nil)
	log := store.Range{Table: store.Work, Partition: layout.LogPartition(task.ID(job.ID).UUID())}
	if page, err := d.store.Query(t.Context(), log); err != nil || len(page.Items) == 0 {
		t.Errorf("there is no log: %v", err)
	}
	d.ask(t, http.StatusOK, "lease", "POST", lease+"/complete", `{"result":"ok"}`, nil)
	d.ask(t, http.StatusNotFound, "tasks", "GET", "/api/v1/jobs/"+job.ID, "", nil) // successes of topics leave no history
	if page, err := d.store.Query(t.Context(), log); err != nil || len(page.Items) > 0 {
		t.Errorf("the log of a job that is gone: %v, %v", page.Items, err)
	}

	exchange := instances + "/" + instance.ID + "/exchange"
	d.ask(t, http.StatusCreated, "enqueue-task", "POST", "/api/v1/jobs", `{"topic":"elsewhere"}`, &job)
	for range 2 { // the second time as if the response had been lost
		d.ask(t, http.StatusOK, "lease", "POST", exchange, `{"seq":1,"max":4,"wait":"20s"}`, &claimed)
		if len(claimed.Claims) != 1 || claimed.Claims[0].ID != job.ID {
			t.Fatalf("an exchange has claimed %v, want the job %s", claimed.Claims, job.ID)
		}
	}
	var exchanged struct{ Results []struct{ State string } }
	d.ask(t, http.StatusOK, "lease", "POST", exchange, `{"seq":2,"results":[{"token":"`+claimed.Claims[0].Token+`","result":"ok"}]}`, &exchanged)
	if len(exchanged.Results) != 1 || exchanged.Results[0].State != "SUCCEEDED" {
		t.Errorf("an exchange has ended %v, want the job", exchanged.Results)
	}
	d.ask(t, http.StatusCreated, "enqueue-task", "POST", "/api/v1/jobs", `{"topic":"elsewhere"}`, &job)
	d.ask(t, http.StatusNoContent, "tasks", "DELETE", "/api/v1/jobs/"+job.ID, "", nil)
	d.ask(t, http.StatusNoContent, "lease", "POST", instances+"/"+instance.ID+"/drain", "", nil)
	d.ask(t, http.StatusNoContent, "lease", "DELETE", instances+"/"+instance.ID, "", nil)
	for _, name := range []string{"enqueue-task", "tasks", "lease"} {
		d.requests[name].Check(t)
	}
}

// ask sends a request to a function, checks the status, and reads the response into into, if it is not nil.
func (d *deployment) ask(t *testing.T, want int, function, method, path, body string, into any) {
	t.Helper()
	status, answer := ask(t, method, d.urls[function]+path, body, "Authorization: Bearer "+secret, "Content-Type: application/json")
	if status != want {
		t.Fatalf("%s %s: answer %d %s, want %d", method, path, status, answer, want)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal([]byte(answer), into); err != nil {
		t.Fatalf("%s %s: answer %s: %v", method, path, answer, err)
	}
}

// make makes a task by a request to enqueue-task and returns its id.
func (d *deployment) make(t *testing.T, want int, path, body string) (id string) {
	t.Helper()
	status, answer := ask(t, "POST", d.urls["enqueue-task"]+path, body, "Authorization: Bearer "+secret, "Content-Type: application/json")
	var made struct {
		ID   string `json:"id"`
		Task string `json:"task_id"`
	}
	if err := json.Unmarshal([]byte(answer), &made); err != nil || status != want || made.ID+made.Task == "" {
		t.Fatalf("POST %s: answer %d %s, want %d with an id", path, status, answer, want)
	}
	return made.ID + made.Task
}

func (d *deployment) tick(t *testing.T, function string) {
	t.Helper()
	body := fmt.Sprintf(`{"specversion":"1.0","id":"1","source":"/timer","type":"timer","data":{"tick":%q}}`, function)
	status, answer := ask(t, "POST", d.urls[function], body, "Authorization: Bearer "+secret, "Content-Type: application/cloudevents+json")
	if status != http.StatusNoContent {
		t.Errorf("%s: answer %d %s to a tick, want 204", function, status, answer)
	}
}

// await asks for a task until it has the status, with ticks for those functions in between.
func (d *deployment) await(t *testing.T, path, want string, ticks ...string) {
	t.Helper()
	until(t, path+" is "+want, func() bool {
		status, answer := ask(t, "GET", d.urls["tasks"]+path, "", "Authorization: Bearer "+secret)
		var got struct{ Status string }
		if err := json.Unmarshal([]byte(answer), &got); err != nil || status != http.StatusOK {
			t.Fatalf("GET %s: answer %d %s", path, status, answer)
		}
		if got.Status == want {
			return true
		}
		for _, function := range ticks {
			d.tick(t, function)
		}
		return false
	})
}
