package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// SyncTask is the synchronization of a collection, as in EventNative's task scheduler.
type SyncTask struct {
	ID         string      `json:"id"`
	Source     string      `json:"source"`
	Collection string      `json:"collection"`
	Priority   int64       `json:"priority"` // at least 1; higher is better
	CreatedAt  Time        `json:"created_at"`
	StartedAt  Time        `json:"started_at"`  // zero until then
	FinishedAt Time        `json:"finished_at"` // zero until then
	Status     string      `json:"status"`      // SCHEDULED, RUNNING, SUCCESS, FAILED or CANCELED
	Score      json.Number `json:"score"`       // priority*10^12 - created_at in seconds since 1970
}

// EnqueueSync enqueues the synchronization of a collection, and returns its task's id; priority is at least 1, 0 is the server's
// default, 300. existing says that the collection is scheduled or running already, by the task of that id.
// Concurrent calls share requests, see [Options.Unshared].
func (c *Client) EnqueueSync(ctx context.Context, source, collection string, priority int64) (id string, existing bool, err error) {
	body, err := encode(NewSync{source, collection, priority})
	var enqueued []EnqueuedSync
	if err == nil {
		enqueued, err = c.syncs.do(ctx, body, 1)
	}
	if err != nil {
		return "", false, fmt.Errorf("client: enqueue %s of %s: %w", collection, source, err)
	}
	return enqueued[0].ID, enqueued[0].Existing, nil
}

// enqueueArray enqueues the n synchronizations of an array.
func (c *Client) enqueueArray(ctx context.Context, array []byte, n int) ([]EnqueuedSync, error) {
	if n > 1 {
		return c.enqueueBatch(ctx, array, n)
	}
	var one NewSync
	if err := json.Unmarshal(elements(array), &one); err != nil {
		return nil, err
	}
	query := url.Values{"source": {one.Source}, "collection": {one.Collection}}
	if one.Priority != 0 {
		query.Set("priority", strconv.FormatInt(one.Priority, 10))
	}
	task := make([]EnqueuedSync, 1)
	answer, err := c.ask(ctx, call{method: http.MethodPost, path: v1 + "tasks", query: query, key: c.ownKey()}, &task[0])
	task[0].Existing = answer.status == http.StatusOK
	return task, err
}

func (c *Client) enqueueBatch(ctx context.Context, array []byte, n int) (enqueued []EnqueuedSync, err error) {
	_, err = c.ask(ctx, call{method: http.MethodPost, path: v1 + "tasks:batch", body: array, key: c.ownKey(), lines: "body"}, &enqueued)
	if err == nil && len(enqueued) != n {
		err = fmt.Errorf("answer: %d results", len(enqueued))
	}
	return enqueued, err
}

// NewSync asks for the synchronization of a collection.
type NewSync struct {
	Source     string `json:"source"`
	Collection string `json:"collection"`
	Priority   int64  `json:"priority,omitempty"` // at least 1; 0 is the server's default, 300
}

// EnqueuedSync is the result of one NewSync.
type EnqueuedSync struct {
	ID       string `json:"task_id"`
	Existing bool   `json:"existing"` // the collection was scheduled or running already, by the task of that id
}

// EnqueueSyncs enqueues 1 to 1,000 synchronizations by one request, once however often it is sent, and returns their tasks in
// the same order. An invalid one refuses all. An error that is [Temporary] means that patience ended and that some may have been
// enqueued.
func (c *Client) EnqueueSyncs(ctx context.Context, news []NewSync) (enqueued []EnqueuedSync, err error) {
	body, err := encode(news)
	if err == nil {
		enqueued, err = c.enqueueBatch(ctx, body, len(news))
	}
	if err != nil {
		return nil, fmt.Errorf("client: enqueue %d tasks: %w", len(news), err)
	}
	return enqueued, nil
}

// ownKey returns an Idempotency-Key for a request that may be repeated, "" for a client that repeats nothing.
func (c *Client) ownKey() string {
	if c.patience < 0 {
		return ""
	}
	return rand.Text()
}

// SyncTask returns a task by its id.
func (c *Client) SyncTask(ctx context.Context, id string) (task SyncTask, err error) {
	if err := c.get(ctx, v1+"tasks/"+url.PathEscape(id), &task); err != nil {
		return task, fmt.Errorf("client: task %s: %w", id, err)
	}
	return task, nil
}

// SyncQuery selects tasks of a source.
type SyncQuery struct {
	Source     string    // required
	Start, End time.Time // of creation, both inclusive
	Collection string    // empty: all
	Status     string    // empty: all
	Limit      int       // at most so many; 0: all
}

// SyncTasks yields the tasks that the query selects, oldest first, page after page. An error is the last it yields.
func (c *Client) SyncTasks(ctx context.Context, q SyncQuery) iter.Seq2[SyncTask, error] {
	query := url.Values{
		"source": {q.Source}, "start": {q.Start.Format(time.RFC3339Nano)}, "end": {q.End.Format(time.RFC3339Nano)},
	}
	if q.Collection != "" {
		query.Set("collection", q.Collection)
	}
	if q.Status != "" {
		query.Set("status", q.Status)
	}
	return pages[SyncTask](ctx, c, "tasks of "+q.Source, "tasks", v1+"tasks", query, q.Limit)
}

// CancelSync cancels a task: at once if it is scheduled; a running one when its worker completes it. A finished one is a
// conflict (409).
func (c *Client) CancelSync(ctx context.Context, id string) error {
	if err := c.act(ctx, http.MethodPost, v1+"tasks/"+url.PathEscape(id)+"/cancel"); err != nil {
		return fmt.Errorf("client: cancel %s: %w", id, err)
	}
	return nil
}

// Retry makes a new task of one that is finished and did not succeed, once however often the request is sent; any other
// is a conflict (409).
func (c *Client) Retry(ctx context.Context, id string) (Job, error) {
	return c.RetryOnce(ctx, c.ownKey(), id)
}

// RetryOnce is Retry with a key of the caller's: called again with it within 24 hours, it returns the task made first.
func (c *Client) RetryOnce(ctx context.Context, key, id string) (job Job, err error) {
	q := call{method: http.MethodPost, path: jobURL(id) + "/retry", key: key}
	if _, err := c.ask(ctx, q, &job); err != nil {
		return Job{}, fmt.Errorf("client: retry %s: %w", id, err)
	}
	return job, nil
}

// Why is the reason why a task is not running, or that it is.
type Why struct {
	State   string         `json:"state"`
	Reason  string         `json:"reason"`         // one sentence
	Code    string         `json:"code"`           // stable
	Since   Time           `json:"since,omitzero"` // zero: not known
	Details map[string]any `json:"details"`        // the parts of the sentence
}

// Why returns why a task of any kind is not running.
func (c *Client) Why(ctx context.Context, id string) (why Why, err error) {
	if err := c.get(ctx, v1+"jobs/"+url.PathEscape(id)+"/why", &why); err != nil {
		return why, fmt.Errorf("client: why %s: %w", id, err)
	}
	return why, nil
}
