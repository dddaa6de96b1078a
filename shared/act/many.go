package act

import (
	"encoding/json"
	"net/url"
)

// Many is an act on all that a filter selects. It is counted before it is begun, and goes on by itself afterwards.
type Many struct {
	Name    string   // as "jobs.retry"
	Label   string   // of its button
	Says    string   // what will happen to each
	Path    string   // of the request
	Kind    string   // the act, as the API names it
	Filter  []string // names of the filter
	Command string   // of the command line
}

// What acts on many select by.
var (
	ofJobs   = []string{"state", "topic", "message"}
	ofOrders = []string{"path", "state", "node", "obstacle"}
)

// AllMany are all acts on many.
var AllMany = []Many{
	{"jobs.retry", "Run all again", "For each a new job like it is added; they themselves stay in the history.", "/api/v1/jobs:act", "retry", ofJobs, "job act"},
	{"jobs.stop", "Stop all", "Each is asked to stop; one that has not started never does.", "/api/v1/jobs:act", "stop", ofJobs, "job act"},
	{"jobs.remove", "Remove all", "Each goes to the history as dropped, even if it runs; one of the history is gone for good.", "/api/v1/jobs:act", "remove", ofJobs, "job act"},
	{"orders.suspend", "Suspend all", "Each stays where it is, once its running step has ended.", "/api/v1/orders:act", "suspend", ofOrders, "order act"},
	{"orders.resume", "Resume all", "Each that is suspended goes on from its node.", "/api/v1/orders:act", "resume", ofOrders, "order act"},
	{"orders.reset", "Reset all", "Each goes back to its first node, resumed.", "/api/v1/orders:act", "reset", ofOrders, "order act"},
	{"orders.skip", "Skip all nodes", "Each passes its node as if that had succeeded.", "/api/v1/orders:act", "skip", ofOrders, "order act"},
	{"orders.run-now", "Run all now", "Each waits for no time any more.", "/api/v1/orders:act", "run-now", ofOrders, "order act"},
	{"orders.remove", "Remove all", "Each is removed, once its running step has ended.", "/api/v1/orders:act", "remove", ofOrders, "order act"},
}

// Portion are the members that say how much of what is selected an act on many is done with, and how fast.
var Portion = []Field{{Name: "limit", Kind: Number}, {Name: "per_second", Kind: Number}}

// ManyNamed returns the act on many of that name, nil if there is none.
func ManyNamed(name string) *Many {
	for i := range AllMany {
		if AllMany[i].Name == name {
			return &AllMany[i]
		}
	}
	return nil
}

// Request returns what to send to the API: to do it to what the values select, or only to count that.
func (m *Many) Request(values url.Values, count bool) Request {
	filter := map[string]string{}
	for _, name := range m.Filter {
		if value := values.Get(name); value != "" {
			filter[name] = value
		}
	}
	members := map[string]any{"act": m.Kind, "filter": filter, "dry_run": count}
	for _, f := range Portion {
		if value := values.Get(f.Name); json.Valid([]byte(value)) {
			members[f.Name] = json.RawMessage(value)
		} else if value != "" {
			members[f.Name] = value // the API says what it should be
		}
	}
	body, _ := json.Marshal(members) // texts and valid JSON always can
	return Request{Method: "POST", Target: m.Path, Body: string(body)}
}
