package client_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
)

// speak returns a client of a scripted server.
func speak(t *testing.T, answers ...answer) (*client.Client, *script) {
	t.Helper()
	s := &script{answers: answers}
	c, err := client.New(client.Options{URL: "http://test", Token: "t", HTTP: &http.Client{Transport: s}})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func TestEnqueueSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := speak(t, answer{status: 503}, answer{status: 201, body: `{"task_id":"a_b_1"}`}, answer{status: 200, body: `{"task_id":"a_b_1"}`})
		id, existing, err := c.EnqueueSync(t.Context(), "a", "b c", 100)
		if id != "a_b_1" || existing || err != nil {
			t.Errorf("new = %q, %v, %v", id, existing, err)
		}
		if s.keys[0] == "" || s.keys[0] != s.keys[1] {
			t.Errorf("keys = %q, want the same for the same request", s.keys)
		}
		if _, existing, err = c.EnqueueSync(t.Context(), "a", "b c", 0); !existing || err != nil {
			t.Errorf("under way = %v, %v", existing, err)
		}
		want := []string{"POST /api/v1/tasks?collection=b+c&priority=100&source=a", "POST /api/v1/tasks?collection=b+c&priority=100&source=a",
			"POST /api/v1/tasks?collection=b+c&source=a"}
		if diff := cmp.Diff(want, s.asked); diff != "" {
			t.Error(diff)
		}
	})
}

const aTask = `{"id":"x","source":"s","collection":"c","priority":300,"created_at":"2021-03-10T22:13:32.433956Z",` +
	`"started_at":"","finished_at":"","status":"SCHEDULED","score":299998384582788}`

// A task is encoded as it was decoded.
func TestSyncTaskAsTheServerHasIt(t *testing.T) {
	t.Parallel()
	c, _ := speak(t, answer{status: 200, body: aTask}, answer{status: 404, body: `{"code":"not_found","detail":"none"}`})
	task, err := c.SyncTask(t.Context(), "x")
	if err != nil || !task.StartedAt.IsZero() || task.CreatedAt.UnixMicro() != 1615414412433956 {
		t.Errorf("task = %+v, %v", task, err)
	}
	if shown, _ := json.Marshal(task); string(shown) != aTask {
		t.Errorf("shown as %s", shown)
	}
	if _, err := c.SyncTask(t.Context(), "a/b"); client.StatusOf(err) != 404 {
		t.Errorf("of none = %v", err)
	}
}

func TestListsGoOn(t *testing.T) {
	t.Parallel()
	c, s := speak(t,
		answer{status: 200, body: `{"events":[{"id":"3"},{"id":"2"}]}`, link: `</api/v1/x?cursor=c%2B1&limit=2>; rel="next"`},
		answer{status: 200, body: `{"events":[{"id":"1"}]}`},
	)
	var ids []string
	for e, err := range c.HandlerEvents(t.Context(), client.HandlerName{Canvas: "a/b", Space: "W", Name: "n m"}, "done", 0) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	if diff := cmp.Diff([]string{"3", "2", "1"}, ids); diff != "" {
		t.Error(diff)
	}
	const path = "GET /api/v1/canvases/a%2Fb/handlers/W/n%20m/events?"
	if diff := cmp.Diff([]string{path + "status=done", path + "cursor=c%2B1&status=done"}, s.asked); diff != "" {
		t.Error(diff)
	}
}

func TestEmitTo(t *testing.T) {
	t.Parallel()
	c, s := speak(t, answer{status: 202, body: `{"id":"i","status":"new"}`})
	emitted, err := c.EmitTo(t.Context(), client.HandlerName{Canvas: "c", Space: "s", Name: "n"}, client.NewEvent{
		Value: json.RawMessage(`{"a":null}`), DelayUntil: time.Date(2021, 3, 10, 22, 13, 32, 433956000, time.UTC),
	})
	if err != nil || emitted.ID != "i" || s.keys[0] == "" {
		t.Errorf("emitted %+v, %v", emitted, err)
	}
	want := `POST /api/v1/canvases/c/handlers/s/n/events {"value":{"a":null},"delay_until":"2021-03-10T22:13:32.433956Z"}`
	if s.asked[0] != want {
		t.Errorf("asked %s", s.asked[0])
	}
}

// A follower reconnects where it was, and yields each line once.
func TestFollowLogs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line := func(message string) string {
			return `data: {"time":"2021-03-10T22:13:32.433956Z","message":"` + message + `","level":"info"}` + "\n"
		}
		c, s := speak(t,
			answer{status: 503},
			answer{status: 200, body: line("one") + "\n" + line("two") + "id: 2\n\n:\n\n" + line("three") + "\n"}, // three comes again
			answer{},
			answer{status: 200, body: ":\n\n"},
			answer{status: 200, body: line("three") + "\n" + line("four") + "id: 4\n\nevent: end\ndata: {}\n\n"},
		)
		var said []string
		for l, err := range c.FollowLogs(t.Context(), "a") {
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, l.Message)
		}
		if got := strings.Join(said, " "); got != "one two three four" {
			t.Errorf("lines: %s", got)
		}
		if diff := cmp.Diff([]string{"", "", "2", "2", "2"}, s.last); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFollowLogsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			answers []answer
			status  int
		}{{[]answer{{status: 404}}, 404}, {nil, 0}} { // nobody there: until patience ends
			speaker, _ := speak(t, c.answers...)
			began, failed := time.Now(), false
			for _, err := range speaker.FollowLogs(t.Context(), "a") {
				failed = err != nil
				if client.StatusOf(err) != c.status {
					t.Errorf("error %v, want status %d", err, c.status)
				}
			}
			if took := time.Since(began); !failed || took > 31*time.Second {
				t.Errorf("failed %v after %v", failed, took)
			}
		}
	})
}
