package simulation

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/projection"
)

// verifyViews demands that each snapshot of orders, and the events after its stamp, make the next one.
func (r *orderRun) verifyViews(all []event.Event) {
	slices.SortStableFunc(r.views, func(a, b view) int { return cmp.Compare(a.stamp, b.stamp) })
	seen := onlooker{orders: map[string]*projection.OrderOverview{}}
	at := 0
	for _, v := range r.views {
		for ; at < len(all) && all[at].ID <= v.stamp; at++ {
			seen.see(&all[at])
		}
		r.count("views")
		if diff := gocmp.Diff(seen.orders, v.orders, cmpopts.EquateEmpty()); diff != "" {
			r.report("snapshot and events", "at %d (-by events +by the snapshot):\n%s", v.stamp, diff)
			return
		}
		text, err := json.Marshal(v.orders) // it goes on with what a client has read
		if err == nil {
			seen.orders = map[string]*projection.OrderOverview{}
			err = json.Unmarshal(text, &seen.orders)
		}
		if err != nil {
			r.report("snapshot and events", "%v", err)
		}
	}
}

// onlooker knows orders by a snapshot, and by events.
type onlooker struct {
	orders map[string]*projection.OrderOverview
}

func (c *onlooker) see(e *event.Event) {
	switch event.FamilyOf(e.Type) {
	case event.TaskEvent:
		for _, o := range c.orders {
			switch {
			case o.State.TaskID != e.Key.TaskID:
			case e.Type == event.TaskStarted:
				o.State.Type = projection.InTaskProcess
			case e.Type == event.TaskEnded && typed.ReadTaskEnded(e).RetryAt != 0:
				o.State.Type = projection.WaitingInTask
			}
		}
	case event.OrderEvent:
		if e.Type == event.OrderAdded {
			is := typed.ReadOrder[typed.OrderAdded](e)
			o := &projection.OrderOverview{TYPE: "OrderOverview", Path: e.Key.Path, Version: is.Version, NodeID: is.NodeID, Variables: is.Variables}
			if o.Variables == nil {
				o.Variables = []byte("{}")
			}
			c.orders[e.Key.Path] = o
			if awaitStep(o, is.At); is.Permanent && is.At.IsZero() {
				shows(o, projection.ProcessingState{Type: projection.NotPlanned}) // its schedule starts it
			}
		} else if o := c.orders[e.Key.Path]; o != nil {
			c.change(o, e)
		}
	}
}

func (c *onlooker) change(o *projection.OrderOverview, e *event.Event) {
	switch e.Type {
	case event.OrderStarted:
		o.StartedAt = event.Time{Time: e.ID.Time()}
	case event.OrderStepStarted:
		is := typed.ReadOrder[typed.OrderStepStarted](e)
		o.NodeID = is.NodeID
		shows(o, projection.ProcessingState{Type: projection.InTaskProcess, TaskID: is.TaskID})
	case event.OrderStepEnded:
		if v := typed.ReadOrder[typed.OrderStepEnded](e).Variables; v != nil {
			o.Variables = v
		}
		awaitStep(o, event.Time{})
	case event.OrderSetBack:
		is := typed.ReadOrder[typed.OrderSetBack](e)
		shows(o, projection.ProcessingState{Type: projection.SetBack, At: is.Until}, projection.Obstacle{Type: "Setback", Until: is.Until})
	case event.OrderNodeChanged:
		is := typed.ReadOrder[typed.OrderNodeChanged](e)
		if o.NodeID = is.NodeID; o.State.Type != projection.Blacklisted {
			awaitStep(o, is.At)
		}
	case event.OrderSuspended:
		c.suspended(o, typed.ReadOrder[typed.OrderSuspended](e))
	case event.OrderResumed:
		c.resumed(o, typed.ReadOrder[typed.OrderResumed](e))
	case event.OrderWaiting:
		c.waits(o, typed.ReadOrder[typed.OrderWaiting](e))
	case event.OrderForked:
		shows(o, projection.ProcessingState{Type: projection.WaitingForResource}, projection.Obstacle{Type: "Join"})
	case event.OrderPrompted:
		is := typed.ReadOrder[typed.OrderPrompted](e)
		shows(o, projection.ProcessingState{Type: projection.WaitingForResource}, projection.Obstacle{Type: "Prompt", Until: is.Deadline})
	case event.OrderJoined, event.OrderAnswered:
		awaitStep(o, event.Time{})
	case event.OrderFinished, event.OrderRemoved:
		delete(c.orders, e.Key.Path)
	}
}

func (c *onlooker) waits(o *projection.OrderOverview, is typed.OrderWaiting) {
	var obstacles []projection.Obstacle
	if is.For == typed.ForEvent || is.For == typed.ForTime {
		obstacles = append(obstacles, projection.Obstacle{Type: "Wait", Until: is.Until})
	}
	shows(o, projection.ProcessingState{Type: projection.WaitingForResource}, obstacles...)
}

func (c *onlooker) suspended(o *projection.OrderOverview, is typed.OrderSuspended) {
	if !isHeld(o) {
		o.Obstacles = slices.Insert(o.Obstacles, 0, projection.Obstacle{Type: "Suspended"})
	}
	switch s := o.State.Type; {
	case is.Blacklisted:
		shows(o, projection.ProcessingState{Type: projection.Blacklisted})
	case s == projection.Blacklisted, o.StartedAt.IsZero() && (s == projection.Planned || s == projection.Due):
		awaitStep(o, event.Time{})
	}
}

func (c *onlooker) resumed(o *projection.OrderOverview, is typed.OrderResumed) {
	o.Obstacles = slices.DeleteFunc(o.Obstacles, func(b projection.Obstacle) bool { return b.Type == "Suspended" })
	if is.Variables != nil {
		o.Variables = is.Variables
	}
	switch {
	case o.State.TaskID != "", waitsByItself(o):
	case o.State.Type == projection.SetBack && !is.At.IsZero():
		shows(o, projection.ProcessingState{Type: projection.SetBack, At: is.At}, projection.Obstacle{Type: "Setback", Until: is.At})
	default:
		awaitStep(o, is.At)
	}
}

func isHeld(o *projection.OrderOverview) bool {
	return len(o.Obstacles) > 0 && strings.HasPrefix(o.Obstacles[0].Type, "Suspended")
}

// waitsByItself reports whether the order is asked about, waits for an event or a time, or for its children: resuming it does not end that.
func waitsByItself(o *projection.OrderOverview) bool {
	return slices.ContainsFunc(o.Obstacles, func(b projection.Obstacle) bool { return b.Type == "Prompt" || b.Type == "Wait" || b.Type == "Join" })
}

// shows sets the state, with these obstacles beside a suspension.
func shows(o *projection.OrderOverview, s projection.ProcessingState, obstacles ...projection.Obstacle) {
	all := []projection.Obstacle{}
	if isHeld(o) {
		all = o.Obstacles[:1:1]
	}
	o.State, o.Obstacles = s, append(all, obstacles...)
}

func awaitStep(o *projection.OrderOverview, at event.Time) {
	switch {
	case o.StartedAt.IsZero() && isHeld(o):
		shows(o, projection.ProcessingState{Type: projection.NotPlanned})
	case o.StartedAt.IsZero() && !at.IsZero():
		shows(o, projection.ProcessingState{Type: projection.Planned, At: at})
	default:
		shows(o, projection.ProcessingState{Type: projection.Due, At: at})
	}
}
