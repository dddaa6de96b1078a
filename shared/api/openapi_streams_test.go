package api_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
)

func TestOpenAPIOfStreams(t *testing.T) {
	t.Parallel()
	doc, _ := description(t, streaming(t))
	const one = "/api/v1/streams/{stream}"
	want := []string{
		"/api/v1/consumers", "/api/v1/events/{id}", "/api/v1/streams", one, one + "/events", one + "/events/{id}", one + "/events:batch", one + "/offsets",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(doc.Paths))); diff != "" {
		t.Error(diff)
	}
	for path, item := range doc.Paths {
		for method, op := range item {
			for _, header := range []string{"X-Producer-ID", "X-Consumer-ID"} {
				has := slices.ContainsFunc(op.Parameters, func(p parameter) bool { return p.Name == header && p.In == "header" && p.Required })
				demanded := header == "X-Producer-ID" && method == "post" && strings.Contains(path, "/events") && !strings.Contains(path, "{id}") ||
					header == "X-Consumer-ID" && (method == "post" && (strings.Contains(path, "{id}") || strings.HasSuffix(path, "/offsets")) ||
						method == "get" && strings.HasSuffix(path, "{stream}/events"))
				if has != demanded {
					t.Errorf("%s %s: %s is described: %v", method, path, header, has)
				}
			}
		}
	}
	if version := below(doc.Components.Schemas["StreamEvent"], "properties", "event", "properties", "version"); version["maximum"] != float64(event.MaxID) {
		t.Errorf("the version of an event is described as %v", version)
	}
}

// below returns what objects have at members, one in the other.
func below(value any, names ...string) map[string]any {
	found, _ := value.(map[string]any)
	for _, name := range names {
		found, _ = found[name].(map[string]any)
	}
	return found
}
