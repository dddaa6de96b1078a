package mcp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace/shared/act"
	"github.com/millrace/millrace/shared/mcp"
)

// asked is a request that reached the API.
type asked struct{ method, target, authorization, consumer, body string }

// connect returns a client of a server of the protocol, and the requests that reach an API, which responds with that status and body.
func connect(t *testing.T, status int, body string) (*sdk.ClientSession, func() asked) {
	t.Helper()
	requests := make(chan asked, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		requests <- asked{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("X-Consumer-ID"), string(sent)}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(api.Close)
	there, here := sdk.NewInMemoryTransports()
	if _, err := mcp.New(mcp.Options{URL: api.URL, Token: "secret"}).Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session, func() asked { return <-requests }
}

// call calls a tool and returns its text.
func call(t *testing.T, session *sdk.ClientSession, tool string, arguments any) (text string, failed bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	return result.Content[0].(*sdk.TextContent).Text, result.IsError
}

func TestToolsBecomeRequests(t *testing.T) {
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      asked
	}{
		{"why_task", map[string]any{"id": "a/b"}, asked{"GET", "/api/v1/jobs/a%2Fb/why", "Bearer secret", "", ""}},
		{"list_jobs", map[string]any{"type": "ERROR", "limit": 3}, asked{"GET", "/api/v1/jobs?limit=3&type=ERROR", "Bearer secret", "", ""}},
		{"read_journal", map[string]any{"return": "TaskEnded,OrderEvent", "limit": -5},
			asked{"GET", "/jobscheduler/master/api/event?return=TaskEnded%2COrderEvent&limit=-5&with=cause", "Bearer secret", "", ""}},
		{"list_orders", map[string]any{"at": 7}, asked{"GET", "/jobscheduler/master/api/order/?at=7&return=OrderOverview", "Bearer secret", "", ""}},
		{"queue_suspend", map[string]any{"name": "mails"}, asked{"POST", "/api/v1/queues/mails/suspend", "Bearer secret", "", ""}},
		{"job_add", map[string]any{"topic": "a", "properties": map[string]any{"n": 1}}, asked{"POST", "/api/v1/jobs", "Bearer secret", "", `{"properties":{"n":1},"topic":"a"}`}},
		{"order_add", map[string]any{"chain": "/c", "id": "7"}, asked{"POST", "/api/v1/orders/%2Fc", "Bearer secret", "", `{"id":"7"}`}},
		{"task_enqueue", map[string]any{"source": "a&b", "collection": "c"}, asked{"POST", "/api/v1/tasks?source=a%26b&collection=c", "Bearer secret", "", ""}},
		{"stream_replay", map[string]any{"stream": "s", "consumer": "u", "eventName": "e", "offset": 0},
			asked{"POST", "/api/v1/streams/s/offsets", "Bearer secret", "u", `{"eventName":"e","offset":0}`}},
		{"event_emit", map[string]any{"events": []any{map[string]any{"TYPE": "T"}}}, asked{"POST", "/jobscheduler/master/api/event", "Bearer secret", "", `[{"TYPE":"T"}]`}},
		{"jobs_retry_all", map[string]any{"topic": "a", "dry_run": false}, asked{"POST", "/api/v1/jobs:act", "Bearer secret", "", `{"act":"retry","dry_run":false,"filter":{"topic":"a"}}`}},
		{"jobs_retry_all", map[string]any{"message": "no N", "limit": 9, "per_second": 2, "dry_run": true},
			asked{"POST", "/api/v1/jobs:act", "Bearer secret", "", `{"act":"retry","dry_run":true,"filter":{"message":"no N"},"limit":9,"per_second":2}`}},
		{"order_remove", map[string]any{"chain": "/c", "id": "7"}, asked{"DELETE", "/api/v1/orders/%2Fc/7", "Bearer secret", "", ""}},
	} {
		session, next := connect(t, http.StatusOK, `{"ok":true}`)
		text, failed := call(t, session, c.tool, c.arguments)
		if text != `{"ok":true}` || failed {
			t.Fatalf("%s: %q, failed %v", c.tool, text, failed)
		}
		got := next()
		if members := [2]map[string]any{}; json.Unmarshal([]byte(got.body), &members[0]) == nil && json.Unmarshal([]byte(c.want.body), &members[1]) == nil {
			again, _ := json.Marshal(members[0]) // in the order of names
			got.body = string(again)
		}
		if got != c.want {
			t.Errorf("%s asks\n%q, want\n%q", c.tool, got, c.want)
		}
	}
}

// TestWhatCannotBeDone: what the API refuses is told in its words, and what a tool cannot be told is refused without a request.
func TestWhatCannotBeDone(t *testing.T) {
	session, next := connect(t, http.StatusForbidden, `{"detail":"the role viewer may not"}`)
	if text, failed := call(t, session, "queue_purge", map[string]any{"name": "q"}); !failed || !strings.Contains(text, "the role viewer may not") {
		t.Errorf("a refusal is %q, failed %v", text, failed)
	}
	next()
	for want, arguments := range map[string]map[string]any{
		"name: want a value":  {},
		"nome: want nothing":  {"name": "q", "nome": "q"},
		"name: want a value:": {"name2": 1},
	} {
		if text, failed := call(t, session, "queue_purge", arguments); !failed || !strings.Contains(text, want) {
			t.Errorf("%v: %q, failed %v, want %q", arguments, text, failed, want)
		}
	}
}

// TestEveryActIsATool: each act of the table has a tool, which says whether it only reads.
func TestEveryActIsATool(t *testing.T) {
	session, _ := connect(t, http.StatusOK, "")
	reading := map[string]bool{}
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		reading[tool.Name] = tool.Annotations.ReadOnlyHint
	}
	for _, a := range act.All {
		if reads, is := reading[mcp.Name(a.Name)]; !is || reads {
			t.Errorf("the act %s: tool %v, only reads %v", a.Name, is, reads)
		}
	}
	for _, m := range act.AllMany {
		if reads, is := reading[mcp.Name(m.Name)+"_all"]; !is || reads {
			t.Errorf("the act %s: tool %v, only reads %v", m.Name, is, reads)
		}
	}
	if !reading["why_task"] || !reading["read_journal"] {
		t.Errorf("tools that read: %v", reading)
	}
}
