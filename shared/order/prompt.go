package order

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// MaxComment is how many characters the comment of an answer may have.
const MaxComment = 4096

// The errors of [Engine.Answer], beside [ErrNoOrder] and [ErrState].
var (
	// ErrRole is returned if the role of who answers may not.
	ErrRole = errors.New("order: the role may not answer")
	// ErrNoAnswer is returned for an answer that the prompt does not have.
	ErrNoAnswer = errors.New("order: no such answer")
)

// Answer is a person's answer to a prompt.
type Answer struct {
	Answer  string                 // one of the prompt's
	Comment string                 // at most [MaxComment] characters; default: none
	May     func(role string) bool // whether who answers has a role, or one that includes it; required
}

// forPrompt is what an order waits for that asks a person.
const forPrompt = "prompt"

// prompt asks the node's question.
func (m *move) prompt(n *definition.GraphNode) {
	o := m.order
	o.Waiting = forPrompt
	if n.Prompt.Deadline > 0 {
		m.until(m.now + n.Prompt.Deadline.Microseconds())
	}
	m.say(event.OrderPrompted, typed.OrderPrompted{NodeID: n.ID, Deadline: when(o.Until)})
}

// until has the order's wait end at a time.
func (m *move) until(at int64) {
	m.order.Until = at
	m.alarm(at)
}

// Answer answers the prompt at which an order is: it goes on to the answer's node. The errors are [ErrNoOrder], [ErrRole],
// [ErrNoAnswer], and [ErrState] if nobody is asked, or the order is suspended.
func (e *Engine) Answer(ctx context.Context, chain, id string, a Answer) error {
	path := chain + "," + id
	return e.queue.Change(ctx, []string{path}, func(ctx context.Context, _ *store.Conflict) (queue.Follow, error) {
		m, err := e.moveOf(ctx, path)
		if err != nil {
			return queue.Follow{}, err
		}
		if err := m.answer(ctx, a); err != nil {
			return queue.Follow{}, err
		}
		return m.write(), nil
	})
}

func (m *move) answer(ctx context.Context, a Answer) error {
	n, err := m.node()
	if err != nil {
		return err
	}
	if m.order.Waiting != forPrompt || n.Kind != definition.KindPrompt {
		return refuse("nobody is asked: the order does not wait at a prompt")
	}
	next, known := n.Prompt.Answers[a.Answer]
	switch {
	case !a.May(n.Prompt.Role):
		return fmt.Errorf("%w: the prompt wants the role %s, or one that includes it", ErrRole, n.Prompt.Role)
	case m.order.Suspended:
		return refuse("it is suspended; resume it first, then answer")
	case !known:
		return fmt.Errorf("%w: want one of %s", ErrNoAnswer, choices(n.Prompt))
	}
	m.say(event.OrderAnswered, typed.OrderAnswered{Answer: a.Answer, Comment: a.Comment})
	return m.leaveFor(ctx, n, next)
}

// leaveFor ends the wait at a node and goes to another; the order finishes if there is none, or at its own end.
func (m *move) leaveFor(ctx context.Context, n *definition.GraphNode, next string) error {
	if err := m.stopWaiting(ctx); err != nil {
		return err
	}
	if next == "" || m.isLast(n, next) {
		return m.finish(ctx)
	}
	return m.goTo(ctx, next)
}

// overdue does what a node says of the end of a wait's time, if that has come. Being suspended stops no time: the order goes on to
// the next node, and stays suspended there, as it does when a running step ends.
func (m *move) overdue(ctx context.Context, n *definition.GraphNode) (changed bool, err error) {
	o := m.order
	if o.Until == 0 || o.Until > m.now {
		return false, nil
	}
	switch o.Waiting {
	case forPrompt:
		return true, m.leaveFor(ctx, n, n.Prompt.Default)
	case typed.ForTime:
		return true, m.leaveFor(ctx, n, n.Next)
	case typed.ForEvent:
		return true, m.failHere(ctx)
	}
	return false, nil
}

// staysWaiting reports whether the order waits for something that its suspension does not end.
func (o *Order) staysWaiting() bool {
	return o.Waiting == forPrompt || o.Waiting == typed.ForEvent || o.Waiting == typed.ForTime
}

// whyPrompt sets the reason of an order that waits at a prompt.
func (o *Order) whyPrompt(r *Reason, p *definition.Prompt) {
	r.Code = ReasonPrompt
	r.Reason = fmt.Sprintf("It waits at the node %s until somebody with the role %s answers %s.", o.Node, p.Role, choices(p))
	r.Details["role"], r.Details["answers"] = p.Role, slices.Sorted(maps.Keys(p.Answers))
	if o.Until > 0 {
		at := when(o.Until).Time
		r.Details["until"], r.Details["default"] = at, p.Default
		r.Reason = fmt.Sprintf("%s Without an answer it goes to %s at %s.", r.Reason, p.Default, at.Format(time.RFC3339))
	}
}

// choices lists the answers of a prompt.
func choices(p *definition.Prompt) string {
	return strings.Join(slices.Sorted(maps.Keys(p.Answers)), ", ")
}
