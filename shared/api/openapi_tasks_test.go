package api_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/definition"
)

func TestOpenAPIOfTasks(t *testing.T) {
	t.Parallel()
	w := working(t)
	doc, _ := description(t, &w.bundle)
	const handler = "/api/v1/canvases/{canvas}/handlers/{space}/{name}"
	want := []string{
		"/api/v1/tasks", "/api/v1/tasks:batch", "/tasks:batch", "/api/v1/tasks/{id}", "/api/v1/tasks/{id}/cancel", "/api/v1/tasks/{id}/logs",
		"/tasks", "/tasks/{id}", "/tasks/{id}/cancel", "/tasks/{id}/logs", "/api/v1/jobs/{id}/why", "/api/v1/jobs/{id}/retry",
		handler + "/events", handler + "/events:batch", handler + "/rules/pause", handler + "/rules/block",
		"/api/v1/canvases/{canvas}/events/{id}", "/api/v1/canvases/{canvas}/handlers",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(doc.Paths))); diff != "" {
		t.Error(diff)
	}
	for path, item := range doc.Paths {
		for method, op := range item {
			for _, p := range op.Parameters {
				if p.In == "path" && p.Name != "id" && p.Schema.MaxLength != definition.MaxName {
					t.Errorf("%s %s: %s has up to %d characters, want %d", method, path, p.Name, p.Schema.MaxLength, definition.MaxName)
				}
			}
		}
	}
}

// Responses have the members that their schemas name, and no others.
func TestOpenAPIOfTasksHolds(t *testing.T) {
	t.Parallel()
	w := working(t)
	doc, _ := description(t, &w.bundle)
	id, lease := w.logged(t, 1)
	w.finish(t, lease, "failed")
	event := w.emit(t, "mail", `{"value":1}`).ID
	w.claim(t)
	for schema, answer := range map[string]string{
		"SyncTask":     w.as(t, access.Viewer, "GET", "/tasks/"+id, "").body,
		"Why":          w.as(t, access.Viewer, "GET", "/api/v1/jobs/"+id+"/why", "").body,
		"Job":          w.as(t, access.Operator, "POST", "/api/v1/jobs/"+id+"/retry", "").body,
		"HandlerEvent": w.as(t, access.Viewer, "GET", shop+"/events/"+event, "").body,
		"AddedTask":    element(w.as(t, access.Producer, "POST", "/tasks:batch", `[{"source":"shop","collection":"c"}]`).body),
		"EventAdded":   w.as(t, access.Producer, "POST", handlerOf("mail")+"/events", `{"value":1}`).body,
		"Handler":      element(w.as(t, access.Viewer, "GET", shop+"/handlers?limit=1", "").body),
		"LogLine":      element(w.as(t, access.Viewer, "GET", "/tasks/"+id+"/logs", "").body),
	} {
		described := doc.Components.Schemas[schema].(map[string]any)
		var members map[string]any
		if err := json.Unmarshal([]byte(answer), &members); err != nil {
			t.Fatalf("%s: %s: %v", schema, answer, err)
		}
		properties := described["properties"].(map[string]any)
		for name := range members {
			if properties[name] == nil {
				t.Errorf("%s: %s is not described", schema, name)
			}
		}
		for _, name := range described["required"].([]any) {
			if _, there := members[name.(string)]; !there {
				t.Errorf("%s: %s is required and not there", schema, name)
			}
		}
	}
}

// element returns the first of a list of one.
func element(body string) string {
	return body[strings.Index(body, "[")+1 : strings.LastIndex(body, "]")]
}
