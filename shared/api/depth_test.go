package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue"
)

// nested returns an object of that many levels.
func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
}

// ask is a request with a value in its body, for every place where a value may be of any shape.
type ask struct {
	name, method, path string
	before, after      string // of the value
	location           string
	status             int // of a value that is not too deep
	role               access.Role
	header             []string
}

// TestNesting: a value of any shape has at most 100 levels, wherever it comes in; a deeper one is refused with its location.
func TestNesting(t *testing.T) {
	t.Parallel()
	jobs, streams := topical(t, run("a")), streaming(t)
	defined, _ := defining(t)
	producer := []string{"X-Producer-ID", producer1}
	stream := func(name string) (before string) { return strings.TrimSuffix(happened(name), `{"a":[1, "<&>"]}}`) }
	for b, asks := range map[*bundle][]ask{
		setup(t): {{"a field of an event", "POST", base + "/event", `[{"TYPE":"Made"},{"TYPE":"Made","f":`, `}]`, "body[1].f", 201, access.Producer, nil}},
		&working(t).bundle: {
			{"a handler's value", "POST", handlerOf("mail") + "/events", `{"value":`, `}`, "body.value", 202, access.Producer, nil},
			{"one of several values", "POST", handlerOf("mail") + "/events:batch", `[{"value":1},{"value":`, `}]`, "body[1].value", 202, access.Producer, nil},
		},
		&jobs.bundle: {
			{"a job's properties", "POST", jobsPath, `{"topic":"a","properties":`, `}`, "body.properties", 201, access.Producer, nil},
			{"a template", "POST", jobsPath + "/search", `{"templates":[{"x":1},{"p":`, `}]}`, "body.templates[1].p", 200, access.Viewer, nil},
		},
		streams: {
			{"a stream's payload", "POST", "/api/v1/streams/s/events", stream("n"), `}`, "body.payload", 201, access.Producer, producer},
			{"one of several payloads", "POST", "/api/v1/streams/s/events:batch", "[" + stream("n"), `}]`, "body[0].payload", 201, access.Producer, producer},
		},
		defined: {{"a payload of definitions", "PUT", definitionsPath, `{"schedules":[{"name":"s","cron":"@daily","job":"/topics/a","payload":`, `}]}`,
			"body.schedules[0].payload", 200, access.Admin, nil}},
	} {
		for _, a := range asks {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				do := func(depth int) reply {
					return b.as(t, a.role, a.method, a.path, a.before+nested(depth)+a.after, a.header...)
				}
				if got := do(event.MaxDepth); got.StatusCode != a.status {
					t.Errorf("%d levels = %d %s, want %d", event.MaxDepth, got.StatusCode, got.body, a.status)
				}
				for _, depth := range []int{event.MaxDepth + 1, 1000} {
					got := do(depth)
					wantProblem(t, got, http.StatusBadRequest, api.CodeInvalid, a.location)
					if !strings.Contains(got.body, "nested") || !strings.Contains(got.body, "100") {
						t.Errorf("%d levels: %s, want that it says what is possible", depth, got.body)
					}
				}
				if got := do(100_000); got.StatusCode != http.StatusBadRequest || len(got.body) > 2000 || !strings.Contains(got.body, "nested") {
					t.Errorf("100,000 levels = %d %.200s", got.StatusCode, got.body)
				}
			})
		}
	}
}

// TestNestedOutput: an output that is too deep is refused, and the lease goes on.
func TestNestedOutput(t *testing.T) {
	t.Parallel()
	r := instances(t)
	w := r.register(t, "/topics/a/*")
	r.add(t, queue.New{Job: "/topics/a/b"})
	path := "/api/v1/leases/" + r.claims(t, w, `{"max":1}`)[0].Token + "/complete"
	complete := func(depth int) reply {
		return r.as(t, access.Worker, "POST", path, `{"result":"ok","output":`+nested(depth)+`}`)
	}
	wantProblem(t, complete(event.MaxDepth+1), http.StatusBadRequest, api.CodeInvalid, "body.output")
	if got := complete(event.MaxDepth); got.StatusCode != http.StatusOK {
		t.Errorf("an output of 100 levels = %d %s", got.StatusCode, got.body)
	}
}
