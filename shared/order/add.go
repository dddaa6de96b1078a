package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// MaxID is how many bytes the id of an order may have.
const MaxID = 500

// Request is a request for an order.
type Request struct {
	Chain     string          // path of a declared job chain
	ID        string          // 1 to [MaxID] bytes, once in its chain
	Node      string          // where it begins; default: the chain's first node
	EndNode   string          // it finishes after the step of this node, unless that fails; default: at an end of the chain
	Priority  int64           // of its steps' tasks; default 0
	RunAt     time.Time       // the earliest start; zero or past: at once
	Variables json.RawMessage // an object, see [CheckVariables]; default: none
	Replace   bool            // an order of the chain with this id makes room, once its running step has ended
	Parent    string          // of a fork's child: path of the order that forked
	Permanent bool            // a schedule makes it
	File      bool            // a file makes it
	PutAway   bool            // it finishes only when its file, whose path is its id, has been put away, see [Engine.Filed]
}

func (r *Request) path() string { return r.Chain + "," + r.ID }

// check returns an error for what is wrong whatever the definitions are.
func (r *Request) check() error {
	switch {
	case r.ID == "" || len(r.ID) > MaxID:
		return fmt.Errorf("%w: id: want 1 to %d bytes", ErrInvalid, MaxID)
	case !utf8.ValidString(r.ID) || strings.ContainsFunc(r.ID, unicode.IsControl):
		return fmt.Errorf("%w: id: want UTF-8 without control characters", ErrInvalid)
	case r.ID == "." || r.ID == "..":
		return fmt.Errorf("%w: id: want another than %q, which is no part of a URL", ErrInvalid, r.ID)
	}
	return CheckVariables(r.Variables)
}

// Added is the result of [Engine.Add].
type Added struct {
	Order    projection.OrderOverview
	Replayed bool // this is the result of an earlier request with the same idempotency key
}

// Add adds an order, which begins at once unless something keeps it. If once is not nil, the order is added once for all calls with
// the same key. The errors are [ErrNoChain], [ErrNoNode], [ErrExists], [ErrInvalid] and [journal.ErrIdempotencyMismatch].
func (e *Engine) Add(ctx context.Context, once *journal.Idempotency, r Request) (Added, error) {
	if err := r.check(); err != nil {
		return Added{}, err
	}
	a := &adding{e: e, request: r, once: e.onceOf(once), by: journal.Actor(ctx)}
	err := e.queue.Change(ctx, append(a.once.names(), r.path()), a.prepare)
	if errors.Is(err, errReplayed) {
		return a.result, nil
	}
	return a.result, err
}

// adding is one Add under way.
type adding struct {
	e       *Engine
	request Request
	once    *once
	by      string // who adds it
	result  Added
}

func (a *adding) prepare(ctx context.Context, lost *store.Conflict) (queue.Follow, error) {
	if err := a.replay(ctx); err != nil {
		return queue.Follow{}, err
	}
	m, err := a.e.newMove(ctx, &a.request, lost != nil)
	if err != nil {
		return queue.Follow{}, err
	}
	m.by = a.by
	writes, order := m, m.order
	before, cond, err := a.e.read(ctx, a.request.path())
	switch {
	case errors.Is(err, ErrNoOrder):
		err = m.add(ctx)
	case err == nil && a.request.Replace:
		writes, err = m.replace(ctx, before, cond)
	case err == nil:
		if err = a.replay(ctx); err == nil { // the same request may have added it meanwhile
			err = fmt.Errorf("%w: %s", ErrExists, a.request.path())
		}
	}
	if err != nil {
		return queue.Follow{}, err
	}
	return a.remember(writes, order), nil
}

// replay returns errReplayed if an earlier request had the idempotency key, whose result it takes.
func (a *adding) replay(ctx context.Context) error {
	err := a.once.replay(ctx, &a.result.Order)
	a.result.Replayed = errors.Is(err, errReplayed)
	return err
}

// remember returns what a move writes, and keeps the new order under the idempotency key.
func (a *adding) remember(m *move, order *Order) queue.Follow {
	a.result = Added{Order: order.overview(doing{now: m.now})}
	f := m.write()
	f.Ops = append(f.Ops, a.once.ops(a.result.Order)...)
	return f
}

// newMove returns the move of a new order that has not begun.
func (e *Engine) newMove(ctx context.Context, r *Request, again bool) (*move, error) {
	set, g, err := e.declared(ctx, r.Chain)
	if err != nil {
		return nil, err
	}
	version, ops, err := e.versionOf(ctx, g, again)
	if err != nil {
		return nil, err
	}
	o := &Order{
		Chain: r.Chain, ID: r.ID, Version: version, Created: e.micro(), EndNode: r.EndNode, Priority: r.Priority,
		Variables: r.Variables, Parent: r.Parent, Permanent: r.Permanent, File: r.File, PutAway: r.PutAway,
	}
	m := &move{e: e, set: set, graph: g, order: o, cond: store.Absent, now: o.Created, fresh: true, follow: queue.Follow{Ops: ops}}
	if len(ops) > 0 {
		m.follow.Names = append(m.follow.Names, ops[0].Item.Key.Partition)
	}
	if o.First = g.First(); r.Node != "" {
		o.First = r.Node
	}
	first, err := m.nodeAt(o.First)
	if err == nil {
		err = m.belongs(first)
	}
	if err != nil {
		return nil, err
	}
	o.First, o.Node = first.ID, first.ID
	if r.EndNode != "" {
		if _, err := m.nodeAt(r.EndNode); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoEndNode, err)
		}
	}
	if at := r.RunAt.UnixMicro(); !r.RunAt.IsZero() && at > m.now {
		o.At = at
	}
	return m, nil
}

// add begins a new order at its first node.
func (m *move) add(ctx context.Context) error {
	o := m.order
	n, err := m.node()
	if err != nil {
		return err
	}
	o.At = m.after(n.Delay, true)
	says := typed.OrderAdded{
		NodeID: o.Node, Version: o.Version, At: when(o.At), Parent: o.Parent, Permanent: o.Permanent, File: o.File,
	}
	if len(o.Variables) > 0 {
		says.Variables = o.variables()
	}
	m.say(event.OrderAdded, says)
	m.watch()
	m.visit(n)
	return m.enter(ctx, n)
}
