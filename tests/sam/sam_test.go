package sam_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store/dynamo"
	"github.com/millrace/millrace/tests/containers"
	"github.com/millrace/millrace/tests/grants"
	"github.com/millrace/millrace/tests/process"
	"github.com/millrace/millrace/tests/sam"
	"github.com/millrace/millrace/tests/samples"
)

// root of the project.
const root = "../.."

// build returns the stack over fresh tables and a fresh queue, with other variables than the template's where vars says so.
func build(t *testing.T, vars map[string]string) *sam.Stack {
	t.Helper()
	stack, _ := buildWith(t, sam.Config{Vars: vars})
	return stack
}

// buildWith is build of a stack with more than the template's functions. It returns the queue of notifications too.
func buildWith(t *testing.T, c sam.Config) (stack *sam.Stack, queue string) {
	t.Helper()
	if os.Getenv("MILLRACE_TEST_SAM") == "" {
		t.Skip("left out: run by make test, where Docker and Python are there")
	}
	endpoint := os.Getenv("MILLRACE_TEST_DYNAMODB_CONTAINERS")
	if endpoint == "" {
		t.Fatal("MILLRACE_TEST_DYNAMODB_CONTAINERS is not set; see scripts/with-localstack")
	}
	queue = containers.Queue(t)
	c.Vars = maps.Clone(c.Vars)
	if c.Vars == nil {
		c.Vars = map[string]string{}
	}
	c.Vars["MILLRACE_STORE"], c.Vars["MILLRACE_BELL"] = "dynamodb:"+tables(t), "sqs:"+queue
	directory, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	admin := samples.Tokens()[0].SHA256
	c.Root, c.Dir, c.Endpoint, c.Admin = directory, t.TempDir(), endpoint, hex.EncodeToString(admin[:])
	c.Granted = map[string]string{}
	if runtime.GOOS == "linux" { // where Docker runs in a virtual machine, containers do not reach this machine at an address that it has
		for _, function := range samples.Order() {
			granted := grants.Record(t, grants.Options{Function: function, Endpoint: *containers.AWS(t).BaseEndpoint, Host: cmp.Or(os.Getenv("MILLRACE_TEST_HOST"), "127.0.0.1")})
			c.Granted[sam.LogicalID(function)] = granted.URL
		}
	}
	if stack, err = sam.Build(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return stack, queue
}

// tables makes fresh tables, declares what the samples need, and returns the tables' prefix.
func tables(t *testing.T) string {
	t.Helper()
	cfg, prefix := containers.AWS(t), containers.Prefix()
	s, err := dynamo.Open(t.Context(), dynamo.Options{Prefix: prefix, AWS: &cfg})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := samples.Declare(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return prefix
}

// tokens are those of the samples, as MILLRACE_TOKENS has them.
func tokens(t *testing.T) string {
	t.Helper()
	var list []map[string]string
	for _, token := range samples.Tokens() {
		list = append(list, map[string]string{
			"name": token.Name, "role": string(token.Role), "sha256": hex.EncodeToString(token.SHA256[:]),
		})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestInvokeEverySample: the first of each function by sam local invoke, the others by sam local start-lambda, in an order in
// which each rests on those before it.
func TestInvokeEverySample(t *testing.T) {
	stack := build(t, map[string]string{"MILLRACE_TOKENS": tokens(t)})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute) // until the gateway has stopped
	t.Cleanup(cancel)
	lambda := running(t)(stack.StartLambda(ctx))
	for _, function := range samples.Order() {
		t.Run(function, func(t *testing.T) {
			for i, c := range samples.Of(function) {
				t.Run(c.Name, func(t *testing.T) {
					invoke := invokeWarm(lambda)
					if i == 0 {
						invoke = invokeOnce(stack)
					}
					answer, failure := invoke(ctx, t, function, c.Name)
					if err := c.Check(answer, failure); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

// invoker invokes a function with one of its samples, and returns its response or the text of its error.
type invoker func(ctx context.Context, t *testing.T, function, name string) (answer []byte, failure string)

func invokeOnce(stack *sam.Stack) invoker {
	return func(ctx context.Context, t *testing.T, function, name string) (answer []byte, failure string) {
		t.Helper()
		payload, err := filepath.Abs(samples.Path(function, name))
		if err != nil {
			t.Fatal(err)
		}
		answer, failure, err = stack.Invoke(ctx, function, payload)
		if err != nil {
			t.Fatal(err)
		}
		return answer, failure
	}
}

func invokeWarm(lambda *sam.Gateway) invoker {
	return func(ctx context.Context, t *testing.T, function, name string) (answer []byte, failure string) {
		t.Helper()
		answer, failure, err := lambda.Invoke(ctx, function, samples.Payload(t, function, name))
		if err != nil {
			t.Fatal(err)
		}
		return answer, failure
	}
}

// startAPI builds the template and starts its gateway, which ends with the test, or after the limit.
func startAPI(t *testing.T, limit time.Duration) (context.Context, *sam.Gateway) {
	t.Helper()
	stack := build(t, nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit) // until the gateway has stopped
	t.Cleanup(cancel)
	return ctx, running(t)(stack.StartAPI(ctx))
}

// running returns what returns a gateway that was started, and stops it with the test.
func running(t *testing.T) func(*sam.Gateway, error) *sam.Gateway {
	t.Helper()
	return func(gateway *sam.Gateway, err error) *sam.Gateway {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if notes := gateway.Stop(); t.Failed() {
				t.Log(notes)
			}
		})
		return gateway
	}
}

func TestGateway(t *testing.T) {
	ctx, gateway := startAPI(t, 5*time.Minute)
	const (
		event   = "/jobscheduler/master/api/event"
		object  = "/jobscheduler/master/api/object"
		handler = "/api/v1/canvases/demo/handlers/MAIL/welcome"
	)
	steps := []struct {
		request string // method, path and query
		token   string
		body    string
		status  int
		want    string
	}{
		{"GET /healthz", "", "", 200, "ok"},
		{"GET /openapi.json", "", "", 200, `"/api/v1/jobs:batch"`},
		{"POST " + event, "", `[]`, 401, "unauthorized"},
		{"GET /jobscheduler/nothing", "", "", 401, "unauthorized"},
		{"GET /jobscheduler/nothing", "sample", "", 404, "not_found"},
		{"POST " + event, "sample", `[{"TYPE":"OfferMade","key":"/a b/ü","price":1}]`, 201, "eventIds"},
		{"POST " + event, "sample", `[{"TYPE":"OfferMade","key":"/b","price":2},{"TYPE":"OfferMade","key":"/c/d","price":3}]`, 201, "eventIds"},
		{"POST " + event, "sample", `[{"TYPE":`, 400, "invalid"},
		{"GET " + event + "?return=Event&after=0", "sample", "", 200, `"key":"/c/d"`},
		{"GET " + event + "?return=OfferLost&after=0&timeout=200ms", "sample", "", 200, `"TYPE":"Empty"`},
		{"GET " + event + "?return=Event&after=0&limit=0", "sample", "", 400, "query.limit"},
		{"GET " + object + "/c/?return=ObjectOverview", "sample", "", 200, `"price":3`},
		{"GET " + object + "/?return=ObjectOverview", "sample", "", 200, `"price":2`},
		{"GET " + object + "/a%20b/%C3%BC?return=ObjectOverview", "sample", "", 200, `"price":1`},
		{"GET " + object + "/b?return=Event&after=0", "sample", "", 200, `"OfferMade"`},
		{"POST " + object + "?return=ObjectOverview", "sample", `{}`, 200, `"key":"/b"`},
		{"GET /jobscheduler/master/api/order/?return=OrderOverview", "sample", "", 200, `"orders":[]`},
		{"POST /api/v1/tasks?source=shop&collection=orders", "sample", "", 201, `"task_id":"shop_orders_`},
		{"POST /tasks?source=shop&collection=orders", "sample", "", 200, `"task_id":"shop_orders_`},
		{"GET /tasks?source=shop&start=2020-01-01T00:00:00Z&end=2100-01-01T00:00:00Z", "sample", "", 200, `"SCHEDULED"`},
		{"GET /api/v1/tasks/unknown", "sample", "", 404, "not_found"},
		{"POST " + handler + "/events", "sample", `{"value":1}`, 202, `"status":"new"`},
		{"POST " + handler + "/events:batch", "sample", `[{"value":2}]`, 202, `"status":"new"`},
		{"GET " + handler + "/events", "sample", "", 200, `"value":2`},
		{"PUT " + handler + "/rules/pause", "sample", "", 204, ""},
		{"GET /api/v1/canvases/demo/handlers", "sample", "", 200, `"state":"pause"`},
		{"GET /api/v1/jobs/unknown/why", "sample", "", 404, "not_found"},
		{"POST /api/v1/jobs", "sample", `{"topic":"mail/send"}`, 201, `"mail/send"`},
		{"GET /api/v1/jobs?topic=mail/send", "sample", "", 200, `"mail/send"`},
		{"POST /api/v1/jobs/search", "sample", `{"topic":"mail/send"}`, 200, `"mail/send"`},
		{"PUT /api/v1/queues/mail", "sample", `{"topics":["mail/*"]}`, 201, `"mail"`},
		{"GET /api/v1/queues", "sample", "", 200, `"mail"`},
		{"POST /api/v1/queues/mail/purge", "sample", "", 200, `"dropped"`},
		{"GET /api/v1/statistics", "sample", "", 200, `"queued"`},
		{"GET /api/v1/statistics/topics", "sample", "", 200, `"topics"`},
		{"PUT /api/v1/schedules/nightly", "sample", `{"cron":"0 0 3 1 1 ? 2099","job":"/topics/mail/report"}`, 201, `"next"`},
		{"POST /api/v1/schedules/nightly/suspend", "sample", "", 204, ""},
		{"GET /api/v1/schedules/nightly", "sample", "", 200, `"nightly"`},
		{"GET /api/v1/schedules", "sample", "", 200, `"sources/shop/customers"`},
		{"GET /api/v1/schedules/sources%2Fshop%2Fcustomers", "sample", "", 200, `"sources/shop/customers"`}, // sam local unescapes slashes
		{"POST /api/v1/schedules/sources%2Fshop%2Fcustomers/resume", "sample", "", 204, ""},
		{"POST /api/v1/streams/a%2Fb/events", "sample", "{}", 400, "X-Producer-ID"},
		{"POST /api/v1/streams/a%2Fb/offsets", "sample", "{}", 400, "X-Consumer-ID"},
		{"GET /api/v1/streams/a%2Fb", "sample", "", 404, "no stream of this name"},
		{"GET /api/v1/cron/next?expr=0%200%203%20*%20*%20%3F", "sample", "", 200, `"times"`},
		{"POST /api/v1/instances", "sample", `{"name":"w","jobs":["/topics/*"],"capacity":1}`, 201, `"term"`},
		{"GET /api/v1/instances", "sample", "", 200, `"name":"w"`},
		{"POST /api/v1/leases/none/complete", "sample", `{"result":"ok"}`, 404, "not_found"},
		{"GET /api/v1/definitions", "sample", "", 200, `"welcome"`},
		{"GET /login", "", "", 200, `name="token"`},
		{"GET /assets/live.js", "", "", 200, "EventSource"},
		{"GET /", "", "", 401, "sign in at /login"},
		{"GET /orders/%2Fparcels%2Fship/17", "", "", 401, "sign in at /login"},
		{"GET /nothing", "", "", 404, "not_found"},
		{"PUT /api/v1/definitions?dry_run=true", "sample", `{}`, 200, `"removed"`},
	}
	for i, step := range steps {
		t.Run(fmt.Sprint(i, " ", step.request), func(t *testing.T) {
			status, body := ask(ctx, t, gateway.URL, step.request, step.token, step.body)
			if status != step.status || !strings.Contains(body, step.want) {
				t.Errorf("answer %d %s, want %d with %s", status, body, step.status, step.want)
			}
		})
	}
	t.Run("who prefers to pause is not held", func(t *testing.T) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway.URL+event+"?return=OfferLost&after=0&timeout=20s", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer sample")
		r.Header.Set("Prefer", "pause")
		answer, err := process.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Preference-Applied") != "pause" {
			t.Errorf("answer %d, Preference-Applied %q", answer.StatusCode, answer.Header.Get("Preference-Applied"))
		}
	})
}

func ask(ctx context.Context, t *testing.T, url, request, token, body string) (int, string) {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(ctx, method, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := process.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
