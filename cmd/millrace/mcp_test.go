package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace/shared/mcp"
)

// TestToolsReachTheAPI: each tool's request is one that the API has, with what it demands; and a tool that acts has acted.
func TestToolsReachTheAPI(t *testing.T) {
	server := httptest.NewServer(whole(t).handler)
	t.Cleanup(server.Close)
	there, here := sdk.NewInMemoryTransports()
	if _, err := mcp.New(mcp.Options{URL: server.URL, Token: "secret"}).Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	call := func(tool string, arguments map[string]any) string {
		t.Helper()
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		return result.Content[0].(*sdk.TextContent).Text
	}
	for tool, err := range session.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		schema, _ := tool.InputSchema.(map[string]any)
		required, _ := schema["required"].([]any)
		arguments := map[string]any{}
		for _, name := range required {
			arguments[name.(string)] = map[string]any{"return": "Event", "dry_run": true, "expr": "@daily", "eventId": 7, "events": "x", "definitions": "jobs: 7", "offset": 7}[name.(string)]
			if arguments[name.(string)] == nil {
				arguments[name.(string)] = "x"
			}
		}
		if tool.Name == "read_journal" {
			arguments["limit"] = -3
		}
		text := call(tool.Name, arguments)
		for _, wrong := range []string{"there is nothing at this path", "is not offered here", "unknown", "unsupported"} {
			if strings.Contains(text, wrong) && !strings.Contains(text, "unknown source") {
				t.Errorf("%s %v: %s", tool.Name, arguments, text)
			}
		}
	}
	call("job_add", map[string]any{"topic": "by/tool", "properties": map[string]any{"n": 1}})
	if listed := call("list_jobs", map[string]any{"topic": "by/tool"}); !strings.Contains(listed, `"n":1`) {
		t.Errorf("the job that was added is not listed: %s", listed)
	}
	if said := call("queue_suspend", map[string]any{"name": "main"}); said != "done" {
		t.Errorf("suspending: %s", said)
	}
	if queues := call("list_queues", nil); !strings.Contains(queues, `"suspended":true`) {
		t.Errorf("the queue is not suspended: %s", queues)
	}
}
