package services_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/grants"
	"github.com/millrace/millrace/tests/process"
)

const secret = "services-secret"

func TestMain(m *testing.M) { os.Exit(run(m)) }

// programs is where the functions' programs are.
var programs string

// run builds the functions once for all tests.
func run(m *testing.M) int {
	var err error
	if programs, err = os.MkdirTemp("", "millrace-services-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(programs)
	if out, err := exec.Command("go", "build", "-o", programs+"/", "../../functions/...").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the functions: %v\n%s", err, out)
		return 1
	}
	code := containers.Run(m)
	if code == 0 {
		code = checkGrants()
	}
	return code
}

// functions are the services under test; lease comes first, since the worker is told where it is.
var functions = []string{"lease", "emit", "acknowledge", "read-after", "snapshot", "enqueue-task", "tasks", "worker", "cron", "sweep", "define", "dashboard"}

// deployment is all functions, each a process, on the same tables and the same queue.
type deployment struct {
	env      []string                    // that they are started with
	urls     map[string]string           // of functions by their names
	requests map[string]*grants.Recorder // what they ask of AWS
	store    *dynamo.Store
	queue    string // its URL
}

// start starts the functions on fresh tables and a fresh queue. They are stopped with the test, and must end by
// themselves.
func start(t *testing.T) *deployment {
	t.Helper()
	cfg, prefix := containers.AWS(t), containers.Prefix()
	s, err := dynamo.Open(t.Context(), dynamo.Options{Prefix: prefix, AWS: &cfg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := &deployment{urls: map[string]string{}, requests: map[string]*grants.Recorder{}, store: s, queue: containers.Queue(t)}
	d.env = append(os.Environ(), "AWS_REGION="+cfg.Region,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "MILLRACE_STORE=dynamodb:"+prefix, "MILLRACE_BELL=sqs:"+d.queue,
		"MILLRACE_ADMIN_TOKEN="+secret, "MILLRACE_TOKENS=", "MILLRACE_SECRETS=aws:arn:aws:secretsmanager:"+cfg.Region+":000000000000:secret:millrace-AbCdEf",
		"MILLRACE_DRAIN=2m", // however slow the emulator is
		"MILLRACE_CONFIG={journal: {retention: {events: 1}}, targets: {allow_private: true}}")
	for _, name := range functions {
		d.requests[name] = grants.Record(t, grants.Options{Function: name, Endpoint: *cfg.BaseEndpoint, Used: used.note})
		d.urls[name] = d.run(t, name, mustEndWell)
		if name == "lease" {
			d.env = append(d.env, "MILLRACE_URL="+d.urls[name])
		}
	}
	return d
}

// mustEndWell ends a service with the test and checks that it exits with status 0.
func mustEndWell(t *testing.T, cmd *exec.Cmd, notes *strings.Builder) {
	t.Helper()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s did not end well: %v\n%s", filepath.Base(cmd.Path), err, notes.String())
		}
	})
}

// run starts a function on a free port and waits until it is alive. How it ends is for end to see to.
func (d *deployment) run(t *testing.T, name string, end func(*testing.T, *exec.Cmd, *strings.Builder)) (url string) {
	t.Helper()
	port := freePort(t)
	cmd := exec.Command(filepath.Join(programs, name))
	cmd.Env = append(slices.Clone(d.env), "AWS_ENDPOINT_URL="+d.requests[name].URL, "PORT="+port)
	var notes strings.Builder
	cmd.Stderr = &notes
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end(t, cmd, &notes)
	url = "http://127.0.0.1:" + port
	await(t, url+"/readyz")
	return url
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

func await(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := process.Client.Do(r)
		if err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK {
			return
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Fatalf("%s: %v", url, err)
		}
		time.Sleep(20 * time.Millisecond) // another process: there is nothing to wait on
	}
}

// ask sends a request; header lines are "Name: value".
func ask(t *testing.T, method, url, body string, header ...string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	response, err := process.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestFunctionsAsServices(t *testing.T) {
	t.Parallel()
	d := start(t)
	const (
		event    = "/jobscheduler/master/api/event"
		object   = "/jobscheduler/master/api/object/"
		token    = "Authorization: Bearer " + secret
		isJSON   = "Content-Type: application/json"
		schedule = "/api/v1/schedules/nightly"
		stream   = "/api/v1/streams/Codello%20Newsletter%20Subscriptions"
		consumer = "X-Consumer-ID: f3a7f4f1-6a58-4c43-9d1a-7b63ad1a2b10"
		producer = "X-Producer-ID: 2480b859-e08a-4414-9c7d-003bc1a4c238"
		happened = `{"event":{"name":"Subscription initiated","version":1},"trigger":{"type":"automatic","name":"/path"},"payload":{},` +
			`"system":{"id":"2480b859-e08a-4414-9c7d-003bc1a4c238","name":"n","time":"2021-03-10T22:13:32Z","timezone":"UTC"}}`
		event1 = "Content-Type: application/cloudevents+json"
		notice = `{"specversion":"1.0","id":"1","source":"/notices","type":"notice","data":{"queue":"default"}}`
		tick   = `{"specversion":"1.0","id":"1","source":"/cron","type":"timer","data":{"tick":"sweep"}}`
	)
	steps := []struct {
		function, method, path, body string
		header                       []string
		status                       int
		want                         string
	}{
		{"emit", "POST", event, `[{"TYPE":"OfferMade","key":"/a","price":1}]`, []string{isJSON}, 401, "unauthorized"},
		{"emit", "POST", event, `[{"TYPE":"OfferMade","key":"/a","price":1}]`, []string{token, isJSON}, 201, "eventIds"},
		{"emit", "POST", event, `[{"TYPE":"OfferMade","key":"/b","price":2}]`, []string{token, isJSON, "Idempotency-Key: one"}, 201, "eventIds"},
		{"emit", "POST", event, `[{"TYPE":"OfferMade","key":"/b","price":2}]`, []string{token, isJSON, "Idempotency-Key: one"}, 201, "eventIds"},
		{"read-after", "GET", event + "?return=Event&after=0", "", []string{token}, 200, `"key":"/a"`},
		{"read-after", "GET", event + "?return=Event&after=0&timeout=200ms", "", []string{token, "Accept: text/event-stream"}, 200, "data: {"},
		{"snapshot", "GET", object + "?return=ObjectOverview", "", []string{token}, 200, `"price":1`},
		{"worker", "POST", "/", notice, []string{event1}, 401, "unauthorized"},
		{"worker", "POST", "/", notice, []string{token, event1}, 204, ""},
		{"cron", "POST", "/", strings.ReplaceAll(tick, "sweep", "cron"), []string{token, event1}, 204, ""},
		{"define", "PUT", "/api/v1/definitions", "queues: [{name: q}]", []string{token, "Content-Type: application/yaml"}, 200, "added"},
		{"define", "PUT", "/api/v1/definitions", "{}", []string{token, "Content-Type: application/yaml"}, 200, "removed"},
		{"define", "GET", "/api/v1/definitions", "", []string{token}, 200, "{"},
		{"define", "PUT", "/api/v1/queues/mail", `{"topics":["mail/*"]}`, []string{token, isJSON}, 201, `"mail"`},
		{"define", "PUT", schedule, `{"cron":"0 0 3 1-3 3 ? 2026,2099","job":"/topics/mail/report"}`, []string{token, isJSON}, 201, `"next"`},
		{"define", "POST", schedule + "/suspend", "", []string{token}, 204, ""},
		{"define", "POST", schedule + "/resume", "", []string{token}, 204, ""},
		{"define", "POST", schedule + "/trigger", "", []string{token}, 202, "task_id"},
		{"define", "POST", schedule + "/backfill", `{"from":"2026-03-01T00:00:00Z","to":"2026-03-03T12:00:00Z"}`, []string{token, isJSON}, 202, "3"},
		{"define", "GET", "/api/v1/schedules", "", []string{token}, 200, `"nightly"`},
		{"cron", "POST", "/", strings.ReplaceAll(tick, "sweep", "cron"), []string{token, event1}, 204, ""},
		{"define", "DELETE", schedule, "", []string{token}, 204, ""},
		{"cron", "POST", "/", strings.ReplaceAll(tick, "sweep", "cron"), []string{token, event1}, 204, ""},
		{"define", "GET", "/api/v1/cron/next?expr=0+0+3+*+*+%3F", "", []string{token}, 200, "times"},
		{"tasks", "GET", "/api/v1/queues", "", []string{token}, 200, `"mail"`},
		{"tasks", "GET", "/api/v1/jobs?topic=mail%2Freport", "", []string{token}, 200, `"mail/report"`},
		{"tasks", "POST", "/api/v1/queues/mail/suspend", "", []string{token}, 204, ""},
		{"tasks", "POST", "/api/v1/queues/mail/resume", "", []string{token}, 204, ""},
		{"tasks", "POST", "/api/v1/queues/mail/purge", "", []string{token}, 200, `{"dropped":`},
		{"read-after", "GET", event + "?return=TaskEvent&limit=-1&with=cause", "", []string{token}, 200, `"cause":`},
		{"read-after", "GET", "/jobscheduler/master/api/journal/cause/9007199254740992", "", []string{token}, 404, "no event has this id"},
		{"define", "DELETE", "/api/v1/queues/mail", "", []string{token}, 204, ""},
		{"emit", "POST", stream + "/events", happened, []string{token, isJSON, producer}, 201, `"sequence":1`},
		{"emit", "POST", stream + "/events", happened, []string{token, isJSON, producer}, 201, `"sequence":2`},
		{"read-after", "GET", stream + "/events", "", []string{token, consumer}, 200, `"Subscription initiated"`},
		{"acknowledge", "POST", stream + "/offsets", `{"eventName":"Subscription initiated","offset":1}`, []string{token, isJSON, consumer}, 200, `"offset":1`},
		{"read-after", "GET", "/api/v1/streams", "", []string{token}, 200, "Codello"},
		{"lease", "POST", "/api/v1/instances", `{"name":"w","jobs":["/topics/*"],"capacity":1}`, []string{token, isJSON}, 201, `"term"`},
		{"lease", "GET", "/api/v1/instances", "", []string{token}, 200, `"name":"w"`},
		{"sweep", "POST", "/", tick, []string{event1}, 401, "unauthorized"},
		{"sweep", "POST", "/", `{}`, []string{token, event1}, 400, "has no specversion"},
		{"sweep", "POST", "/", tick, []string{token, event1}, 204, ""},
		{"sweep", "POST", "/", `{"tick":"sweep"}`,
			[]string{token, isJSON, "Ce-Specversion: 1.0", "Ce-Id: 2", "Ce-Source: /cron", "Ce-Type: timer"}, 204, ""},
		{"snapshot", "GET", object + "?return=ObjectOverview", "", []string{token}, 200, `"price":1`},
	}
	for _, step := range steps {
		status, answer := ask(t, step.method, d.urls[step.function]+step.path, step.body, step.header...)
		if status != step.status || !strings.Contains(answer, step.want) {
			t.Errorf("%s: %s %s: answer %d %s, want %d with %s", step.function, step.method, step.path, status, answer, step.status, step.want)
		}
	}
	for _, recorded := range d.requests {
		recorded.Check(t)
	}
}

// TestFunctionSaysWhatIsMissing: a service that is configured wrongly says why, and ends at once.
func TestFunctionSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	withoutNotifier := []string{"emit", "acknowledge", "read-after", "snapshot"}
	for _, name := range functions {
		fails(t, name, "set MILLRACE_ADMIN_TOKEN")
		fails(t, name, "this program opens dynamodb:PREFIX", "MILLRACE_ADMIN_TOKEN=s", "MILLRACE_STORE=pebble:data")
		if !slices.Contains(withoutNotifier, name) {
			fails(t, name, "MILLRACE_BELL is not set, want sqs:QUEUE", "MILLRACE_ADMIN_TOKEN=s", "MILLRACE_STORE=dynamodb:p")
		}
	}
}

// fails checks that a function ends at once and says this.
func fails(t *testing.T, name, want string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, name))
	cmd.Env = append(os.Environ(), "MILLRACE_ADMIN_TOKEN=", "MILLRACE_TOKENS=", "MILLRACE_CONFIG=", "MILLRACE_STORE=", "MILLRACE_BELL=",
		"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("%s with %v: %v, %s, want a failure with %q", name, env, err, out, want)
	}
}
