package main

import (
	"io"
	"net/http/httptest"
	"testing"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/definition"
)

// TestDevIsFilled: what "millrace dev" declares is valid, and its dashboard has orders, jobs and a stream with a lag to show; a store that
// is filled stays as it is.
func TestDevIsFilled(t *testing.T) {
	n := whole(t)
	set, err := definition.Read("dev.yaml", demonstration)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Definitions.Apply(t.Context(), set, definition.FromFile); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(n.handler)
	t.Cleanup(server.Close)
	at := remote{URL: server.URL, Token: "secret"}
	shown := func() (orders, jobs int, behind int64) {
		err := at.on(console{out: io.Discard, err: io.Discard}, func(c *client.Client) error {
			there, _, err := c.Orders(t.Context(), "/demo/")
			if err != nil {
				return err
			}
			for _, err := range c.Jobs(t.Context(), client.JobQuery{Type: "ALL"}) {
				if err != nil {
					return err
				}
				jobs++
			}
			for consumer, err := range c.StreamConsumers(t.Context(), "scales") {
				if err != nil {
					return err
				}
				behind = consumer.Behind
			}
			orders = len(there)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return orders, jobs, behind
	}
	for range 2 {
		fillIn(t.Context(), console{out: io.Discard, err: io.Discard}, at)
		// Schedules may have added some ticks to the 39 jobs.
		if orders, jobs, behind := shown(); orders != 9 || jobs < 39 || jobs > 50 || behind != 15 {
			t.Errorf("there are %d orders and %d jobs, and a consumer is %d behind", orders, jobs, behind)
		}
	}
}
