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
	ID        string   `json:"id"`                 // given by the server
	Name      string   `json:"name"`               // its own choice, not unique
	Jobs      []string `json:"jobs"`               // patterns of the jobs that it runs
	Capacity  int      `json:"capacity"`           // how many tasks it runs at once
	Running   int      `json:"running"`            // leases that it has
	Leader    bool     `json:"leader"`             // one instance leads
	Draining  bool     `json:"draining,omitempty"` // it gets no more tasks
	ExpiresAt Time     `json:"expires_at"`         // the end of its lease, which its heartbeats extend
}

// Instances yields the registered instances, the oldest first; with a worker's token, those that this token has registered. An
// error is the last it yields.
func (c *Client) Instances(ctx context.Context) iter.Seq2[Instance, error] {
	return pages[Instance](ctx, c, "instances", "instances", v1+"instances", url.Values{}, 0)
}

// DrainInstance asks an instance to finish what it runs, and to leave. It learns of it by its next heartbeat.
func (c *Client) DrainInstance(ctx context.Context, id string) error {
	if err := c.act(ctx, http.MethodPost, v1+"instances/"+url.PathEscape(id)+"/drain"); err != nil {
		return fmt.Errorf("client: drain %s: %w", id, err)
	}
	return nil
}
