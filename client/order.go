package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/millrace/millrace/shared/event"
)

const ordersPath = v1 + "orders"

// NewOrder is an order for a job chain, as in JobScheduler. Zero values are the server's defaults; Chain and ID are required.
type NewOrder struct {
	Chain     string          `json:"-"`                   // the job chain's path
	ID        string          `json:"id"`                  // once in its chain
	Variables json.RawMessage `json:"variables,omitempty"` // an object of texts, numbers, booleans and lists of these; 64 KiB
	Node      string          `json:"node,omitempty"`      // where it begins; default: the chain's first node
	EndNode   string          `json:"end_node,omitempty"`  // it finishes after the step of this node
	Priority  int64           `json:"priority,omitempty"`  // of its steps' tasks: higher starts earlier
	RunAt     Time            `json:"run_at,omitzero"`     // the earliest start; default: at once
	Replace   bool            `json:"replace,omitempty"`   // an order that has the id makes room, once its running step has ended
}

// Order is an order of a job chain (OrderOverview on the wire).
type Order struct {
	Path      string          `json:"path"` // /CHAIN,ID
	NodeID    string          `json:"nodeId"`
	State     OrderState      `json:"orderProcessingState"`
	Obstacles []OrderObstacle `json:"obstacles"`
	StartedAt Time            `json:"startedAt,omitzero"` // of its first step; zero until then
	Version   int             `json:"version"`            // of its chain, from 1
	Variables json.RawMessage `json:"variables"`
}

// OrderState says what an order is doing: NotPlanned, Planned, Due, WaitingInTask, InTaskProcess, Setback, WaitingForResource or
// Blacklisted.
type OrderState struct {
	Type   string `json:"TYPE"`
	At     Time   `json:"at,omitzero"` // the earliest start of its step; zero: at once
	TaskID string `json:"taskId,omitempty"`
}

// OrderObstacle is what keeps an order from going on: Suspended, Setback, Prompt, Wait or Join.
type OrderObstacle struct {
	Type  string `json:"TYPE"`
	Until Time   `json:"until,omitzero"` // when it ends by itself; zero: it does not
}

func orderURL(chain, id string) string {
	return ordersPath + "/" + url.PathEscape(chain) + "/" + url.PathEscape(id)
}

// AddOrder adds an order, once however often the request is sent. An id that is there is a conflict (409).
func (c *Client) AddOrder(ctx context.Context, n NewOrder) (o Order, err error) {
	body, err := encode(n)
	if err == nil {
		_, err = c.ask(ctx, call{method: http.MethodPost, path: ordersPath + "/" + url.PathEscape(n.Chain), body: body, key: c.ownKey()}, &o)
	}
	if err != nil {
		return Order{}, fmt.Errorf("client: add the order %s to %s: %w", n.ID, n.Chain, err)
	}
	return o, nil
}

// Order returns an order by its chain's path and its id.
func (c *Client) Order(ctx context.Context, chain, id string) (o Order, err error) {
	if err := c.get(ctx, orderURL(chain, id), &o); err != nil {
		return o, fmt.Errorf("client: order %s of %s: %w", id, chain, err)
	}
	return o, nil
}

// Orders returns the orders of the job chains that path selects, as [Query.Path] does, at one EventId; empty: all.
func (c *Client) Orders(ctx context.Context, path string) ([]Order, event.ID, error) {
	var answer struct {
		Orders  []Order
		EventID event.ID `json:"eventId"`
	}
	q := call{method: http.MethodPost, path: base + "order", query: url.Values{"return": {"OrderOverview"}}, body: pathQuery(path)}
	if _, err := c.ask(ctx, q, &answer); err != nil {
		return nil, 0, fmt.Errorf("client: orders: %w", err)
	}
	return answer.Orders, answer.EventID, nil
}

// WhyOrder is why an order's step is not running.
type WhyOrder struct {
	State   string         `json:"state"` // as [OrderState.Type]
	Reason  string         `json:"reason"`
	Code    string         `json:"code"` // stable and machine-readable
	Since   Time           `json:"since,omitzero"`
	Details map[string]any `json:"details"`
}

// WhyOrder returns why an order's step is not running, in one sentence.
func (c *Client) WhyOrder(ctx context.Context, chain, id string) (why WhyOrder, err error) {
	if err := c.get(ctx, orderURL(chain, id)+"/why", &why); err != nil {
		return why, fmt.Errorf("client: why the order %s of %s waits: %w", id, chain, err)
	}
	return why, nil
}

// OrderAct is something that is done with orders.
type OrderAct struct {
	Kind      string          `json:"act"`                 // suspend, resume, set-node, skip, reset, run-now, move or remove
	Node      string          `json:"node,omitempty"`      // of set-node; required
	Version   int             `json:"version,omitempty"`   // of move; default: the newest
	Variables json.RawMessage `json:"variables,omitempty"` // of resume: an object, which is merged with the order's variables
}

// actBody is the body of an act on one order.
type actBody struct {
	Node      string          `json:"node,omitempty"`
	Version   int             `json:"version,omitempty"`
	Variables json.RawMessage `json:"variables,omitempty"`
}

// ActOnOrder does something with an order. It is sent once, since a second skip would be another one. A conflict (409) means that the
// order cannot do that as it is, or that it would make no difference.
func (c *Client) ActOnOrder(ctx context.Context, chain, id string, a OrderAct) error {
	q := call{method: http.MethodPost, path: orderURL(chain, id) + "/" + url.PathEscape(a.Kind)}
	if a.Kind == "remove" {
		q = call{method: http.MethodDelete, path: orderURL(chain, id)}
	} else {
		body, err := encode(actBody{Node: a.Node, Version: a.Version, Variables: a.Variables})
		if err != nil {
			return err
		}
		q.body = body
	}
	if _, err := c.repeat(ctx, q, -1); err != nil {
		return fmt.Errorf("client: %s the order %s of %s: %w", a.Kind, id, chain, err)
	}
	return nil
}

// Answer answers the prompt at which an order waits; the comment goes on the journal. It is sent once.
func (c *Client) Answer(ctx context.Context, chain, id, answer, comment string) error {
	body, err := encode(struct {
		Answer  string `json:"answer"`
		Comment string `json:"comment,omitempty"`
	}{answer, comment})
	if err == nil {
		_, err = c.repeat(ctx, call{method: http.MethodPost, path: orderURL(chain, id) + "/answer", body: body}, -1)
	}
	if err != nil {
		return fmt.Errorf("client: answer the order %s of %s: %w", id, chain, err)
	}
	return nil
}
