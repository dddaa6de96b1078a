package api_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
)

// scene has orders, chains and definitions in several folders.
func scene(t *testing.T) *orderBundle {
	t.Helper()
	defined := func(key string) event.Event {
		return event.Event{Type: "FileBasedActivated", Key: event.Key{Path: key}}
	}
	return withOrders(t,
		defined("JobChain:/a/x"), defined("JobChain:/a/b/y"), defined("JobChain:/top"), defined("Job:/a/job"), defined("Job:/job"),
		typed.OrderEvent(event.JobChainStateChanged, "/top", typed.JobChainStateChanged{State: "stopped"}),
		typed.JobStateChanged{State: "pause"}.Event("/a/job"), typed.JobStateChanged{State: "run"}.Event("/job"),
		added("/a/x,117"), added("/a/x,11"), added("/a/x,1"), added("/a/b/y,/in/file.csv"), added("/a/xx,1"), added("/top,1"),
		typed.OrderEvent(event.OrderSuspended, "/top,1", typed.OrderSuspended{}),
	)
}

// A snapshot is had of one object, of what is below a folder or directly in it, and of a list, by GET and by POST alike. Of orders the
// chain's path counts, but for exactly one order.
func TestOverviewsByPath(t *testing.T) {
	t.Parallel()
	b := scene(t)
	type row struct {
		path string // as in the GET; a | separates those of a list
		want string
	}
	for name, rows := range map[string][]row{
		"order": {
			{"/", "/a/b/y,/in/file.csv /a/x,1 /a/x,11 /a/x,117 /a/xx,1 /top,1"},
			{"/a/", "/a/b/y,/in/file.csv /a/x,1 /a/x,11 /a/x,117 /a/xx,1"},
			{"/a/*", "/a/x,1 /a/x,11 /a/x,117 /a/xx,1"},
			{"/*", "/top,1"},
			{"/a/x", "/a/x,1 /a/x,11 /a/x,117"},
			{"/a/x,11", "/a/x,11"},
			{"/a/b/y,/in/file.csv", "/a/b/y,/in/file.csv"},
			{"/a/x,11|/top|/a/b/", "/a/b/y,/in/file.csv /a/x,11 /top,1"},
			{"/a/x|/a/x,11", "/a/x,1 /a/x,11 /a/x,117"},
			{"/a", ""},
			{"/a/x,", ""},
			{"/none/", ""},
		},
		"jobChain": {
			{"/", "/a/b/y /a/x /top"}, {"/a/", "/a/b/y /a/x"}, {"/a/*", "/a/x"}, {"/*", "/top"}, {"/a/x", "/a/x"}, {"/top|/a/b/", "/a/b/y /top"}, {"/a", ""},
		},
		"job": {{"/", "/a/job /job"}, {"/a/", "/a/job"}, {"/job", "/job"}, {"/job|/a/*", "/a/job /job"}},
		"fileBased": {
			{"/", "Job:/a/job Job:/job JobChain:/a/b/y JobChain:/a/x JobChain:/top"}, {"/a/", "Job:/a/job JobChain:/a/b/y JobChain:/a/x"},
			{"/a/*", "Job:/a/job JobChain:/a/x"}, {"/a/x", "JobChain:/a/x"}, {"/top|/job", "Job:/job JobChain:/top"},
		},
	} {
		overview := strings.ToUpper(name[:1]) + name[1:] + "Overview"
		for _, r := range rows {
			paths := strings.Split(r.path, "|")
			body, err := json.Marshal(map[string]any{"paths": paths})
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range []reply{
				b.as(t, access.Viewer, "GET", base+"/"+name+"/"+strings.ReplaceAll(r.path[1:], "/", "%2F")+"?return="+overview, ""),
				b.as(t, access.Viewer, "POST", base+"/"+name+"?return="+overview, string(body)),
			} {
				if diff := cmp.Diff(r.want, strings.Join(pathsIn(t, got, name+"s"), " ")); diff != "" {
					t.Errorf("%s of %s (-want +got):\n%s", r.path, name, diff)
				}
			}
		}
	}
}

// pathsIn returns the paths of a snapshot's elements.
func pathsIn(t *testing.T, got reply, plural string) (paths []string) {
	t.Helper()
	for _, element := range elementsIn(t, got, plural) {
		paths = append(paths, element["path"].(string))
	}
	return paths
}

func elementsIn(t *testing.T, got reply, plural string) (elements []map[string]any) {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(got.body), &all); err != nil || len(all) != 2 || all["eventId"] == nil {
		t.Fatalf("%d %s: %v", got.StatusCode, got.body, err)
	}
	if err := json.Unmarshal(all[plural], &elements); err != nil {
		t.Fatal(err)
	}
	return elements
}

// The description has the members that overviews and statistics have.
func TestOverviewsAreAsDescribed(t *testing.T) {
	t.Parallel()
	b := scene(t)
	later := event.Time{Time: time.Now().Add(time.Hour)}
	b.happen(t, started("/a/x,1"), typed.OrderEvent(event.OrderSetBack, "/a/x,1", typed.OrderSetBack{NodeID: "A", Until: later, Count: 1}),
		started("/a/x,11"), stepStarted("/a/x,11", "9"),
		typed.OrderEvent(event.JobChainNodeActionChanged, "/a/x", typed.JobChainNodeActionChanged{NodeID: "A", Action: "stop"}))
	doc, _ := description(t, &b.bundle)
	orders := elementsIn(t, b.as(t, access.Viewer, "GET", base+"/order/?return=OrderOverview", ""), "orders")
	chains := elementsIn(t, b.as(t, access.Viewer, "GET", base+"/jobChain/?return=JobChainOverview", ""), "jobChains")
	statistics := seqIn(t, b.as(t, access.Viewer, "GET", eventPath+"?return=OrderStatisticsChanged", "")).EventSnapshots
	for name, elements := range map[string][]map[string]any{"OrderOverview": orders, "JobChainOverview": chains, "StatisticsEvent": statistics} {
		for _, element := range elements {
			asDescribed(t, doc, name, doc.Components.Schemas[name], element)
		}
	}
}

// asDescribed checks the members of objects at any depth, and values of enumerations.
func asDescribed(t *testing.T, doc document, at string, described, value any) {
	t.Helper()
	s := described.(map[string]any)
	if to, is := s["$ref"].(string); is {
		s = doc.Components.Schemas[strings.TrimPrefix(to, "#/components/schemas/")].(map[string]any)
	}
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			asDescribed(t, doc, at, s["items"], element)
		}
	case map[string]any:
		properties, closed := s["properties"].(map[string]any)
		if !closed {
			return
		}
		for name, member := range value {
			if properties[name] == nil {
				t.Errorf("%s.%s is not described", at, name)
				continue
			}
			asDescribed(t, doc, at+"."+name, properties[name], member)
		}
		for _, name := range s["required"].([]any) {
			if _, there := value[name.(string)]; !there {
				t.Errorf("%s has no %s, but %v", at, name, slices.Sorted(maps.Keys(value)))
			}
		}
	default:
		if words, is := s["enum"].([]any); is && !slices.Contains(words, value) {
			t.Errorf("%s is %v, want one of %v", at, value, words)
		}
	}
}

// Events of exactly one order have no key; those of its chain have.
func TestEventsOfOneOrder(t *testing.T) {
	t.Parallel()
	b := scene(t)
	for path, want := range map[string][]any{
		"/a/x,11":         {nil},
		"/a/x":            {"/a/x,117", "/a/x,11", "/a/x,1"},
		"/a/x,11|/a/x,11": {"/a/x,11"},
		"/top":            {"/top,1", "/top,1"},
	} {
		got := seqIn(t, b.as(t, access.Viewer, "GET", base+"/order"+path+"?return=Event&after=0", ""))
		var keys []any
		for _, e := range got.EventSnapshots {
			keys = append(keys, e["key"])
		}
		if diff := cmp.Diff(want, keys); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}
