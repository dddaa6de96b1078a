package projection_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store/memory"
)

// follower is a client: what it knows are the overviews that it has read, and events.
type follower struct {
	orders map[string]*projection.OrderOverview
	chains map[string]*projection.JobChainOverview
}

func (f *follower) see(e *event.Event) {
	switch event.FamilyOf(e.Type) {
	case event.OrderEvent:
		f.order(e)
	case event.TaskEvent:
		f.task(e)
	case event.JobChainEvent, event.FileBasedEvent:
		f.chain(e)
	}
}

func (f *follower) order(e *event.Event) {
	if e.Type == event.OrderAdded {
		is := typed.ReadOrder[typed.OrderAdded](e)
		o := &projection.OrderOverview{TYPE: "OrderOverview", Path: e.Key.Path, Version: is.Version, NodeID: is.NodeID, Variables: is.Variables}
		if o.Variables == nil {
			o.Variables = jsontext.Value("{}")
		}
		f.orders[e.Key.Path] = o
		if waitForStep(o, is.At); is.Permanent && is.At.IsZero() {
			only(o, projection.ProcessingState{Type: "NotPlanned"})
		}
		return
	}
	o := f.orders[e.Key.Path]
	if o == nil {
		return
	}
	inTask := o.State.TaskID != ""
	asks := slices.ContainsFunc(o.Obstacles, func(b projection.Obstacle) bool { return strings.Contains("Prompt Wait Join", b.Type) })
	switch e.Type {
	case event.OrderStarted:
		o.StartedAt = event.Time{Time: e.ID.Time()}
		if o.State.Type == "NotPlanned" || o.State.Type == "Planned" {
			waitForStep(o, event.Time{})
		}
	case event.OrderStepStarted:
		is := typed.ReadOrder[typed.OrderStepStarted](e)
		o.NodeID = is.NodeID
		only(o, projection.ProcessingState{Type: "InTaskProcess", TaskID: is.TaskID})
	case event.OrderStepEnded:
		if v := typed.ReadOrder[typed.OrderStepEnded](e).Variables; v != nil {
			o.Variables = v
		}
		waitForStep(o, event.Time{})
	case event.OrderSetBack:
		is := typed.ReadOrder[typed.OrderSetBack](e)
		o.NodeID = is.NodeID
		only(o, projection.ProcessingState{Type: "Setback", At: is.Until}, projection.Obstacle{Type: "Setback", Until: is.Until})
	case event.OrderNodeChanged:
		is := typed.ReadOrder[typed.OrderNodeChanged](e)
		if o.NodeID = is.NodeID; o.State.Type != "Blacklisted" {
			waitForStep(o, is.At)
		}
	case event.OrderSuspended:
		if !isSuspended(o) {
			o.Obstacles = slices.Insert(o.Obstacles, 0, projection.Obstacle{Type: "Suspended"})
		}
		switch s := o.State.Type; {
		case typed.ReadOrder[typed.OrderSuspended](e).Blacklisted:
			only(o, projection.ProcessingState{Type: "Blacklisted"})
		case s == "Blacklisted", o.StartedAt.IsZero() && (s == "Planned" || s == "Due"):
			waitForStep(o, event.Time{})
		}
	case event.OrderResumed:
		is := typed.ReadOrder[typed.OrderResumed](e)
		o.Obstacles = slices.DeleteFunc(o.Obstacles, func(b projection.Obstacle) bool { return b.Type == "Suspended" })
		if is.Variables != nil {
			o.Variables = is.Variables
		}
		switch {
		case inTask || asks:
		case o.State.Type == "Setback" && !is.At.IsZero():
			only(o, projection.ProcessingState{Type: "Setback", At: is.At}, projection.Obstacle{Type: "Setback", Until: is.At})
		default:
			waitForStep(o, is.At)
		}
	case event.OrderForked:
		only(o, projection.ProcessingState{Type: "WaitingForResource"}, projection.Obstacle{Type: "Join"})
	case event.OrderPrompted:
		is := typed.ReadOrder[typed.OrderPrompted](e)
		o.NodeID = is.NodeID
		only(o, projection.ProcessingState{Type: "WaitingForResource"}, projection.Obstacle{Type: "Prompt", Until: is.Deadline})
	case event.OrderWaiting:
		is := typed.ReadOrder[typed.OrderWaiting](e)
		o.NodeID = is.NodeID
		only(o, projection.ProcessingState{Type: "WaitingForResource"})
		if is.For == typed.ForEvent || is.For == typed.ForTime {
			o.Obstacles = append(o.Obstacles, projection.Obstacle{Type: "Wait", Until: is.Until})
		}
	case event.OrderJoined, event.OrderAnswered:
		waitForStep(o, event.Time{})
	case event.OrderMoved:
		is := typed.ReadOrder[typed.OrderMoved](e)
		o.NodeID, o.Version = is.NodeID, is.Version
	case event.OrderFinished, event.OrderRemoved:
		delete(f.orders, e.Key.Path)
	}
}

func isSuspended(o *projection.OrderOverview) bool {
	return len(o.Obstacles) > 0 && o.Obstacles[0].Type == "Suspended"
}

// only sets the state, with these obstacles beside a suspension.
func only(o *projection.OrderOverview, s projection.ProcessingState, obstacles ...projection.Obstacle) {
	all := []projection.Obstacle{}
	if isSuspended(o) {
		all = o.Obstacles[:1]
	}
	o.State, o.Obstacles = s, append(all, obstacles...)
}

func waitForStep(o *projection.OrderOverview, at event.Time) {
	switch {
	case o.StartedAt.IsZero() && isSuspended(o):
		only(o, projection.ProcessingState{Type: "NotPlanned"})
	case o.StartedAt.IsZero() && !at.IsZero():
		only(o, projection.ProcessingState{Type: "Planned", At: at})
	default:
		only(o, projection.ProcessingState{Type: "Due", At: at})
	}
}

func (f *follower) task(e *event.Event) {
	for _, o := range f.orders {
		switch {
		case o.State.TaskID != e.Key.TaskID:
		case e.Type == event.TaskStarted:
			o.State.Type = "InTaskProcess"
		case e.Type == event.TaskEnded && typed.ReadTaskEnded(e).RetryAt != 0:
			o.State.Type = "WaitingInTask"
		}
	}
}

func (f *follower) chain(e *event.Event) {
	path, isDefinition := strings.CutPrefix(e.Key.Path, "JobChain:")
	c := f.chains[path]
	if c == nil {
		c = &projection.JobChainOverview{TYPE: "JobChainOverview", Path: path, State: "running", Nodes: []typed.NodeAction{}}
		f.chains[path] = c
	}
	has := func(id string) func(typed.NodeAction) bool {
		return func(n typed.NodeAction) bool { return n.NodeID == id }
	}
	set := func(n typed.NodeAction) {
		c.Nodes = append(slices.DeleteFunc(c.Nodes, has(n.NodeID)), n)
		slices.SortFunc(c.Nodes, func(a, b typed.NodeAction) int { return strings.Compare(a.NodeID, b.NodeID) })
	}
	switch {
	case isDefinition:
		if c.FileBasedState = strings.TrimPrefix(e.Type, "FileBased"); c.FileBasedState == "Removed" {
			c.FileBasedState = ""
		}
		if e.Type == "FileBasedActivated" {
			break
		}
		for _, id := range c.Declared {
			c.Nodes = slices.DeleteFunc(c.Nodes, has(id))
		}
		c.Declared = nil
		for _, n := range typed.ReadOrder[typed.ChainDeclared](e).Nodes {
			if !slices.ContainsFunc(c.Nodes, has(n.NodeID)) {
				set(n)
				c.Declared = append(c.Declared, n.NodeID)
			}
		}
	case e.Type == event.JobChainStateChanged:
		c.State = typed.ReadOrder[typed.JobChainStateChanged](e).State
	default:
		is := typed.ReadOrder[typed.JobChainNodeActionChanged](e)
		set(typed.NodeAction(is))
		c.Declared = slices.DeleteFunc(c.Declared, func(id string) bool { return id == is.NodeID })
	}
	if c.FileBasedState == "" && c.State == "running" && len(c.Nodes) == 0 {
		delete(f.chains, path)
	}
}

// happenings draws events of orders, of their steps' tasks, and of chains; nothing says that they can follow each other.
type happenings struct {
	t     *rapid.T
	tasks int // ids given to steps
}

func (h *happenings) one() event.Event {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(h.t, name) }
	path := pick("order", "/a/x,1", "/a/x,2", "/a/x,11", "/a/x,1!b", "/a/y,1", "/a/xy/z,1", "/b,1,2")
	node := pick("node", "A", "B")
	var at event.Time
	if rapid.Bool().Draw(h.t, "at") {
		at = after(time.Hour)
	}
	var variables jsontext.Value
	if rapid.Bool().Draw(h.t, "changes") {
		variables = jsontext.Value(fmt.Sprintf(`{"v":%d}`, rapid.IntRange(0, 9).Draw(h.t, "v")))
	}
	flag := rapid.Bool().Draw(h.t, "flag")
	fields := map[string]any{
		event.OrderAdded:   typed.OrderAdded{NodeID: node, Version: 1, At: at, Variables: variables, Permanent: flag, File: !flag && at.IsZero()},
		event.OrderStarted: typed.OrderStarted{}, event.OrderStepStarted: typed.OrderStepStarted{NodeID: node, TaskID: fmt.Sprint(h.tasks)},
		event.OrderStepEnded:   typed.OrderStepEnded{Transition: typed.NodeTransition{Type: typed.Success}, Variables: variables},
		event.OrderSetBack:     typed.OrderSetBack{NodeID: node, Until: after(time.Minute), Count: 1},
		event.OrderNodeChanged: typed.OrderNodeChanged{NodeID: node, FromNodeID: "A", At: at},
		event.OrderSuspended:   typed.OrderSuspended{Blacklisted: flag}, event.OrderResumed: typed.OrderResumed{At: at, Variables: variables},
		event.OrderFinished: typed.OrderFinished{NodeID: node}, event.OrderRemoved: typed.OrderRemoved{},
		event.OrderForked: typed.OrderForked{Children: 2}, event.OrderJoined: typed.OrderJoined{Succeeded: 2},
		event.OrderPrompted: typed.OrderPrompted{NodeID: node, Deadline: at}, event.OrderAnswered: typed.OrderAnswered{Answer: "yes"},
		event.OrderWaiting: typed.OrderWaiting{NodeID: node, For: pick("for", typed.ForEvent, typed.ForTime, typed.ForLock, typed.ForChain), Until: at},
		event.OrderMoved:   typed.OrderMoved{NodeID: node, Version: rapid.IntRange(2, 3).Draw(h.t, "version")},
	}
	task := event.Key{Path: "/job", TaskID: fmt.Sprint(h.tasks - 1)}
	switch name := pick("type", append(event.TypesOf(event.OrderEvent), event.OrderAdded, event.OrderStepStarted, "task", "chain")...); name {
	case "task":
		return pickEvent(h.t, typed.TaskStarted{Attempt: 2}.Event(task), typed.TaskEnded{Outcome: typed.Failed, RetryAt: 1}.Event(task),
			typed.TaskEnded{Outcome: typed.OK}.Event(task))
	case "chain":
		chain, _, _ := strings.Cut(path, ",")
		definition := event.Key{Path: "JobChain:" + chain}
		return pickEvent(h.t, typed.OrderEvent(event.JobChainStateChanged, chain, typed.JobChainStateChanged{State: pick("state", "running", "stopped")}),
			typed.OrderEvent(event.JobChainNodeActionChanged, chain, typed.JobChainNodeActionChanged{NodeID: node, Action: pick("action", "process", "stop")}),
			event.Event{Type: "FileBasedAdded", Key: definition}, event.Event{Type: "FileBasedReplaced", Key: definition},
			event.Event{Type: "FileBasedActivated", Key: definition},
			typed.OrderEvent("FileBasedReplaced", definition.Path, typed.ChainDeclared{Nodes: []typed.NodeAction{{NodeID: node, Action: "stop"}}}),
			event.Event{Type: "FileBasedRemoved", Key: definition}, event.Event{Type: "FileBasedAdded", Key: event.Key{Path: "Job:" + chain}})
	default:
		if name == event.OrderStepStarted {
			h.tasks++
		}
		return typed.OrderEvent(name, path, fields[name])
	}
}

func pickEvent(t *rapid.T, of ...event.Event) event.Event {
	return of[rapid.IntRange(0, len(of)-1).Draw(t, "which")]
}

// A follower that has read a snapshot, of whatever path, and then the events after it, knows what a later snapshot says.
func TestSnapshotAndEventsMakeALaterSnapshot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		j := journal.Open(memory.New(memory.Options{}), journal.Options{Folds: projection.Folds()})
		defer func() { _ = j.Close() }()
		h := &happenings{t: rt}
		happen := func(name string) {
			for range rapid.IntRange(0, 20).Draw(rt, name) {
				if _, err := j.Emit(t.Context(), []event.Event{h.one(), h.one()}, nil); err != nil {
					rt.Fatal(err)
				}
			}
		}
		q, err := event.ParsePath(rapid.SampledFrom([]string{"/", "/a/", "/a/*", "/*", "/a/x", "/a/x,1", "/a/y|/b", "/a/x,1|/a/x,11", "/none/"}).Draw(rt, "path"))
		if err != nil {
			rt.Fatal(err)
		}
		happen("before")
		f, stamp := read(rt, j, q)
		happen("after")
		want, last := read(rt, j, q)
		a, err := j.ReadAfter(t.Context(), journal.Request{After: stamp})
		if err != nil {
			rt.Fatal(err)
		}
		for i := range a.Events {
			e := &a.Events[i]
			family := event.FamilyOf(e.Type)
			isChain := family != event.FileBasedEvent || strings.HasPrefix(e.Key.Path, "JobChain:")
			if e.ID <= last && isChain && (family == event.TaskEvent || q.MatchKey(family, e.Key)) {
				f.see(e)
			}
		}
		if diff := cmp.Diff(shownBy(rt, want), shownBy(rt, f)); diff != "" {
			rt.Fatalf("after %d events (-a later snapshot +a follower):\n%s", len(a.Events), diff)
		}
	})
}

// read takes a snapshot of the orders and chains that q selects.
func read(t *rapid.T, j *journal.Journal, q event.PathQuery) (*follower, event.ID) {
	f := &follower{map[string]*projection.OrderOverview{}, map[string]*projection.JobChainOverview{}}
	stamp := snapshot(t, j, projection.OrdersName, event.OrderEvent, q, f.orders)
	snapshot(t, j, "JobChainOverview", event.JobChainEvent, q, f.chains)
	return f, stamp
}

func snapshot[T any](t *rapid.T, j *journal.Journal, fold string, family event.Family, q event.PathQuery, into map[string]*T) event.ID {
	part := journal.Part{Prefixes: q.Prefixes(family), Match: func(key string) bool { return q.MatchKey(family, event.Key{Path: key}) }}
	stamp, err := j.SnapshotOf(t.Context(), fold, part, func(key string, value []byte) {
		into[key] = new(T)
		if err := json.Unmarshal(value, into[key]); err != nil {
			t.Fatalf("%s: %v", value, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return stamp
}

func shownBy(t *rapid.T, f *follower) map[string]string {
	all := map[string]string{}
	add := func(path string, overview any) {
		text, err := json.Marshal(overview)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = string(text)
	}
	for path, o := range f.orders {
		add(path, o)
	}
	for path, c := range f.chains {
		add(path, c)
	}
	return all
}

// The numbers of the chains are what counting the orders one by one gives, after each event; and they have changed when that says so.
func TestStatisticsAreAFullCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h, state, before := &happenings{t: t}, &journal.State{}, map[string]projection.OrderStatistics{}
		for n := range rapid.IntRange(1, 40).Draw(t, "events") {
			e := h.one()
			e.ID = event.IDAt(now.Add(time.Duration(n) * time.Second))
			projection.Orders().Apply(state, &e)
			byChain, byOrder := counted(state)
			for chain, c := range byChain {
				if diff := cmp.Diff(byOrder[chain], c.OrderStatistics); diff != "" {
					t.Fatalf("%s after %s (-one by one +numbers):\n%s", chain, e.Type, diff)
				}
				if changed := c.OrderStatistics != before[chain]; changed != (c.Changed == e.ID) {
					t.Fatalf("%s after %s: changed is %t, and the numbers say %d at %d", chain, e.Type, changed, c.Changed, e.ID)
				}
				before[chain] = c.OrderStatistics
			}
			for chain := range byOrder {
				if _, known := byChain[chain]; !known {
					t.Fatalf("the orders of %s are not counted", chain)
				}
			}
		}
	})
}

// counted returns the numbers that the projection keeps of each chain, and those of counting what it shows of the orders.
func counted(state *journal.State) (byChain map[string]projection.OrderCount, byOrder map[string]projection.OrderStatistics) {
	byChain, byOrder = map[string]projection.OrderCount{}, map[string]projection.OrderStatistics{}
	for key, value := range state.All() {
		if chain, is := strings.CutPrefix(key, projection.OrderCounts); is {
			byChain[chain] = projection.ReadOrderCount(key, value)
			continue
		}
		text := projection.Orders().Show(nil, key, value)
		if len(text) == 0 {
			continue
		}
		var o projection.OrderOverview
		if err := json.Unmarshal(text, &o); err != nil {
			panic(err)
		}
		if again, err := jsonv2.Marshal(o); err != nil || string(again) != string(text) {
			panic(fmt.Sprintf("shown as %s, which is read as %s: %v", text, again, err))
		}
		chain, _, _ := strings.Cut(key, ",")
		s := byOrder[chain]
		kept := projection.ReadOrderCount(key, value) // overviews do not say who made an order
		s.Add(countOverview(&o, kept.Permanent, kept.FileOrder))
		byOrder[chain] = s
	}
	return byChain, byOrder
}

func countOverview(o *projection.OrderOverview, permanent, file int) projection.OrderStatistics {
	s := projection.OrderStatistics{Total: 1, Permanent: permanent, FileOrder: file}
	if !o.StartedAt.IsZero() {
		s.Started = 1
	}
	if isSuspended(o) {
		s.Suspended = 1
	}
	switch o.State.Type {
	case "NotPlanned":
		s.NotPlanned = 1
	case "Planned":
		s.Planned = 1
	case "Due":
		s.Due = 1
	case "WaitingInTask":
		s.InTask = 1
	case "InTaskProcess":
		s.InTask, s.InTaskProcess = 1, 1
	case "Setback":
		s.Setback = 1
	case "WaitingForResource":
		s.WaitingForResource = 1
	case "Blacklisted":
		s.Blacklisted = 1
	}
	return s
}
