package client_test

import (
	"context"
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
