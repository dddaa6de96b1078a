package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/tests/process"
)

// creation is a request that creates, and another of the same route, perhaps of another resource.
type creation struct{ path, body, otherPath, otherBody string }

// TestCreationsHappenOnce: a request that creates gets the same response again under its Idempotency-Key, and is refused with
// other content; under another key, or of another resource that the path names, it is another request.
func TestCreationsHappenOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, s *process.Server) {
		w := web{t: t, s: s}
		w.ask("PUT", "/api/v1/definitions", `{"sources":{"s":{"target":{"instances":true},"collections":[{"name":"c"},{"name":"d"}]}},`+
			`"schedules":[{"name":"s","cron":"0 0 0 1 1 ? 2099","job":"/topics/t"},{"name":"r","cron":"0 0 0 1 1 ? 2099","job":"/topics/t"}]}`)
		for _, c := range []creation{
			{"/jobscheduler/master/api/event", `[{"TYPE":"A"}]`, "", `[{"TYPE":"B"}]`},
			{"/api/v1/streams/x/events", happening, "", happening + " "},
			{"/api/v1/streams/x/events:batch", "[" + happening + "]", "", "[" + happening + "," + happening + "]"},
			{"/api/v1/tasks?source=s&collection=c", "", "/api/v1/tasks?source=s&collection=d", ""},
			{"/api/v1/canvases/c/handlers/W/h/events", `{"value":1}`, "", `{"value":2}`},
			{"/api/v1/canvases/c/handlers/W/h/events:batch", `[{"value":1}]`, "", `[{"value":2}]`},
			{"/api/v1/jobs", `{"topic":"t"}`, "", `{"topic":"u"}`},
			{"/api/v1/jobs:batch", `[{"topic":"t"}]`, "", `[{"topic":"u"}]`},
			{"/api/v1/tasks:batch", `[{"source":"s","collection":"c"}]`, "", `[{"source":"s","collection":"d"}]`},
			{"/api/v1/jobs/" + w.stopped() + "/retry", "", "/api/v1/jobs/" + w.stopped() + "/retry", ""},
			{"/api/v1/schedules/s/trigger", "", "/api/v1/schedules/r/trigger", ""},
			{"/api/v1/instances", `{"name":"i","jobs":["/x"],"capacity":1}`, "", `{"name":"i","jobs":["/x"],"capacity":2}`},
		} {
			w.once(c)
		}
	})
}

// ofAnother reports whether the other request's path names another resource.
func (c *creation) ofAnother() bool {
	path, _, _ := strings.Cut(c.path, "?")
	other, _, _ := strings.Cut(c.otherPath, "?")
	return path != other
}

func (w web) once(c creation) {
	w.t.Helper()
	if c.otherPath == "" {
		c.otherPath = c.path
	}
	ask := func(path, body, key string) (int, string, string) {
		status, header, answer := w.send("POST", path, body, "Idempotency-Key", key, "X-Producer-ID", id(0))
		return status, answer, header.Get("Idempotent-Replayed")
	}
	status, first, replayed := ask(c.path, c.body, "k")
	if status/100 != 2 || replayed != "" {
		w.t.Errorf("POST %s is answered %d %s, replayed %q", c.path, status, first, replayed)
	}
	if again, second, replayed := ask(c.path, c.body, "k"); again != status || second != first || replayed != "true" {
		w.t.Errorf("POST %s is answered %d %s, then %d %s, replayed %q", c.path, status, first, again, second, replayed)
	}
	own := "l"
	if c.ofAnother() {
		own = "k"
	} else if status, answer, _ := ask(c.otherPath, c.otherBody, "k"); status != 422 {
		w.t.Errorf("POST %s with the key of another content is answered %d %s", c.otherPath, status, answer)
	}
	if status, other, _ := ask(c.otherPath, c.otherBody, own); status/100 != 2 || other == first {
		w.t.Errorf("POST %s with a key of its own is answered %d %s", c.otherPath, status, other)
	}
}

// stopped returns a job that has ended and may be retried.
func (w web) stopped() (id string) {
	w.t.Helper()
	_, answer := w.ask("POST", "/api/v1/jobs", `{"topic":"stopped"}`)
	var job struct{ ID string }
	if err := json.Unmarshal([]byte(answer), &job); err != nil {
		w.t.Fatal(err)
	}
	w.ask("POST", fmt.Sprintf("/api/v1/jobs/%s/stop", job.ID), "")
	return job.ID
}
