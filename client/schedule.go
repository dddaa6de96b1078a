package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Schedule makes tasks at regular times.
type Schedule struct {
	Name        string          `json:"name"`               // a collection's is sources/SOURCE/COLLECTION
	Cron        string          `json:"cron"`               // an expression; empty for one that fires once
	Timezone    string          `json:"timezone,omitempty"` // of the IANA database; default UTC
	Job         string          `json:"job,omitempty"`      // path of a collection, a handler or a job; empty with Order
	Order       *ScheduledOrder `json:"order,omitempty"`    // the order that it makes, or starts again, instead of tasks
	Payload     json.RawMessage `json:"payload,omitempty"`  // of its tasks
	Misfire     string          `json:"misfire,omitempty"`  // skip, once (default) or all
	Overlap     string          `json:"overlap,omitempty"`  // allow (default), skip or queue
	Suspended   bool            `json:"suspended"`          // it does not fire
	Description string          `json:"description"`        // of the expression, in words
	Next        []Time          `json:"next"`               // the next five times
	Last        *struct {
		FiredAt Time   `json:"fired_at"`
		Outcome string `json:"outcome,omitempty"` // the state of its task
		TaskID  string `json:"task_id,omitempty"`
	} `json:"last,omitempty"` // the newest tick; nil: none
	Warnings []string `json:"warnings"` // likely mistakes
}

// ScheduledOrder is the order of a schedule.
type ScheduledOrder struct {
	Chain string `json:"chain"` // path
	ID    string `json:"id"`
}

func schedulePath(name string) string { return v1 + "schedules/" + url.PathEscape(name) }

// Schedules yields all schedules by name. An error is the last it yields.
func (c *Client) Schedules(ctx context.Context) iter.Seq2[Schedule, error] {
	return pages[Schedule](ctx, c, "schedules", "schedules", v1+"schedules", url.Values{}, 0)
}

// Schedule returns a schedule by its name.
func (c *Client) Schedule(ctx context.Context, name string) (s Schedule, err error) {
	if err := c.get(ctx, schedulePath(name), &s); err != nil {
		return s, fmt.Errorf("client: schedule %s: %w", name, err)
	}
	return s, nil
}

// SuspendSchedule suspends a schedule, so that it does not fire, or resumes it from now on.
func (c *Client) SuspendSchedule(ctx context.Context, name string, on bool) error {
	act := "/resume"
	if on {
		act = "/suspend"
	}
	if err := c.act(ctx, http.MethodPost, schedulePath(name)+act); err != nil {
		return fmt.Errorf("client: schedule %s: %w", name, err)
	}
	return nil
}

// TriggerSchedule makes a task of a schedule now, and returns its id; of an order's schedule that of its first step, empty if that waits
// for something else. It is sent once, since each request makes a task.
func (c *Client) TriggerSchedule(ctx context.Context, name string) (id string, err error) {
	answer, err := c.send(ctx, call{method: http.MethodPost, path: schedulePath(name) + "/trigger"})
	var made struct {
		TaskID string `json:"task_id"`
	}
	if err == nil {
		err = answer.decode(&made)
	}
	if err != nil {
		return "", fmt.Errorf("client: trigger %s: %w", name, err)
	}
	return made.TaskID, nil
}

// BackfillSchedule makes the ticks of a schedule from one time to another, both inclusive, and returns how many they are.
// Ticks that were made before are not made again.
func (c *Client) BackfillSchedule(ctx context.Context, name string, from, to time.Time) (ticks int, err error) {
	body, err := json.Marshal(map[string]Time{"from": {from}, "to": {to}})
	if err != nil {
		return 0, err
	}
	q := call{method: http.MethodPost, path: schedulePath(name) + "/backfill", body: body}
	var made struct{ Ticks int }
	if _, err := c.ask(ctx, q, &made); err != nil {
		return 0, fmt.Errorf("client: backfill %s: %w", name, err)
	}
	return made.Ticks, nil
}
