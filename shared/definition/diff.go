package definition

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/strict"
)

// Changes are the differences of two sets: the sorted keys of objects as events have them, such as Source:/NAME. A
// handler's key is Handler:/CANVAS/SPACE/NAME.
type Changes struct {
	Added    []string `json:"added"`    // only in the later set
	Replaced []string `json:"replaced"` // in both, with different values
	Removed  []string `json:"removed"`  // only in the earlier set
}

// Empty reports whether there are no differences.
func (c Changes) Empty() bool { return len(c.Added)+len(c.Replaced)+len(c.Removed) == 0 }

// OnlySchedules reports whether all differences are schedules.
func (c Changes) OnlySchedules() bool {
	for _, keys := range [][]string{c.Added, c.Replaced, c.Removed} {
		for _, key := range keys {
			if !strings.HasPrefix(key, "Schedule:") {
				return false
			}
		}
	}
	return true
}

// Schedules reports whether an object differs that is, or may have, a schedule: a schedule, a source with its collections,
// or a handler.
func (c Changes) Schedules() bool {
	scheduled := func(key string) bool {
		return strings.HasPrefix(key, "Schedule:") || strings.HasPrefix(key, "Source:") || strings.HasPrefix(key, "Handler:")
	}
	return slices.ContainsFunc(slices.Concat(c.Added, c.Replaced, c.Removed), scheduled)
}

// diff returns the changes from the objects before to those after.
func diff(before, after []object) Changes {
	c := Changes{Added: []string{}, Replaced: []string{}, Removed: []string{}}
	old := map[string]any{}
	for _, o := range before {
		old[o.key] = o.value
	}
	for _, o := range after {
		was, there := old[o.key]
		switch {
		case !there:
			c.Added = append(c.Added, o.key)
		case !reflect.DeepEqual(was, o.value) && !bytes.Equal(encode(was), encode(o.value)):
			c.Replaced = append(c.Replaced, o.key)
		}
		delete(old, o.key)
	}
	for key := range old {
		c.Removed = append(c.Removed, key)
	}
	for _, keys := range [][]string{c.Added, c.Replaced, c.Removed} {
		slices.Sort(keys)
	}
	return c
}

// Equal reports whether both sets declare the same, in the same order. The order matters: among queues, the first takes a
// topic.
func (s *Set) Equal(other *Set) bool {
	if s == nil || other == nil {
		return s == other
	}
	return bytes.Equal(s.stored(), other.stored())
}

// events returns the changes, which lead to the set after, as events of JobScheduler's event API: removals first, then replacements,
// then additions. Each replacement and addition is followed by its activation, and of a chain says what its nodes do at first.
func (c Changes) events(after *Set) []event.Event {
	all := make([]event.Event, 0, 2*(len(c.Added)+len(c.Replaced))+len(c.Removed))
	actions := after.firstActions()
	add := func(kind, key string) {
		all = append(all, typed.OrderEvent(kind, key, typed.ChainDeclared{Nodes: actions[key]}))
	}
	for _, key := range c.Removed {
		add("FileBasedRemoved", key)
	}
	activated := func(key string) {
		all = append(all, event.Event{Type: "FileBasedActivated", Key: event.Key{Path: key}, Cause: event.CausedBefore(1)})
	}
	for _, key := range c.Replaced {
		add("FileBasedReplaced", key)
		activated(key)
	}
	for _, key := range c.Added {
		add("FileBasedAdded", key)
		activated(key)
	}
	return all
}

// firstActions returns, by the keys of chains, the nodes whose declared action is not process. Those of a nested chain are its own.
func (s *Set) firstActions() map[string][]typed.NodeAction {
	all := map[string][]typed.NodeAction{}
	for _, c := range s.JobChains {
		actions := actionsOf(c.Nodes, "")
		slices.SortFunc(actions, func(a, b typed.NodeAction) int { return cmp.Compare(a.NodeID, b.NodeID) })
		all["JobChain:"+c.Path] = actions
	}
	return all
}

// actionsOf returns the declared actions other than process of the nodes of a chain, or of a branch of a fork.
func actionsOf(nodes []Node, branch string) (actions []typed.NodeAction) {
	for i, n := range nodes {
		id := nodeID(n.ID, branch, i)
		if n.Action != "" && n.Action != ActionProcess {
			actions = append(actions, typed.NodeAction{NodeID: id, Action: n.Action})
		}
		if n.Fork != nil {
			for name, inside := range n.Fork.Branches {
				actions = append(actions, actionsOf(inside, id+"/"+name+"/")...)
			}
		}
	}
	return actions
}

// object is one declared thing.
type object struct {
	key    string  // as in events
	place  string  // its path in the document
	value  any     // compared with the value in the other set
	target *Target // nil for kinds that have no target
}

// objects returns everything that is declared, sorted by key. File orders have no keys, and no events.
func (s *Set) objects() []object {
	var all []object
	for name, source := range s.Sources {
		all = append(all, object{"Source:/" + name, "sources." + name, source, &source.Target})
	}
	for i, h := range s.Handlers {
		all = append(all, object{"Handler:/" + h.Canvas + "/" + h.Space + "/" + h.Name, at("handlers", i), h, &h.Target})
	}
	for i, j := range s.Jobs {
		all = append(all, object{"Job:" + j.Path, at("jobs", i), j, &j.Target})
	}
	for i, q := range s.Queues {
		all = append(all, object{"Queue:/" + q.Name, at("queues", i), q, nil})
	}
	for i, schedule := range s.Schedules {
		all = append(all, object{"Schedule:/" + schedule.Name, at("schedules", i), schedule, nil})
	}
	for i, c := range s.JobChains {
		all = append(all, object{"JobChain:" + c.Path, at("job_chains", i), c, nil})
	}
	for i, l := range s.Locks {
		all = append(all, object{"Lock:/" + l.Name, at("locks", i), l, nil})
	}
	slices.SortStableFunc(all, func(a, b object) int { return cmp.Compare(a.key, b.key) })
	return all
}

// pastDates returns a mistake for each schedule of after whose date is not after now, unless before has it with the same
// date.
func pastDates(before, after []object, now time.Time) []strict.Mistake {
	var found []strict.Mistake
	for _, o := range after {
		s, is := o.value.(Schedule)
		if !is || s.Date.IsZero() {
			continue
		}
		var was Schedule
		if at, there := slices.BinarySearchFunc(before, o.key, func(b object, key string) int { return cmp.Compare(b.key, key) }); there {
			was, _ = before[at].value.(Schedule)
		}
		if s.tooLate(was.Date, now) {
			found = append(found, s.pastDate(o.place+"."))
		}
	}
	return found
}

// tooLate reports whether the schedule has a date that is not after now, and that is not the one it had before.
func (s *Schedule) tooLate(before, now time.Time) bool {
	return !s.Date.IsZero() && !s.Date.After(now) && !s.Date.Equal(before)
}

func (s *Schedule) pastDate(in string) strict.Mistake {
	return strict.Mistake{Path: in + "date", Message: s.Date.Format(time.RFC3339) + " is past, want a time to come"}
}

func at(section string, i int) string { return section + "[" + strconv.Itoa(i) + "]" }

// encode renders a value as JSON in the form that [Read] reads: durations as 1m30s, names in order.
func encode(value any) []byte {
	text, err := json.Marshal(value, json.Deterministic(true), json.WithMarshalers(written))
	if err != nil {
		panic(err) // structs of texts, numbers and parsed payloads always marshal
	}
	return text
}
