package simulation

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
)

// walker follows one order by its events, by a model of its own of what the end of a step means.
type walker struct {
	*orderRun
	graphs map[string]map[int]*definition.Graph
	sent   map[string][]string // by path: the nodes to which operators have sent the order, "reset", "remove" and "replace"

	path      string
	there     bool
	graph     *definition.Graph
	node      string
	first     string // where it began
	end       string // its own end node
	task      string
	suspended bool
	setbacks  int
	must      string // what the end of its step means, until that has happened
}

// verifyWalks demands that the events of each order are a legal walk along its version of its chain.
func (r *orderRun) verifyWalks(all []event.Event) {
	sent := map[string][]string{}
	for _, q := range r.asked {
		switch {
		case q.what == "set-node":
			sent[q.path] = append(sent[q.path], "go "+q.node)
		case q.what == "reset", q.what == "remove":
			sent[q.path] = append(sent[q.path], q.what)
		case q.replace:
			sent[q.path] = append(sent[q.path], "remove")
		}
	}
	graphs, walkers := r.watch.graphs(), map[string]*walker{}
	for i := range all {
		e := &all[i]
		if event.FamilyOf(e.Type) != event.OrderEvent {
			continue
		}
		w := walkers[e.Key.Path]
		if w == nil {
			w = &walker{orderRun: r, graphs: graphs, sent: sent, path: e.Key.Path}
			walkers[e.Key.Path] = w
		}
		w.see(e, all[i:min(i+40, len(all))])
	}
}

func (w *walker) wrong(e *event.Event, format string, args ...any) {
	w.report("walk", "%s: %s {%s} at %s: "+format, append([]any{w.path, e.Type, e.Fields, w.node}, args...)...)
}

func (w *walker) see(e *event.Event, following []event.Event) {
	if !w.there && e.Type != event.OrderAdded {
		w.wrong(e, "it is not there")
	}
	switch e.Type {
	case event.OrderAdded:
		w.added(e)
	case event.OrderStepStarted:
		w.stepStarted(e, typed.ReadOrder[typed.OrderStepStarted](e))
	case event.OrderStepEnded:
		w.stepEnded(e, following)
	case event.OrderSetBack:
		w.setBack(e, typed.ReadOrder[typed.OrderSetBack](e))
	case event.OrderSuspended:
		w.suspends(e, typed.ReadOrder[typed.OrderSuspended](e))
	case event.OrderResumed:
		w.suspended = false
	case event.OrderNodeChanged:
		w.goes(e, typed.ReadOrder[typed.OrderNodeChanged](e))
	case event.OrderFinished:
		w.finishes(e)
	case event.OrderRemoved:
		w.does(e, "remove")
		w.there = false
	}
}

func (w *walker) stepStarted(e *event.Event, is typed.OrderStepStarted) {
	if is.NodeID != w.node || w.task != "" || w.suspended || w.must != "" {
		w.wrong(e, "task %q, suspended %t, it must %s", w.task, w.suspended, w.must)
	}
	w.task = is.TaskID
}

func (w *walker) setBack(e *event.Event, is typed.OrderSetBack) {
	w.setbacks++
	w.does(e, "set back")
	if is.Count < w.setbacks && (slices.Contains(w.sent[w.path], "reset") || slices.Contains(w.sent[w.path], "go "+w.node)) {
		w.setbacks = is.Count // sent to the node where it is, it begins there anew, as if it had waited
	}
	if is.Count != w.setbacks || is.NodeID != w.node {
		w.wrong(e, "it was set back %d times", w.setbacks)
	}
}

func (w *walker) suspends(e *event.Event, is typed.OrderSuspended) {
	if !is.Blacklisted && w.must == "suspend" {
		w.does(e, "suspend")
	}
	if w.must == "finish" {
		w.must = ""
	}
	w.suspended = true
}

func (w *walker) finishes(e *event.Event) {
	w.does(e, "finish")
	if n, ok := w.graph.Node(w.node); w.suspended || w.task != "" || !ok || n.Kind != definition.KindEnd && n.Next != "" && w.end != w.node {
		w.wrong(e, "suspended %t, task %q", w.suspended, w.task)
	}
	w.there = false
}

func (w *walker) added(e *event.Event) {
	is := typed.ReadOrder[typed.OrderAdded](e)
	chain, _, _ := strings.Cut(w.path, ",")
	g := w.graphs[chain][is.Version]
	if w.there && !is.Permanent || g == nil {
		w.wrong(e, "it is there already, or has no version")
		return
	}
	_, end, _ := strings.Cut(string(is.Variables), `"end":"`)
	end, _, _ = strings.Cut(end, `"`)
	*w = walker{orderRun: w.orderRun, graphs: w.graphs, sent: w.sent, path: w.path, there: true, graph: g, node: is.NodeID, first: is.NodeID, end: end}
}

// does demands that what the order does is what the end of its step means, or what operators have asked for.
func (w *walker) does(e *event.Event, what string) {
	if w.must != "" && w.must != what && !slices.Contains(w.sent[w.path], what) {
		first := what == "go "+w.first || what == "go "+w.graph.First() // the chain's, where the action of that lets orders pass
		if !first || !slices.Contains(w.sent[w.path], "reset") {
			w.wrong(e, "it must %s", w.must)
		}
	}
	w.must = ""
}

func (w *walker) goes(e *event.Event, is typed.OrderNodeChanged) {
	w.does(e, "go "+is.NodeID)
	if is.FromNodeID != w.node || w.task != "" {
		w.wrong(e, "it does not come from there, or its step %q runs", w.task)
	}
	if is.NodeID != w.node {
		w.setbacks = 0
	}
	if w.node = is.NodeID; w.suspended {
		return
	}
	if n, ok := w.graph.Node(is.NodeID); !ok {
		w.wrong(e, "its version has no such node")
	} else if n.Kind == definition.KindEnd {
		w.must = "finish"
	}
}

// stepEnded finds out what the end of a step means.
func (w *walker) stepEnded(e *event.Event, following []event.Event) {
	is := typed.ReadOrder[typed.OrderStepEnded](e)
	if w.must != "" {
		w.wrong(e, "it must %s", w.must)
	}
	failed, code := w.result(following)
	begun := w.task != ""
	w.task = ""
	n, ok := w.graph.Node(w.node)
	if !ok || n.Kind != definition.KindJob {
		w.wrong(e, "no step runs there")
		return
	}
	var how string
	if w.must, w.setbacks, how = w.means(n, failed, code); is.Transition.Type == typed.Keep && how != typed.Keep && begun {
		w.must, w.setbacks = "", 0 // somebody broke it off between two attempts
		return
	}
	if w.must == "suspend" && w.suspended {
		w.must = "" // it is so already
	}
	if is.Transition.Type != how {
		w.wrong(e, "failed: %t, code %d, want %s", failed, code, how)
	}
}

// result returns how the task of the step ended, by the events that follow; without one, it failed.
func (w *walker) result(following []event.Event) (failed bool, code int) {
	for i := range following {
		if f := &following[i]; f.Type == event.TaskEnded && w.task != "" && f.Key.TaskID == w.task {
			ended := typed.ReadTaskEnded(f)
			if failed, code = ended.Outcome != typed.OK, ended.ReturnCode; failed && code == 0 {
				code = 1
			}
			return failed, code
		}
	}
	return true, 1
}

// means returns what the end of a step at a node means, the setbacks so far that still count, and the transition.
func (w *walker) means(n *definition.GraphNode, failed bool, code int) (must string, setbacks int, how string) {
	if how = typed.Success; failed {
		how = typed.Failure
	}
	next := func(id string) string {
		if id == "" {
			return "finish"
		}
		return "go " + id
	}
	for _, r := range n.On {
		if code >= r.From && code <= r.To {
			return next(r.Next), 0, how
		}
	}
	switch {
	case !failed && w.end == n.ID:
		return "finish", 0, how
	case !failed:
		return next(n.Next), 0, how
	case n.OnError == "setback" && w.setbacks < len(backJob.Setbacks):
		return "set back", w.setbacks, typed.Keep
	case n.OnError == "suspend", n.Error == "":
		return "suspend", 0, how
	}
	return "go " + n.Error, 0, how
}
