package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
)

// nothing declares nothing but a job chain: the jobs of topics need no declaration.
type nothing struct{}

var parcels = &definition.Set{
	Jobs:      []definition.Job{{Path: "/parcels/pack", Target: definition.Target{Instances: true}}},
	JobChains: []definition.JobChain{{Path: "/parcels/send", Nodes: []definition.Node{{ID: "pack", Job: "/parcels/pack"}, {ID: "sent"}}}},
}

// Current returns the set.
func (nothing) Current(context.Context) (*definition.Set, error) { return parcels, nil }

// Refresh is Current.
func (n nothing) Refresh(ctx context.Context) (*definition.Set, error) { return n.Current(ctx) }

// connect starts a server in this process and returns a client of it. Elsewhere the server is "millrace serve", at an address of its
// own.
func connect() (c *client.Client, end func()) {
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	orders := order.Open(order.Options{Store: s, Journal: j, Definitions: nothing{}})
	q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: nothing{}, Steps: orders})
	orders.Use(q)
	upkeep, stop := context.WithCancel(context.Background())
	go orders.Run(upkeep)
	handler := api.New(api.Options{Tokens: []access.Token{access.NewToken("me", access.Admin, "secret")}},
		api.Emit(j), api.Events(j), api.Objects(j), api.Jobs(q, nothing{}), api.Orders(orders), api.Acts(orders),
		api.Instances(membership.Open(membership.Options{Store: s}), q))
	http := httptest.NewServer(handler)
	c, err := client.New(client.Options{URL: http.URL, Token: "secret"})
	if err != nil {
		panic(err) // the address is a good one
	}
	return c, func() {
		c.Close()
		http.Close()
		stop()
		_ = j.Close()
	}
}

// Events are emitted; a snapshot has the state after them, and the EventId from which to read on.
func Example() {
	c, end := connect()
	defer end()
	ctx := context.Background()
	parcel := event.Key{Path: "/parcels/17"}
	_, err := c.Emit(ctx, []event.Event{
		{Type: "ParcelAccepted", Key: parcel, Fields: []byte(`"carrier":"dhl"`)},
		{Type: "ParcelMoved", Key: parcel, Fields: []byte(`"to":"Bremen"`)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	snapshot, err := c.Snapshot(ctx, "/parcels/")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range snapshot.Objects {
		fmt.Println(o.Key.Path, o.LastType, string(o.Fields))
	}
	later, err := c.Read(ctx, client.Query{After: snapshot.EventID})
	fmt.Println(len(later.Events), "events since", err)
	// Output:
	// /parcels/17 ParcelMoved "carrier":"dhl","to":"Bremen"
	// 0 events since <nil>
}

// A follower sees each event once, in order, across failures of the network and restarts of the server.
func ExampleClient_Follow() {
	c, end := connect()
	defer end()
	ctx := context.Background()
	go func() {
		for _, place := range []string{"Bremen", "Kiel"} {
			_, _ = c.Emit(ctx, []event.Event{{Type: "ParcelMoved", Key: event.Key{Path: "/parcels/17"}, Fields: fmt.Appendf(nil, `"to":%q`, place)}})
		}
	}()
	seen := 0
	for step, err := range c.Follow(ctx, client.Query{Types: []string{"ParcelMoved"}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, e := range step.Events {
			fmt.Println(e.Type, string(e.Fields))
			seen++
		}
		if seen == 2 {
			break
		}
	}
	// Output:
	// ParcelMoved "to":"Bremen"
	// ParcelMoved "to":"Kiel"
}

// A worker runs the jobs of a topic, here until it has run one of each kind.
func ExampleClient_Worker() {
	c, end := connect()
	defer end()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for n, properties := range []string{`{"to":"ada"}`, `{"to":"nobody"}`} {
		_, _, err := c.AddJob(ctx, client.NewJob{Topic: "mail/send", Properties: []byte(properties), Priority: int64(-n)})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	run := 0
	err := c.Worker(client.WorkerOptions{Jobs: map[string]client.Function{
		"/topics/mail/*": func(_ context.Context, t *client.Task) (any, error) {
			if run++; run == 2 {
				defer stop()
			}
			fmt.Println("attempt", t.Attempt, "at", string(t.Payload))
			if string(t.Payload) == `{"to":"nobody"}` {
				return nil, client.Reject(errors.New("there is nobody")) // trying again would not help
			}
			return map[string]bool{"sent": true}, nil
		},
	}}).Run(ctx)
	fmt.Println("the worker has left:", err)
	// Output:
	// attempt 1 at {"to":"ada"}
	// attempt 1 at {"to":"nobody"}
	// the worker has left: <nil>
}

// Orders go along a job chain; what keeps one is told, and ended.
func ExampleClient_AddOrder() {
	c, end := connect()
	defer end()
	ctx := context.Background()
	const chain = "/parcels/send"
	o, err := c.AddOrder(ctx, client.NewOrder{Chain: chain, ID: "17", Variables: []byte(`{"to":"Kiel"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(o.Path, "is", o.State.Type, "at", o.NodeID)
	if err := c.ActOnOrder(ctx, chain, "17", client.OrderAct{Kind: "suspend"}); err != nil {
		fmt.Println(err)
	}
	why, err := c.WhyOrder(ctx, chain, "17")
	fmt.Println(why.Code, err)
	err = c.ActOnOrder(ctx, chain, "17", client.OrderAct{Kind: "resume", Variables: []byte(`{"to":"Bremen"}`)})
	o, _ = c.Order(ctx, chain, "17")
	fmt.Println(string(o.Variables), err)
	// Output:
	// /parcels/send,17 is Due at pack
	// order_suspended <nil>
	// {"to":"Bremen"} <nil>
}

// An act on all orders that a filter selects goes on by itself.
func ExampleClient_ActOnOrders() {
	c, end := connect()
	defer end()
	ctx := context.Background()
	for _, id := range []string{"17", "18"} {
		if _, err := c.AddOrder(ctx, client.NewOrder{Chain: "/parcels/send", ID: id}); err != nil {
			fmt.Println(err)
			return
		}
	}
	id, count, err := c.ActOnOrders(ctx, client.OrderAct{Kind: "suspend"}, client.OrderFilter{Path: "/parcels/", Node: "pack"})
	if err != nil {
		fmt.Println(err)
		return
	}
	act, err := c.WaitForAct(ctx, id)
	fmt.Println(count, "selected,", act.Done, "done by", act.By, err)
	// Output:
	// 2 selected, 2 done by me <nil>
}
