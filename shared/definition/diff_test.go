package definition_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/definition"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	before := read(t, `
sources: {crm: {collections: [{name: a}]}, gone: {collections: []}}
handlers: [{canvas: c, space: s, name: n}]
jobs: [{path: /topics/a}, {path: /b}]
queues: [{name: q}]
job_chains: [{path: /x/y, nodes: [{id: end}]}]
`)
	after := read(t, `
sources: {crm: {collections: [{name: a}, {name: b}]}, new: {collections: []}}
handlers: [{canvas: c, space: s, name: n, attempts: 4}]
jobs: [{path: /b}, {path: /topics/a}]
queues: [{name: q, retries: 3}]
schedules: [{name: s, cron: "@daily", job: /b}]
`)
	want := definition.Changes{
		Added:    []string{"Schedule:/s", "Source:/new"},
		Replaced: []string{"Handler:/c/s/n", "Queue:/q", "Source:/crm"},
		Removed:  []string{"JobChain:/x/y", "Source:/gone"},
	}
	if diff := cmp.Diff(want, definition.Diff(before, after)); diff != "" {
		t.Errorf("Diff() (-want +got):\n%s", diff)
	}
	if got := definition.Diff(before, before); !got.Empty() {
		t.Errorf("Diff(same) = %+v, want nothing", got)
	}
}

// sets draws valid sets.
func sets() *rapid.Generator[*definition.Set] {
	names := rapid.StringMatching(`[a-d]`)
	return rapid.Custom(func(t *rapid.T) *definition.Set {
		s := new(definition.Set)
		for _, name := range rapid.SliceOfNDistinct(names, 0, 3, rapid.ID).Draw(t, "jobs") {
			s.Jobs = append(s.Jobs, definition.Job{Path: "/" + name, Attempts: rapid.IntRange(1, 3).Draw(t, "attempts")})
		}
		for _, name := range rapid.SliceOfNDistinct(names, 0, 3, rapid.ID).Draw(t, "queues") {
			s.Queues = append(s.Queues, definition.Queue{Name: name, KeepJobs: rapid.Bool().Draw(t, "keep")})
		}
		for _, name := range rapid.SliceOfNDistinct(names, 0, 3, rapid.ID).Draw(t, "chains") {
			s.JobChains = append(s.JobChains, definition.JobChain{Path: "/" + name, Nodes: []definition.Node{{ID: "end"}}})
		}
		if rapid.Bool().Draw(t, "crm") {
			s.Sources = map[string]definition.Source{"crm": {Collections: []definition.Collection{{Name: names.Draw(t, "c")}}}}
		}
		return s
	})
}

// keys returns the keys of all objects of a set.
func keys(s *definition.Set) map[string]bool {
	all := map[string]bool{}
	for _, key := range definition.Diff(new(definition.Set), s).Added {
		all[key] = true
	}
	return all
}

func TestDiffLeadsFromOneToTheOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := sets().Draw(t, "a"), sets().Draw(t, "b")
		d, got := definition.Diff(a, b), keys(a)
		for _, key := range d.Removed {
			if !got[key] {
				t.Errorf("removed %s, which was not there", key)
			}
			delete(got, key)
		}
		for _, key := range d.Replaced {
			if !got[key] {
				t.Errorf("replaced %s, which was not there", key)
			}
		}
		for _, key := range d.Added {
			if got[key] {
				t.Errorf("added %s, which was there", key)
			}
			got[key] = true
		}
		if diff := cmp.Diff(keys(b), got); diff != "" {
			t.Errorf("Diff() does not lead to the other set (-want +got):\n%s", diff)
		}
		if back := definition.Diff(b, a); fmt.Sprint(back.Added, back.Replaced, back.Removed) != fmt.Sprint(d.Removed, d.Replaced, d.Added) {
			t.Errorf("the way back is %+v, the way there %+v", back, d)
		}
	})
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	before := read(t, "jobs: [{path: /a, attempts: 2, timeout: 90}, {path: /same}]\nqueues: [{name: gone}]")
	after := read(t, "jobs: [{path: /same}, {path: /a, target: {go: f}, timeout: 2m}]\nqueues: [{name: new}]")
	want := map[string][]definition.Difference{"Job:/a": {
		{Name: "attempts", Before: "2"}, {Name: "target", After: `{"go":"f"}`}, {Name: "timeout", Before: `"1m30s"`, After: `"2m"`},
	}}
	if diff := cmp.Diff(want, definition.Differences(before, after)); diff != "" {
		t.Errorf("Differences() (-want +got):\n%s", diff)
	}
}
