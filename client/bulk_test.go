package client_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/client"
)

// An act on many whose response is lost is repeated with its key, so that it is done once.
func TestAnActOnManyIsRepeatedWithOneKey(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(context.Context, *client.Client) (string, int, error){
		"orders": func(ctx context.Context, c *client.Client) (string, int, error) {
			return c.ActOnOrders(ctx, client.OrderAct{Kind: "suspend"}, client.OrderFilter{})
		},
		"jobs": func(ctx context.Context, c *client.Client) (string, int, error) {
			return c.ActOnJobs(ctx, "remove", client.JobFilter{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: []answer{{}, {status: 503, body: `{"status":503}`}, {status: 202, body: `{"id":"a","count":3}`}}}
				id, count, err := act(t.Context(), dial(t, s, client.Options{}))
				if id != "a" || count != 3 || err != nil {
					t.Errorf("%q, %d, %v", id, count, err)
				}
				for i, key := range s.keys {
					if key == "" || key != s.keys[0] || s.asked[i] != s.asked[0] {
						t.Errorf("request %d: %q with the key %q, want the first again: %q with %q", i, s.asked[i], key, s.asked[0], s.keys[0])
					}
				}
			})
		})
	}
}

// How much of what is selected, and how fast, are members of the request; without them it is as it was.
func TestAnActOnSomeSaysHowMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := answer{status: 202, body: `{"id":"a","count":3}`}
		s := &script{answers: []answer{begun, begun, {status: 200, body: `{"count":3}`}}}
		c := dial(t, s, client.Options{})
		some := client.Portion{Limit: 3, PerSecond: 2}
		_, _, err := c.ActOnOrders(t.Context(), client.OrderAct{Kind: "suspend"}, client.OrderFilter{Portion: some})
		if err == nil {
			_, _, err = c.ActOnJobs(t.Context(), "remove", client.JobFilter{})
		}
		if err == nil {
			_, err = c.CountJobs(t.Context(), "retry", client.JobFilter{Portion: some, Message: "m"})
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{
			`{"act":"suspend","limit":3,"per_second":2,"filter":{}}`, `{"act":"remove","filter":{}}`,
			`{"act":"retry","limit":3,"per_second":2,"filter":{"message":"m"},"dry_run":true}`,
		} {
			if !strings.HasSuffix(s.asked[i], want) {
				t.Errorf("request %d is %s, want %s", i, s.asked[i], want)
			}
		}
	})
}
