package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/client"
)

// orderCommand is all that can be done with orders of job chains.
type orderCommand struct {
	Add     orderAdd     `cmd:"" help:"Add an order to a job chain."`
	Show    orderShow    `cmd:"" help:"Print an order."`
	List    orderList    `cmd:"" help:"List the orders of job chains."`
	Why     orderWhy     `cmd:"" help:"Say why an order's step is not running."`
	Suspend orderSuspend `cmd:"" help:"Keep an order where it is."`
	Resume  orderResume  `cmd:"" help:"Let a suspended order go on, with changed variables if given."`
	SetNode orderSetNode `cmd:"" help:"Send an order to a node, once its running step has ended."`
	Skip    orderSkip    `cmd:"" help:"Let an order pass the node where it is."`
	Reset   orderReset   `cmd:"" help:"Send an order back to its first node, resumed."`
	RunNow  orderRunNow  `cmd:"" help:"Let an order wait for no time."`
	Move    orderMove    `cmd:"" help:"Move an order to another version of its job chain."`
	Answer  orderAnswer  `cmd:"" help:"Answer the prompt at which an order waits."`
	Remove  orderRemove  `cmd:"" help:"Remove an order, once its running step has ended."`
	Act     orderAct     `cmd:"" help:"Do one of these with all orders that a filter selects."`
}

// oneOrder is an order on a server.
type oneOrder struct {
	remote
	Chain string `arg:"" help:"The job chain's path."`
	ID    string `arg:"" help:"The order's id."`
}

// act does something with the order.
func (o oneOrder) act(ctx context.Context, c console, a client.OrderAct) error {
	return o.on(c, func(server *client.Client) error { return server.ActOnOrder(ctx, o.Chain, o.ID, a) })
}

// variables is JSON that a flag or an argument holds; empty: none.
func variables(text string) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
		return nil, misused("the variables are no JSON object: %s", text)
	}
	return json.RawMessage(text), nil
}

type orderAdd struct {
	oneOrder
	format
	Variables string        `arg:"" optional:"" help:"What its steps see and change: a JSON object of texts, numbers, booleans and lists of these."`
	Node      string        `help:"Where it begins; default: the chain's first node." placeholder:"ID"`
	EndNode   string        `help:"It finishes after the step of this node." placeholder:"ID"`
	Priority  int64         `help:"Of its steps: higher is sooner; default 0." placeholder:"N"`
	Delay     time.Duration `help:"Not before this time is over, such as 5m." xor:"delay" placeholder:"TIME"`
	At        time.Time     `help:"Not before then, such as 2026-01-31T12:00:00Z." xor:"delay" placeholder:"TIME"`
	Replace   bool          `help:"An order that has the id makes room, once its running step has ended."`
}

func (orderAdd) Help() string {
	return `Prints the order's path. An id that is there is a conflict.

    millrace order add /folder/chain 117 '{"file":"in.csv"}'`
}

// Run adds the order.
func (a orderAdd) Run(ctx context.Context, c console) error {
	given, err := variables(a.Variables)
	if err != nil {
		return err
	}
	n := client.NewOrder{
		Chain: a.Chain, ID: a.ID, Variables: given, Node: a.Node, EndNode: a.EndNode, Priority: a.Priority,
		RunAt: client.Time{Time: a.At}, Replace: a.Replace,
	}
	if a.Delay != 0 {
		n.RunAt = client.Time{Time: time.Now().Add(a.Delay)}
	}
	return a.on(c, func(server *client.Client) error {
		o, err := server.AddOrder(ctx, n)
		if err != nil {
			return err
		}
		return a.line(c, o.Path, o)
	})
}

type orderShow struct {
	oneOrder
	format
}

// Run prints the order.
func (s orderShow) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error {
		o, err := server.Order(ctx, s.Chain, s.ID)
		return s.show(c, o, err)
	})
}

type orderList struct {
	remote
	format
	Path     string `arg:"" optional:"" help:"Chains: /a/b one, /a/ all below, /a/* those directly below, | joins several; default: all."`
	State    string `help:"Only those that are doing this, such as Due, Setback or Blacklisted." placeholder:"STATE"`
	Node     string `help:"Only those at this node." placeholder:"ID"`
	Obstacle string `help:"Only those that this keeps, such as Suspended." placeholder:"OBSTACLE"`
}

// Run prints the orders.
func (l orderList) Run(ctx context.Context, c console) error {
	return l.on(c, func(server *client.Client) error {
		all, _, err := server.Orders(ctx, l.Path)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(o client.Order) bool { return !l.wants(&o) })
		return listed(c, l.format, "orders", all, "ORDER\tNODE\tSTATE\tOBSTACLES\tAT\tSTARTED\tVERSION", func(o *client.Order) []any {
			return []any{o.Path, o.NodeID, o.State.Type, obstacles(o), when(o.State.At), when(o.StartedAt), o.Version}
		})
	})
}

func (l *orderList) wants(o *client.Order) bool {
	blocked := l.Obstacle == "" || slices.ContainsFunc(o.Obstacles, func(b client.OrderObstacle) bool { return b.Type == l.Obstacle })
	return blocked && (l.State == "" || l.State == o.State.Type) && (l.Node == "" || l.Node == o.NodeID)
}

func obstacles(o *client.Order) string {
	if len(o.Obstacles) == 0 {
		return "-"
	}
	names := make([]string, len(o.Obstacles))
	for i := range o.Obstacles {
		names[i] = o.Obstacles[i].Type
	}
	return strings.Join(names, ",")
}

type orderWhy struct {
	oneOrder
	format
}

// Run prints the reason.
func (w orderWhy) Run(ctx context.Context, c console) error {
	return w.on(c, func(server *client.Client) error {
		why, err := server.WhyOrder(ctx, w.Chain, w.ID)
		if err != nil {
			return err
		}
		return w.line(c, why.Reason, why)
	})
}

type orderSuspend struct{ oneOrder }

// Run suspends the order.
func (s orderSuspend) Run(ctx context.Context, c console) error {
	return s.act(ctx, c, client.OrderAct{Kind: "suspend"})
}

type orderResume struct {
	oneOrder
	Variables string `arg:"" optional:"" help:"A JSON object, which is merged with the order's variables."`
}

// Run resumes the order.
func (r orderResume) Run(ctx context.Context, c console) error {
	changed, err := variables(r.Variables)
	if err != nil {
		return err
	}
	return r.act(ctx, c, client.OrderAct{Kind: "resume", Variables: changed})
}

type orderSetNode struct {
	oneOrder
	Node string `arg:"" help:"Id of the node."`
}

// Run sends the order to the node.
func (s orderSetNode) Run(ctx context.Context, c console) error {
	return s.act(ctx, c, client.OrderAct{Kind: "set-node", Node: s.Node})
}

type orderSkip struct{ oneOrder }

// Run lets the order pass its node.
func (s orderSkip) Run(ctx context.Context, c console) error {
	return s.act(ctx, c, client.OrderAct{Kind: "skip"})
}

type orderReset struct{ oneOrder }

// Run sends the order back to its first node.
func (r orderReset) Run(ctx context.Context, c console) error {
	return r.act(ctx, c, client.OrderAct{Kind: "reset"})
}

type orderRunNow struct{ oneOrder }

// Run ends what time the order waits for.
func (r orderRunNow) Run(ctx context.Context, c console) error {
	return r.act(ctx, c, client.OrderAct{Kind: "run-now"})
}

type orderMove struct {
	oneOrder
	Version int `arg:"" optional:"" help:"Of the chain; default: the newest."`
}

// Run moves the order.
func (m orderMove) Run(ctx context.Context, c console) error {
	if m.Version < 0 {
		return misused("the version is %d, want at least 1", m.Version)
	}
	return m.act(ctx, c, client.OrderAct{Kind: "move", Version: m.Version})
}

type orderAnswer struct {
	oneOrder
	Answer  string `arg:"" help:"One of the prompt's answers."`
	Comment string `arg:"" optional:"" help:"Why; it goes on the journal."`
}

// Run answers the order's prompt.
func (a orderAnswer) Run(ctx context.Context, c console) error {
	return a.on(c, func(server *client.Client) error { return server.Answer(ctx, a.Chain, a.ID, a.Answer, a.Comment) })
}

type orderRemove struct{ oneOrder }

// Run removes the order.
func (r orderRemove) Run(ctx context.Context, c console) error {
	return r.act(ctx, c, client.OrderAct{Kind: "remove"})
}
