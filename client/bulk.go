package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// OrderFilter selects orders: those for which all of it holds. The zero value selects every order.
type OrderFilter struct {
	Portion `json:"-"`

	Path     string `json:"path,omitempty"`     // path query of job chains, as [Query.Path]
	State    string `json:"state,omitempty"`    // as [OrderState.Type]
	Node     string `json:"node,omitempty"`     // where they are
	Obstacle string `json:"obstacle,omitempty"` // as [OrderObstacle.Type]
}

// JobFilter selects jobs of topics: those for which all of it holds. The zero value selects every job.
type JobFilter struct {
	Portion `json:"-"`

	Path  string `json:"path,omitempty"`  // path query of jobs, /topics/TOPIC
	Topic string `json:"topic,omitempty"` // the topic
	State string `json:"state,omitempty"` // as [JobQuery.Type]; default ALL, and GIVEN_UP for retry

	Message string `json:"message,omitempty"` // their newest message is as this one, but for numbers, ids and what is quoted
}

// Portion is how much of what a filter selects is acted on, and how fast. The zero value is all of it, as fast as can be.
type Portion struct {
	Limit     int `json:"limit,omitempty"`      // so many at most, the first that are found
	PerSecond int `json:"per_second,omitempty"` // so many at most in a second, up to 1000
}

// BulkAct is an act on many orders or jobs. It is done step by step, whatever becomes of the client or the server.
type BulkAct struct {
	ID     string `json:"-"`
	Act    string `json:"act"`
	By     string `json:"by"`     // name of the token of who asked for it
	Count  int    `json:"count"`  // how many were selected
	Done   int    `json:"done"`   // how many it was done with
	Failed int    `json:"failed"` // how many refused it, or were gone
	State  string `json:"state"`  // running, stopped or done

	PerSecond int `json:"per_second"` // so many at most are done in a second; 0: as many as can be
}

// ActOnOrders begins an act on all orders that a filter selects, and returns its id and how many they are.
func (c *Client) ActOnOrders(ctx context.Context, a OrderAct, f OrderFilter) (id string, count int, err error) {
	return c.bulk(ctx, "orders", actOnOrders{a, f.Portion, f, false})
}

// CountOrders returns how many orders a filter selects for an act, and does nothing.
func (c *Client) CountOrders(ctx context.Context, a OrderAct, f OrderFilter) (count int, err error) {
	_, count, err = c.bulk(ctx, "orders", actOnOrders{a, f.Portion, f, true})
	return count, err
}

// ActOnJobs begins an act on all jobs that a filter selects, remove, stop or retry, and returns its id and how many they are.
func (c *Client) ActOnJobs(ctx context.Context, act string, f JobFilter) (id string, count int, err error) {
	return c.bulk(ctx, "jobs", actOnJobs{act, f.Portion, f, false})
}

// CountJobs returns how many jobs a filter selects for an act, and does nothing.
func (c *Client) CountJobs(ctx context.Context, act string, f JobFilter) (count int, err error) {
	_, count, err = c.bulk(ctx, "jobs", actOnJobs{act, f.Portion, f, true})
	return count, err
}

type actOnOrders struct {
	OrderAct
	Portion
	Filter OrderFilter `json:"filter"`
	DryRun bool        `json:"dry_run,omitempty"`
}

type actOnJobs struct {
	Act string `json:"act"`
	Portion
	Filter JobFilter `json:"filter"`
	DryRun bool      `json:"dry_run,omitempty"`
}

func (c *Client) bulk(ctx context.Context, what string, request any) (id string, count int, err error) {
	var began struct {
		ID    string
		Count int
	}
	body, err := encode(request)
	if err == nil {
		var answer reply
		if answer, err = c.repeat(ctx, call{method: http.MethodPost, path: v1 + what + ":act", body: body, key: c.ownKey()}, c.patience); err == nil {
			err = answer.decode(&began)
		}
	}
	if err != nil {
		return "", 0, fmt.Errorf("client: act on %s: %w", what, err)
	}
	return began.ID, began.Count, nil
}

func bulkURL(id string) string { return v1 + "acts/" + url.PathEscape(id) }

// BulkAct returns an act on many by its id.
func (c *Client) BulkAct(ctx context.Context, id string) (b BulkAct, err error) {
	if err := c.get(ctx, bulkURL(id), &b); err != nil {
		return b, fmt.Errorf("client: act %s: %w", id, err)
	}
	b.ID = id
	return b, nil
}

// WaitForAct waits until an act on many has ended: it is done, or stopped.
func (c *Client) WaitForAct(ctx context.Context, id string) (b BulkAct, err error) {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if b, err = c.BulkAct(ctx, id); err != nil || b.State != "running" {
			return b, err
		}
		if err := sleep(ctx, pause); err != nil {
			return b, err
		}
	}
}

// StopAct stops an act on many. What is done stays done. A conflict (409) means that it does not run.
func (c *Client) StopAct(ctx context.Context, id string) error { return c.setAct(ctx, id, "stop") }

// ResumeAct lets an act on many go on that was stopped. A conflict (409) means that it is not stopped.
func (c *Client) ResumeAct(ctx context.Context, id string) error { return c.setAct(ctx, id, "resume") }

func (c *Client) setAct(ctx context.Context, id, step string) error {
	if err := c.act(ctx, http.MethodPost, bulkURL(id)+"/"+step); err != nil {
		return fmt.Errorf("client: %s act %s: %w", step, id, err)
	}
	return nil
}
