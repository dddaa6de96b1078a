package definition_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
)

// chains is a set in which /outer goes through /inner twice, once in a branch.
func chains() *definition.Set {
	return &definition.Set{JobChains: []definition.JobChain{
		{Path: "/inner", MaxOrders: 3, Nodes: []definition.Node{
			{ID: "1", Job: "/j", Error: "failed", On: map[string]string{"7..9": "failed", "3": "2"}},
			{ID: "2", Job: "/j"},
			{ID: "done"},
			{ID: "failed"},
		}},
		{Path: "/outer", MaxOrders: 10, Timeout: time.Hour, Nodes: []definition.Node{
			{ID: "a", Job: "/j", OnError: definition.ErrorSetsBack, Delay: time.Second},
			{ID: "n", Chain: "/inner", Error: "sorry"},
			{ID: "f", Fork: &definition.Fork{OnFailed: "cancel", Branches: map[string][]definition.Node{
				"y": {{Job: "/j"}, {ID: "own", Chain: "/inner"}},
				"x": {{Job: "/j", Error: "bad"}, {ID: "good"}, {ID: "bad"}},
			}}, Join: &definition.Join{AtLeast: 1}},
			{ID: "e", Fork: &definition.Fork{Each: "files", Job: "/each"}},
			{ID: "p", Prompt: &definition.Prompt{Default: "n", Answers: map[string]string{"yes": "n", "no": "sorry"}}},
			{ID: "w", Wait: &definition.Wait{For: time.Hour}, Action: definition.ActionStop},
			{ID: "end"},
			{ID: "sorry"},
		}},
	}}
}

func TestGraph(t *testing.T) {
	g, err := chains().Graph("/outer")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, n := range g.Nodes {
		line := fmt.Sprintf("%s %s next=%s error=%s", n.ID, n.Kind, n.Next, n.Error)
		for _, r := range n.On {
			line += fmt.Sprintf(" %d..%d=%s", r.From, r.To, r.Next)
		}
		if n.ChildOf != "" {
			line += " in " + n.ChildOf
		}
		if n.Failed {
			line += " failed"
		}
		lines = append(lines, line)
	}
	want := []string{
		"a job next=n/1 error=",
		"n/1 job next=n/2 error=sorry 3..3=n/2 7..9=sorry",
		"n/2 job next=f error=",
		"f fork next=e error=",
		"f/x/1 job next=good error=bad in f",
		"good end next= error= in f",
		"bad end next= error= in f failed",
		"f/y/1 job next=own/1 error= in f",
		"own/1 job next=own/2 error=own/failed 3..3=own/2 7..9=own/failed in f",
		"own/2 job next=own/done error= in f",
		"own/done end next= error= in f",
		"own/failed end next= error= in f failed",
		"e fork next=p error=",
		"e/each job next= error= in e",
		"p prompt next=w error=",
		"w wait next=end error=",
		"end end next= error=",
		"sorry end next= error= failed",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if g.First() != "a" || g.MaxOrders != 10 || g.Timeout != time.Hour || g.MaxVisits != definition.DefaultMaxVisits {
		t.Errorf("first %s, %d orders, %v, %d visits", g.First(), g.MaxOrders, g.Timeout, g.MaxVisits)
	}
}

func TestGraphNode(t *testing.T) {
	g, err := chains().Graph("/outer")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"a": "a", "n/2": "n/2", "n": "n/1", "own": "own/1", "e/each": "e/each", "n/done": "", "": "", "b": ""} {
		node, ok := g.Node(id)
		if ok != (want != "") || ok && node.ID != want {
			t.Errorf("Node(%q) = %v, %v, want %q", id, node, ok, want)
		}
	}
	node, _ := g.Node("n/1")
	for code, want := range map[int]string{7: "sorry", 9: "sorry", 3: "n/2", 0: "none", 6: "none", 10: "none"} {
		next, ok := node.OnCode(code)
		if !ok {
			next = "none"
		}
		if next != want {
			t.Errorf("OnCode(%d) = %q, want %q", code, next, want)
		}
	}
	fork, _ := g.Node("f")
	if f := fork.Fork; len(f.Branches) != 2 || f.Branches[0].Node != "f/x/1" || f.Branches[1].Name != "y" || f.AtLeast != 1 || !f.Cancel {
		t.Errorf("fork f = %+v", f)
	}
	if prompt, _ := g.Node("p"); prompt.Prompt.Default != "n/1" || prompt.Prompt.Answers["yes"] != "n/1" {
		t.Errorf("prompt p = %+v", prompt.Prompt)
	}
}

func TestGraphOfUnsoundSets(t *testing.T) {
	set := chains()
	if _, err := set.Graph("/none"); !errors.Is(err, definition.ErrNoChain) {
		t.Errorf("Graph(/none): %v", err)
	}
	for name, nodes := range map[string][]definition.Node{
		"through itself": {{ID: "a", Chain: "/c"}},
		"unknown":        {{ID: "a", Chain: "/none"}},
		"empty for ever": {{ID: "a", Chain: "/empty", Next: "a"}},
	} {
		set := &definition.Set{JobChains: []definition.JobChain{{Path: "/c", Nodes: nodes}, {Path: "/empty", Nodes: []definition.Node{{ID: "1"}}}}}
		if g, err := set.Graph("/c"); err == nil {
			t.Errorf("%s: %v", name, g)
		}
	}
}

func TestGraphAsJSON(t *testing.T) {
	g, err := chains().Graph("/outer")
	if err != nil {
		t.Fatal(err)
	}
	again, err := definition.ReadGraph(g.JSON())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.JSON(), g.JSON()) || again.Hash() != g.Hash() {
		t.Errorf("got  %s\nwant %s", again.JSON(), g.JSON())
	}
	if node, ok := again.Node("n"); !ok || node.ID != "n/1" {
		t.Errorf("Node(n) = %v, %v", node, ok)
	}
	other := chains()
	other.JobChains[0].Nodes[1].Timeout = time.Second
	if g2, err := other.Graph("/outer"); err != nil || g2.Hash() == g.Hash() {
		t.Errorf("the hash of another graph is %s, too (%v)", g.Hash(), err)
	}
	for _, bad := range []string{``, `{}`, `{"format":2,"nodes":[{"id":"a"}]}`, `{"format":1,"nodes":[]}`} {
		if _, err := definition.ReadGraph([]byte(bad)); err == nil {
			t.Errorf("ReadGraph(%s) returned no error", bad)
		}
	}
}

func TestSetback(t *testing.T) {
	job := definition.Job{Setbacks: []definition.Setback{
		{Count: 2, Delay: time.Minute}, {Count: 4, Delay: time.Hour, IsMaximum: true},
	}}
	for n, want := range map[int]time.Duration{1: 0, 2: time.Minute, 3: time.Minute, 4: time.Hour} {
		if delay, ok := job.Setback(n); delay != want || !ok {
			t.Errorf("Setback(%d) = %v, %v, want %v", n, delay, ok, want)
		}
	}
	if delay, ok := job.Setback(5); ok {
		t.Errorf("Setback(5) = %v, want none", delay)
	}
	if delay, ok := (definition.Job{}).Setback(100); delay != 0 || !ok {
		t.Errorf("a job without delays: %v, %v", delay, ok)
	}
}

// checkGraphs checks that each chain of a set that was read has a graph, and that its nodes name each other rightly.
func checkGraphs(t *testing.T, set *definition.Set) {
	t.Helper()
	for i := range set.JobChains {
		g, err := set.Graph(set.JobChains[i].Path)
		if err != nil {
			t.Errorf("Graph(%s) = %v", set.JobChains[i].Path, err)
			continue
		}
		ids := map[string]bool{"": true}
		for _, n := range g.Nodes {
			if ids[n.ID] {
				t.Errorf("%s has the node %q twice", g.Chain, n.ID)
			}
			ids[n.ID] = true
		}
		for _, n := range g.Nodes {
			for _, id := range append(named(&n), n.ChildOf) {
				if !ids[id] {
					t.Errorf("node %s of %s names %q, which is not there", n.ID, g.Chain, id)
				}
			}
		}
		if again, err := definition.ReadGraph(g.JSON()); err != nil || again.Hash() != g.Hash() {
			t.Errorf("%s does not read its own JSON: %v", g.Chain, err)
		}
	}
}

// named returns the ids of other nodes that a node names.
func named(n *definition.GraphNode) []string {
	ids := []string{n.Next, n.Error}
	for _, r := range n.On {
		ids = append(ids, r.Next)
	}
	if n.Prompt != nil {
		ids = append(ids, n.Prompt.Default)
		for _, to := range n.Prompt.Answers {
			ids = append(ids, to)
		}
	}
	if n.Fork != nil {
		ids = append(ids, n.Fork.Node)
		for _, b := range n.Fork.Branches {
			ids = append(ids, b.Node)
		}
	}
	return ids
}
