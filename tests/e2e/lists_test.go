package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/tests/process"
)

// lists are the paths of all lists, and the members that they are in. Logs are not among
// them: they are read to their end.
func lists(stream string) map[string]string {
	return map[string]string{
		"/api/v1/schedules": "schedules", "/api/v1/instances": "instances", "/api/v1/queues": "queues", "/api/v1/jobs": "jobs",
		"/api/v1/statistics/topics": "topics", "/api/v1/streams": "streams", "/api/v1/consumers?stream=" + stream: "consumers",
		"/api/v1/canvases/c/handlers": "handlers", "/api/v1/canvases/c/handlers/W/h0/events": "events",
		"/api/v1/tasks?source=s&start=2020-01-01T00:00:00Z&end=2100-01-01T00:00:00Z": "tasks",
		"/tasks?source=s&start=2020-01-01T00:00:00Z&end=2100-01-01T00:00:00Z":        "tasks",
	}
}

// TestLists: each list can be read by pages of any size from 1 to 1,000, and has in them just what it has in one page.
func TestLists(t *testing.T) {
	t.Parallel()
	s := served(t)
	w := web{t: t, s: s}
	var collections []string
	for i := range 3 {
		collections = append(collections, fmt.Sprintf(`{"name":"k%d"}`, i))
	}
	w.ask("PUT", "/api/v1/definitions", `{"sources":{"s":{"target":{"instances":true},"collections":[`+strings.Join(collections, ",")+`]}}}`)
	for i := range 3 {
		w.ask("PUT", fmt.Sprintf("/api/v1/schedules/s%d", i), `{"cron":"0 0 12 1 1 ? 2099","job":"/topics/a/b"}`)
		w.ask("PUT", fmt.Sprintf("/api/v1/queues/q%d", i), `{}`)
		w.ask("POST", "/api/v1/instances", fmt.Sprintf(`{"name":"i%d","jobs":["/x"],"capacity":1}`, i))
		w.ask("POST", "/api/v1/jobs", fmt.Sprintf(`{"topic":"t/%d"}`, i))
		w.ask("POST", fmt.Sprintf("/api/v1/canvases/c/handlers/W/h%d/events", i), `{"value":1}`)
		w.ask("POST", "/api/v1/canvases/c/handlers/W/h0/events", `{"value":2}`)
		w.ask("POST", fmt.Sprintf("/api/v1/tasks?source=s&collection=k%d", i), "")
		w.ask("POST", fmt.Sprintf("/api/v1/streams/x%d/events", i), happening, "X-Producer-ID", id(0))
		w.ask("GET", "/api/v1/streams/x0/events?eventName=happened", "", "X-Consumer-ID", id(i))
		w.ask("POST", "/api/v1/streams/x0/offsets", `{"eventName":"happened","offset":1}`, "X-Consumer-ID", id(i))
	}
	for path, member := range lists("x0") {
		whole, next := w.page(path, member)
		if len(whole) < 3 || next != "" {
			t.Errorf("%s has %d elements and goes on at %q, want 3 at least, and all", path, len(whole), next)
			continue
		}
		joint := "?"
		if strings.Contains(path, "?") {
			joint = "&"
		}
		for _, size := range []int{1, 2} {
			var all, part []string
			for next := fmt.Sprint(path, joint, "limit=", size); next != ""; {
				part, next = w.page(next, member)
				if len(part) > size {
					t.Errorf("%s: %d elements of a page of %d", path, len(part), size)
				}
				all = append(all, part...)
			}
			if !slices.Equal(all, whole) {
				t.Errorf("%s by pages of %d:\n%v\nat once:\n%v", path, size, all, whole)
			}
		}
		for _, bad := range []string{"0", "-1", "1001", "x", ""} {
			if status, _, body := w.get(path + joint + "limit=" + bad); status != 400 || !strings.Contains(body, `"location":"query.limit"`) {
				t.Errorf("%s with limit=%s is answered %d %s", path, bad, status, body)
			}
		}
	}
}

const happening = `{"event":{"name":"happened"},"system":{"id":"00000000-0000-4000-8000-000000000009","name":"n",` +
	`"time":"2026-01-01T00:00:00Z","timezone":"UTC"},"trigger":{"type":"manual","name":"m"},"payload":{}}`

func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// web asks a server as any program does.
type web struct {
	t *testing.T
	s *process.Server
}

// ask sends a request that must succeed.
func (w web) ask(method, path, body string, headers ...string) (http.Header, string) {
	w.t.Helper()
	status, header, answer := w.send(method, path, body, headers...)
	if status/100 != 2 {
		w.t.Fatalf("%s %s is answered %d %s", method, path, status, answer)
	}
	return header, answer
}

func (w web) get(path string) (int, http.Header, string) {
	w.t.Helper()
	return w.send("GET", path, "")
}

func (w web) send(method, path, body string, headers ...string) (int, http.Header, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.s.URL()+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.s.Token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := process.Client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

// page returns the elements of a page, without what changes by itself, and the path of the next; "" if it is the last.
func (w web) page(path, member string) (elements []string, next string) {
	w.t.Helper()
	header, body := w.ask("GET", path, "")
	var page map[string][]map[string]any
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		w.t.Fatalf("%s: %v in %s", path, err, body)
	}
	for _, element := range page[member] {
		for _, moving := range []string{"oldest_wait_ms", "expires_at", "behind", "leader"} {
			delete(element, moving)
		}
		elements = append(elements, fmt.Sprint(element))
	}
	if link := header.Get("Link"); link != "" {
		next, _, _ = strings.Cut(strings.TrimPrefix(link, "<"), ">")
	}
	return elements, next
}
