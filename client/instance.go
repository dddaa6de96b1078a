package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
)

// Instance is a process that runs tasks: a [Worker], or one in another language.
type Instance struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Jobs      []string `json:"jobs"` // patterns
	Capacity  int      `json:"capacity"`
	Running   int      `json:"running"`
	Leader    bool     `json:"leader"`
	Draining  bool     `json:"draining,omitempty"`
	ExpiresAt Time     `json:"expires_at"` // gone if it is not heard of until then
}

// Instances yields the instances that are there, the oldest first; a worker's token sees those that it has registered. An
// error is the last it yields.
func (c *Client) Instances(ctx context.Context) iter.Seq2[Instance, error] {
	return pages[Instance](ctx, c, "instances", "instances", v1+"instances", url.Values{}, 0)
}

// DrainInstance has an instance finish what it runs, and leave. It hears of it by its next heartbeat.
func (c *Client) DrainInstance(ctx context.Context, id string) error {
	if err := c.act(ctx, http.MethodPost, v1+"instances/"+url.PathEscape(id)+"/drain"); err != nil {
		return fmt.Errorf("client: drain %s: %w", id, err)
	}
	return nil
}
