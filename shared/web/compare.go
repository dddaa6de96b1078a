package web

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// comparison is what a page says of two moments: one of the past, and a later or earlier one.
type comparison struct {
	At, With string // EventIds; With "": now
	Tasks    []contrast
	Orders   []contrast
	Files    []contrast
	Alike    int // how many others are as they were
}

// contrast is something that was otherwise at one moment than at the other. Its texts are "" where it was not there.
type contrast struct{ Name, Then, Now string }

// readCompare reads what was there at two moments: unfinished tasks by job, orders by chain, and what was declared.
func readCompare(r *reading) {
	c := &comparison{At: r.query("at"), With: r.query("with")}
	r.Data["comparison"] = c
	if c.At == "" {
		return
	}
	r.get("moment", journalAPI+"/jobChain/"+asOf("JobChainOverview", c.With)) // the API says of a moment that is none, or not kept
	c.Tasks = c.contrasts(counts(r.tasksAt(c.At)), counts(r.tasksAt(c.With)))
	c.Orders = c.contrasts(counts(r.ordersAt(c.At)), counts(r.ordersAt(c.With)))
	c.Files = c.contrasts(r.filesAt(c.At), r.filesAt(c.With))
}

// contrasts returns what differs, by name.
func (c *comparison) contrasts(then, now map[string]string) (all []contrast) {
	every := maps.Clone(then)
	maps.Copy(every, now)
	for _, name := range slices.Sorted(maps.Keys(every)) {
		if then[name] == now[name] {
			c.Alike++
			continue
		}
		all = append(all, contrast{name, then[name], now[name]})
	}
	return all
}

// counts returns what a tally says in one line, by its name.
func counts(all []*tally) map[string]string {
	said := make(map[string]string, len(all))
	for _, t := range all {
		var states []string
		for _, state := range slices.Sorted(maps.Keys(t.States)) {
			states = append(states, fmt.Sprintf("%s %d", state, t.States[state]))
		}
		said[t.Name] = fmt.Sprintf("%d: %s", t.Count, strings.Join(states, ", "))
	}
	return said
}

// filesAt returns what was declared at a moment: "declared" by its key.
func (r *reading) filesAt(at string) map[string]string {
	all := make(map[string]string)
	if r.err != nil {
		return all
	}
	_, r.err = r.d.first(r.r.Context(), journalAPI+"/fileBased/"+asOf("FileBasedOverview", at), func(value jsontext.Value) bool {
		var file struct {
			Key  string `json:"key"`
			Path string `json:"path"`
		}
		_ = json.Unmarshal(value, &file) // it was read as JSON
		all[file.Key+file.Path] = "declared"
		return true
	})
	return all
}

// asOf returns the query of an overview as of a moment; "": now.
func asOf(overview, at string) string {
	query := url.Values{"return": {overview}}
	if at != "" {
		query.Set("at", at)
	}
	return "?" + query.Encode()
}
