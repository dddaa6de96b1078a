package order

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue/view"
)

// Reason is why an order's step is not running, or that it is.
type Reason struct {
	State   string         // as the order's overview has it
	Code    string         // stable; one of [ReasonCodes]
	Reason  string         // one sentence
	Since   time.Time      // of what the reason is: of the order's last event, or as its task's reason has it
	Details map[string]any // the values that the sentence names, for programs
}

// The codes of a [Reason] beside those of a task, see [view.ReasonCodes].
const (
	ReasonSuspended   = "order_suspended"   // somebody must resume it
	ReasonBlacklisted = "order_blacklisted" // it is at its end
	ReasonIdle        = "order_idle"        // its schedule has not planned its next start yet
	ReasonPlanned     = "order_planned"     // the time of its start has not come
	ReasonSetback     = "order_setback"     // its step is repeated later
	ReasonMaxOrders   = "limit_chain"       // so many orders of its chain are under way as may be
	ReasonChain       = "chain_stopped"
	ReasonNode        = "node_stopped"
	ReasonJoin        = "order_join"     // its children have not ended
	ReasonWaiting     = "order_waiting"  // for what its node waits for
	ReasonLock        = "limit_lock"     // others hold a lock of its node
	ReasonPrompt      = "order_prompted" // for a person's answer
)

// ReasonCodes returns all codes of a [Reason].
func ReasonCodes() []string {
	return append(view.ReasonCodes(), ReasonSuspended, ReasonBlacklisted, ReasonIdle, ReasonPlanned, ReasonSetback, ReasonMaxOrders, ReasonChain,
		ReasonNode, ReasonJoin, ReasonWaiting, ReasonPrompt, ReasonLock)
}

// Why returns why the step of an order is not running, or that it is. The error is [ErrNoOrder] if there is no such order.
func (e *Engine) Why(ctx context.Context, chain, id string) (Reason, error) {
	o, _, err := e.read(ctx, chain+","+id)
	if err != nil {
		return Reason{}, err
	}
	d, _, err := e.stored(ctx, o)
	if err != nil {
		return Reason{}, err
	}
	r := Reason{State: o.state(d).Type, Since: when(cmp.Or(o.Changed, o.Created)).Time, Details: map[string]any{"node": o.Node}}
	if known, err := e.whyWaits(ctx, o, &r); known || err != nil {
		return r, err
	}
	if o.why(&r, d) {
		return r, nil
	}
	of, err := e.queue.Why(ctx, o.Task)
	if err != nil {
		return r, err
	}
	r.Code, r.Reason, r.Since = of.Code, of.Reason, of.Since
	for name, detail := range of.Details {
		r.Details[name] = detail
	}
	r.Details["task"] = string(o.Task)
	return r, nil
}

// whyWaits sets the reason of an order that waits for what its node says; it reports false if it does not.
func (e *Engine) whyWaits(ctx context.Context, o *Order, r *Reason) (known bool, err error) {
	if o.Suspended || o.Waiting == "" {
		return false, nil
	}
	if o.Line != nil {
		return true, e.whyLock(ctx, o, r)
	}
	g, err := e.graph(ctx, o.Chain, o.Version)
	if err != nil {
		return false, err
	}
	n, there := g.Node(o.Node)
	switch {
	case !there:
	case o.Waiting == forPrompt && n.Prompt != nil:
		o.whyPrompt(r, n.Prompt)
		return true, nil
	case (o.Waiting == typed.ForEvent || o.Waiting == typed.ForTime) && n.Wait != nil:
		o.whyWait(r, n.Wait)
		return true, nil
	}
	return false, nil
}

// resources are what an order may wait for that its node does not say, with what the reason is.
var resources = map[string]struct{ code, text string }{
	typed.ForMaxOrders: {ReasonMaxOrders, "It waits at the node %s until another order of its chain has ended: max_orders are under way."},
	typed.ForChain:     {ReasonChain, "It waits at the node %s until somebody starts its chain, which is stopped."},
	typed.ForNode:      {ReasonNode, "It waits until somebody starts the node %s, which is stopped."},
	typed.ForFile:      {ReasonWaiting, "It is at its end, the node %s, until its file is put away."},
}

// why sets the reason that the order itself has; it reports false where its step's task has one.
func (o *Order) why(r *Reason, d doing) bool {
	resource, waits := resources[o.Waiting]
	switch {
	case o.Blacklisted:
		return r.set(ReasonBlacklisted, "It is at its end, the node %s, and suspended: resuming it removes it.", o.Node)
	case d.task != nil && (d.task.State.Final() || !d.task.State.Queued() || d.task.Attempt > 0):
		return false
	case o.Suspended:
		return r.set(ReasonSuspended, "It is suspended at the node %s until somebody resumes it.", o.Node)
	case o.Idle:
		return r.set(ReasonIdle, "It waits at the node %s for its next start, by its schedule.", o.Node)
	case waits:
		return r.set(resource.code, resource.text, o.Node)
	case o.Fork != nil:
		return o.whyJoin(r)
	case o.whyLater(r, d):
		return true
	case o.Waiting != "" || d.task == nil:
		return r.set(ReasonWaiting, "It waits at the node %s.", o.Node)
	}
	return false
}

// whyLater sets the reason of an order that waits for the time of its step; it reports false for others.
func (o *Order) whyLater(r *Reason, d doing) bool {
	at := when(o.At)
	if o.At <= d.now {
		return false
	}
	switch r.State {
	case projection.SetBack:
		r.Details["at"], r.Details["count"] = at.Time, o.Setbacks
		return r.set(ReasonSetback, "It was set back at the node %s %d times in a row, and is repeated at %s.", o.Node, o.Setbacks, at.Format(time.RFC3339))
	case projection.Planned:
		r.Details["at"] = at.Time
		return r.set(ReasonPlanned, "It starts at %s.", at.Format(time.RFC3339))
	}
	return false
}

// set sets the code and the sentence.
func (r *Reason) set(code, format string, args ...any) bool {
	r.Code, r.Reason = code, fmt.Sprintf(format, args...)
	return true
}
