package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// A permanent order is made by a schedule: at its end it goes back to its first node, and waits there for its next start. Starts that
// pass while it is under way are left out.

// maxStarts is how many starts an order remembers at most.
const maxStarts = 20

// Started is the result of [Engine.Start].
type Started struct {
	Task     task.ID // of the order's first step; empty if that was added before, or is added later
	Replayed bool    // this is the result of an earlier request with the same idempotency key
}

// Start plans a start of the permanent order of a schedule, which is added if it is not there. If key is not nil, it is planned once
// for all calls with the same key. The error is [ErrState] if nothing is planned: the order is suspended, no schedule made it, it has
// that start or a later one already, or the start is left out since the order is under way. Others are [ErrNoChain], [ErrInvalid] and
// [journal.ErrIdempotencyMismatch].
func (e *Engine) Start(ctx context.Context, key *journal.Idempotency, chain, id string, at time.Time) (result Started, err error) {
	r := Request{Chain: chain, ID: id, Permanent: true}
	if err := r.check(); err != nil {
		return Started{}, err
	}
	once := e.onceOf(key)
	err = e.queue.Change(ctx, append(once.names(), r.path()), func(ctx context.Context, lost *store.Conflict) (queue.Follow, error) {
		result = Started{}
		if err := once.replay(ctx, &result.Task); err != nil {
			return queue.Follow{}, err
		}
		m, err := e.moveOf(ctx, r.path())
		if errors.Is(err, ErrNoOrder) {
			if m, err = e.newMove(ctx, &r, lost != nil); err == nil {
				m.rest()
			}
		}
		if err == nil {
			err = m.plan(ctx, at.UnixMicro())
		}
		if errors.Is(err, ErrState) { // perhaps by the same request, which was made elsewhere since the key was looked up
			err = cmp.Or(once.replay(ctx, &result.Task), err)
		}
		if err != nil {
			return queue.Follow{}, err
		}
		if len(m.follow.Add) > 0 {
			result.Task = m.order.Task
		}
		f := m.write()
		f.Ops = append(f.Ops, once.ops(result.Task)...)
		return f, nil
	})
	if errors.Is(err, errReplayed) {
		result.Replayed, err = true, nil
	}
	return result, err
}

// plan notes a start, and begins with it if the order waits for one.
func (m *move) plan(ctx context.Context, at int64) error {
	o := m.order
	switch {
	case !o.Permanent:
		return refuse("no schedule made it")
	case o.Suspended:
		return refuse("it is suspended")
	case slices.Contains(o.Starts, at), at <= o.LastStart:
		return refuse("it has this start, or a later one")
	case len(o.Starts) >= maxStarts:
		return refuse("it has as many starts before it as may be")
	case !o.Idle && at <= m.now: // this one passes now
		return refuse("it is under way")
	}
	o.Starts = append(o.Starts, at)
	slices.Sort(o.Starts)
	if o.Idle {
		return m.begin(ctx)
	}
	return nil
}

// begin starts an order that waits for its next start with the first of those that are planned.
func (m *move) begin(ctx context.Context) error {
	o := m.order
	n, err := m.node()
	if err != nil {
		return err
	}
	o.LastStart, o.Starts, o.Idle = o.Starts[0], o.Starts[1:], false
	o.At = max(o.LastStart, 0)
	if o.At <= m.now {
		o.At = 0
	}
	o.At = m.after(n.Delay, true)
	m.say(event.OrderResumed, typed.OrderResumed{At: when(o.At)})
	m.watch()
	m.visit(n)
	return m.enter(ctx, n)
}

// rest lets the order wait at its first node for its next start.
func (m *move) rest() {
	o := m.order
	o.Idle, o.At = true, 0
	says := typed.OrderAdded{NodeID: o.Node, Version: o.Version, Permanent: true}
	if len(o.Variables) > 0 {
		says.Variables = o.variables()
	}
	m.say(event.OrderAdded, says)
}

// again lets a permanent order that has finished go back to the first node of its chain's newest version. If the chain is not
// declared any more, the order is gone.
func (m *move) again(ctx context.Context) error {
	o := m.order
	fresh, err := m.e.newMove(ctx, &Request{Chain: o.Chain, ID: o.ID, Priority: o.Priority, Permanent: true}, true)
	if errors.Is(err, ErrNoChain) {
		m.gone = true
		return nil
	}
	if err != nil {
		return err
	}
	fresh.order.LastStart = o.LastStart
	fresh.order.Starts = slices.DeleteFunc(o.Starts, func(at int64) bool { return at <= m.now })
	m.order, m.graph = fresh.order, fresh.graph
	m.follow.Ops = joinedOps(m.follow.Ops, fresh.follow.Ops)
	m.follow.Names = append(m.follow.Names, fresh.follow.Names...)
	if m.rest(); len(m.order.Starts) > 0 {
		return m.begin(ctx)
	}
	return nil
}

// Unstart takes back the starts of a schedule's order that are later than now.
func (e *Engine) Unstart(ctx context.Context, chain, id string, now time.Time) error {
	if chain == "" || id == "" {
		return fmt.Errorf("%w: no order", ErrInvalid)
	}
	return e.changeIfThere(ctx, chain+","+id, func(m *move, ctx context.Context) (changed bool, err error) {
		o, later := m.order, func(at int64) bool { return at > now.UnixMicro() }
		if !o.Permanent {
			return false, nil
		}
		before := len(o.Starts)
		o.Starts = slices.DeleteFunc(o.Starts, later)
		changed = len(o.Starts) < before
		if o.Idle || o.Suspended || !later(o.LastStart) {
			return changed, nil
		}
		d, _, err := m.e.stored(ctx, o)
		if err != nil || o.started(d) > 0 { // its step has begun, and perhaps waits for another attempt
			return changed, err
		}
		if running, err := m.withdraw(ctx); running || err != nil {
			return changed, err
		}
		if err := m.leave(ctx); err != nil {
			return false, err
		}
		o.LastStart, o.RingsAt = 0, 0
		m.rest()
		return true, nil
	})
}
