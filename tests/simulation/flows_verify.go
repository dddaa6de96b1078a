package simulation

import (
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/order"
)

// verify compares what each call returned, and what orders did, with what the journal has.
func (r *flowRun) verify() {
	all := r.events()
	r.verifyAsked(all)
	r.verifyViews(all)
	r.verifyParts(all)
	r.verifyFlows(all)
	r.verifyActs(all)
	r.happened["events"] = len(all)
}

// flow is an order by its events: whether it waits for its children or a person, and what follows.
type flow struct {
	*flowRun
	path  string
	graph *definition.Graph

	node     string
	forks    int             // how often it has forked
	children int             // of the fork at which it waits; -1: it waits at none
	ended    map[string]bool // paths of the children that have ended since
	prompted bool
	answer   string // the node to which it must go, after an answer
	made     int    // how often it was added as a child
}

// verifyFlows demands that each fork joins at most once, when its children say so and no earlier, that no child is made twice for one
// fork, and that an answer is given to a question, once, and decides where the order goes.
func (r *flowRun) verifyFlows(all []event.Event) {
	graphs, flows := r.watch.graphs(), map[string]*flow{}
	for i := range all {
		e := &all[i]
		if event.FamilyOf(e.Type) != event.OrderEvent {
			continue
		}
		f := flows[e.Key.Path]
		if f == nil {
			f = &flow{flowRun: r, path: e.Key.Path, children: -1}
			flows[e.Key.Path] = f
		}
		f.see(e, flows, graphs)
	}
}

func (f *flow) wrong(invariant string, e *event.Event, format string, args ...any) {
	f.report(invariant, "%s: %s {%s} at %s: "+format, append([]any{f.path, e.Type, e.Fields, f.node}, args...)...)
}

func (f *flow) see(e *event.Event, flows map[string]*flow, graphs map[string]map[int]*definition.Graph) {
	if f.answer != "" && e.Type != event.OrderSuspended { // by too many visits, or at its end
		if e.Type != event.OrderNodeChanged || typed.ReadOrder[typed.OrderNodeChanged](e).NodeID != f.answer {
			f.wrong("prompt", e, "the answer leads to %s", f.answer)
		}
		f.answer = ""
	}
	switch e.Type {
	case event.OrderAdded:
		f.added(e, flows, graphs)
	case event.OrderNodeChanged:
		f.node, f.children, f.prompted = typed.ReadOrder[typed.OrderNodeChanged](e).NodeID, -1, false
	case event.OrderForked:
		f.children, f.ended = typed.ReadOrder[typed.OrderForked](e).Children, map[string]bool{}
		f.forks++
		f.count("forked")
	case event.OrderJoined:
		f.joins(e, typed.ReadOrder[typed.OrderJoined](e))
	case event.OrderPrompted:
		f.prompted = true
	case event.OrderAnswered:
		f.answered(e, typed.ReadOrder[typed.OrderAnswered](e))
	case event.OrderFinished, event.OrderRemoved:
		f.ends(flows)
	}
}

func (f *flow) added(e *event.Event, flows map[string]*flow, graphs map[string]map[int]*definition.Graph) {
	is := typed.ReadOrder[typed.OrderAdded](e)
	chain, _ := order.Split(f.path)
	f.node, f.graph, f.children, f.prompted = is.NodeID, graphs[chain][is.Version], -1, false
	if parent := flows[is.Parent]; is.Parent != "" {
		if f.made++; parent == nil || f.made > parent.forks {
			f.wrong("one child", e, "it is made for the %d. time", f.made)
		}
	}
}

// ends notes that the order has ended, for the one that has forked it, too.
func (f *flow) ends(flows map[string]*flow) {
	f.children, f.prompted = -1, false
	at := strings.LastIndex(f.path, "!")
	if at < 0 {
		return
	}
	if parent := flows[f.path[:at]]; parent != nil && parent.children >= 0 {
		parent.ended[f.path] = true
	}
}

// joins demands that the order waits for its children, that so many of them have ended, and that this decides.
func (f *flow) joins(e *event.Event, is typed.OrderJoined) {
	n, ok := f.graph.Node(f.node)
	if !ok || n.Fork == nil || f.children < 0 {
		f.wrong("join", e, "it waits for no children")
		return
	}
	need := n.Fork.AtLeast
	if need == 0 {
		need = f.children
	}
	switch {
	case is.Succeeded+is.Failed > len(f.ended):
		f.wrong("join", e, "only %d of its children have ended", len(f.ended))
	case is.Succeeded+is.Failed > f.children:
		f.wrong("join", e, "it has %d children", f.children)
	case is.Succeeded < need && f.children-is.Failed >= need && (!n.Fork.Cancel || is.Failed == 0):
		f.wrong("join", e, "of %d children it needs %d", f.children, need)
	}
	f.count("joined")
	f.children = -1
}

func (f *flow) answered(e *event.Event, is typed.OrderAnswered) {
	n, ok := f.graph.Node(f.node)
	if !ok || n.Prompt == nil || !f.prompted {
		f.wrong("prompt", e, "nobody is asked")
		return
	}
	f.prompted, f.answer = false, n.Prompt.Answers[is.Answer]
	f.count("answered")
}

// verifyActs demands that an act on many was done at most once to each order, and to as many as it says. An order that it resumes may be
// suspended by the same write, because its time is over: that is no further act.
func (r *flowRun) verifyActs(all []event.Event) {
	tells := map[string]string{} // the type of event that tells of an act, by label
	for _, a := range r.acts {
		tells[a.label] = map[order.ActKind]string{order.Suspend: event.OrderSuspended, order.Resume: event.OrderResumed}[a.kind]
	}
	did := map[string]map[string]int{} // by label, by path
	for i := range all {
		e := &all[i]
		if e.By == "" || e.Type != tells[e.By] {
			continue
		}
		if did[e.By] == nil {
			did[e.By] = map[string]int{}
		}
		did[e.By][e.Key.Path]++
	}
	m := r.homes[0].now()
	for _, a := range r.acts {
		if a.id == "" {
			continue
		}
		is, err := m.orders.Bulk(r.ctx, a.id)
		if err != nil {
			r.report("act", "%s by %s cannot be read: %v", a.kind, a.label, err)
			continue
		}
		if is.State != order.BulkDone || is.Done+is.Failed != is.Count || is.Done != len(did[a.label]) {
			r.report("act", "%s by %s is %+v, and was done to %d orders", a.kind, a.label, is, len(did[a.label]))
		}
		for path, times := range did[a.label] {
			if times > 1 {
				r.report("act", "%s by %s was done to %s %d times", a.kind, a.label, path, times)
			}
			r.count("acted")
		}
	}
}
