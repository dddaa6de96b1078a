package chaingraph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
)

// way is one way on from a node.
type way struct {
	label string // when an order takes it; "": after success
	to    string // id of a node; "": there is none
	error bool   // it is taken after an error

	setsBack bool // the step is repeated first, as often as its job allows
}

// ways returns the ways on from a node: after success first, then by codes or answers, after an error last.
func ways(n *definition.GraphNode) []way {
	var all []way
	switch n.Kind {
	case definition.KindEnd:
		return nil
	case definition.KindPrompt:
		for _, answer := range slices.Sorted(maps.Keys(n.Prompt.Answers)) {
			all = append(all, way{label: answer, to: n.Prompt.Answers[answer]})
		}
		if n.Prompt.Deadline > 0 {
			all = append(all, way{label: "after " + event.FormatDuration(n.Prompt.Deadline), to: n.Prompt.Default})
		}
		return all
	}
	all = append(all, way{to: n.Next})
	for _, r := range n.On {
		all = append(all, way{label: codes(r), to: r.Next})
	}
	failed := way{label: "error", to: n.Error, error: true}
	switch {
	case n.OnError == definition.ErrorSuspends:
		failed.to = ""
	case n.OnError == definition.ErrorSetsBack:
		failed.setsBack = true
	case n.Kind == definition.KindWait && n.Wait.Event == "": // a time comes
		return all
	case n.Kind == definition.KindWait && n.Wait.Timeout > 0:
		failed.label = "after " + event.FormatDuration(n.Wait.Timeout)
	case n.Kind == definition.KindWait:
		return all
	}
	return append(all, failed)
}

func codes(r definition.CodeRange) string {
	if r.From == r.To {
		return fmt.Sprint(r.From)
	}
	return fmt.Sprintf("%d..%d", r.From, r.To)
}

// doing returns in a few words what happens at a node.
func doing(n *definition.GraphNode) string {
	switch n.Kind {
	case definition.KindJob:
		return "job " + n.Job
	case definition.KindFork:
		return forking(n.Fork)
	case definition.KindPrompt:
		return "prompt for " + n.Prompt.Role
	case definition.KindWait:
		return waiting(n.Wait)
	default:
		if n.Failed {
			return "end after errors"
		}
		return "end"
	}
}

func forking(f *definition.GraphFork) string {
	text := "fork: one child for each of " + f.Each
	if f.Each == "" {
		names := make([]string, len(f.Branches))
		for i, b := range f.Branches {
			names[i] = b.Name
		}
		text = "fork: " + strings.Join(names, ", ")
	}
	if f.AtLeast > 0 {
		text += fmt.Sprintf("; at least %d must succeed", f.AtLeast)
	}
	if f.Cancel {
		text += "; a failed child cancels the others"
	}
	return text
}

func waiting(w *definition.Wait) string {
	switch {
	case w.For > 0:
		return "wait for " + event.FormatDuration(w.For)
	case w.Until != "":
		return "wait until " + w.Until
	case w.Path != "":
		return "wait for the event " + w.Event + " at " + w.Path
	default:
		return "wait for the event " + w.Event
	}
}

// details returns what else is said of a node.
func details(n *definition.GraphNode) []string {
	var all []string
	if n.Wait != nil {
		for _, field := range slices.Sorted(maps.Keys(n.Wait.Where)) {
			all = append(all, fmt.Sprintf("where %s = %v", field, n.Wait.Where[field]))
		}
	}
	if n.Delay > 0 {
		all = append(all, "delay "+event.FormatDuration(n.Delay))
	}
	if n.Timeout > 0 {
		all = append(all, "timeout "+event.FormatDuration(n.Timeout))
	}
	for _, lock := range n.Locks {
		said := "lock " + lock.Name
		if lock.Shared {
			said += " (shared)"
		}
		all = append(all, said)
	}
	switch n.Action {
	case definition.ActionStop:
		all = append(all, "stopped at first")
	case definition.ActionNextState:
		all = append(all, "passed by at first")
	}
	return all
}

// limits returns what is said of the chain as a whole.
func limits(g *definition.Graph) []string {
	var all []string
	if g.MaxOrders > 0 {
		all = append(all, fmt.Sprintf("at most %d orders", g.MaxOrders))
	}
	if g.Timeout > 0 {
		all = append(all, "timeout "+event.FormatDuration(g.Timeout))
	}
	if g.MaxVisits != definition.DefaultMaxVisits {
		all = append(all, fmt.Sprintf("at most %d visits to a node", g.MaxVisits))
	}
	return all
}
