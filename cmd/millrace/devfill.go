package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/client"
)

// fillIn gives the dashboard of a server with the definitions of "millrace dev" something to show. A store that has been filled stays as it is.
func fillIn(ctx context.Context, c console, at remote) {
	err := at.on(c, func(server *client.Client) error {
		if there, _, err := server.Orders(ctx, "/demo/"); err != nil || len(there) > 0 {
			return err
		}
		return errors.Join(fillJobs(ctx, server), fillOrders(ctx, server), fillStream(ctx, server), fillEvents(ctx, server))
	})
	if err != nil && ctx.Err() == nil {
		c.note("not all that the dashboard was to show could be added: %v", err)
	}
}

// demoChain is the job chain of "millrace dev".
const demoChain = "/demo/parcel"

// fillJobs adds jobs that succeed, that fail, that run, and that wait: for the one before them, for a time, for a queue that is suspended, and
// for somebody who runs them.
func fillJobs(ctx context.Context, server *client.Client) error {
	if err := server.SuspendQueue(ctx, "archive", true); err != nil {
		return err
	}
	var news []client.NewJob
	add := func(topic string, runAt time.Time, properties any) {
		given, _ := json.Marshal(properties) // a map of texts
		news = append(news, client.NewJob{Topic: topic, Properties: given, RunAt: runAt})
	}
	for i := range 30 {
		mail := map[string]string{"subject": fmt.Sprintf("Your parcel %d", 1001+i), "to": fmt.Sprintf("customer%d@example.org", i)}
		if i%4 == 3 {
			delete(mail, "to")
		}
		add("mail/send", time.Time{}, mail)
	}
	for _, of := range []string{"sales", "stock", "returns", "carriers"} {
		add("report/build", time.Time{}, map[string]string{"of": of})
	}
	for _, month := range []string{"2026-01", "2026-02", "2026-03"} {
		add("archive/month", time.Time{}, map[string]string{"month": month})
	}
	add("images/resize", time.Time{}, map[string]string{"width": "300"})
	add("mail/send", time.Now().Add(3*time.Hour), map[string]string{"subject": "A reminder", "to": "ada@example.org"})
	_, err := server.AddJobs(ctx, news)
	return err
}

// fillOrders adds orders that come to several nodes of the chain: some are stuck, some ask somebody, and some have come to their end.
func fillOrders(ctx context.Context, server *client.Client) error {
	for i := range 9 {
		order := client.NewOrder{Chain: demoChain, ID: fmt.Sprint(1001 + i), Variables: json.RawMessage(`{"to":"Bremen","country":"DE"}`)}
		switch {
		case i%3 == 2:
			order.Variables = json.RawMessage(`{"to":"Bremen"}`) // which is suspended, since nobody has said the country
		case i == 4:
			order.RunAt = client.Time{Time: time.Now().Add(20 * time.Minute)}
		}
		if _, err := server.AddOrder(ctx, order); err != nil {
			return err
		}
	}
	return nil
}

// The ids of who writes the stream, and of who reads it.
const (
	demoProducer = "5d0c2b1e-8f7a-4d3e-9c6b-1a2b3c4d5e6f"
	demoConsumer = "7e1f3a2c-6b5d-4c8e-a9f0-2b3c4d5e6f70"
)

// fillStream appends to a stream, of which a consumer has read a part.
func fillStream(ctx context.Context, server *client.Client) error {
	const stream, name, events, read = "scales", "Parcel was weighed", 40, 25
	var all []client.StreamEvent
	for i := range events {
		all = append(all, client.StreamEvent{
			Event:   client.StreamFact{Name: name},
			System:  client.StreamSystem{ID: demoProducer, Name: "scale-1", Time: time.Now().UTC().Format(time.RFC3339), Timezone: "UTC"},
			Trigger: client.StreamTrigger{Type: "automatic", Name: "scale"}, Payload: json.RawMessage(fmt.Sprintf(`{"parcel":%d,"grams":%d}`, 1001+i, 200+37*i%900)),
		})
	}
	if _, err := server.AppendToStream(ctx, demoProducer, stream, "", all...); err != nil {
		return err
	}
	return server.MoveOffset(ctx, demoConsumer, stream, name, read)
}

// fillEvents emits events to the handlers, and asks for a collection.
func fillEvents(ctx context.Context, server *client.Client) error {
	greet, flaky := client.HandlerName{Canvas: "demo", Space: "WORKER", Name: "greet"}, client.HandlerName{Canvas: "demo", Space: "WORKER", Name: "flaky"}
	for _, h := range []client.HandlerName{greet, flaky} {
		for i := range 3 {
			if _, err := server.EmitTo(ctx, h, client.NewEvent{Value: json.RawMessage(fmt.Sprint(i))}); err != nil {
				return err
			}
		}
	}
	_, _, err := server.EnqueueSync(ctx, "machine", "facts", 0)
	return err
}
