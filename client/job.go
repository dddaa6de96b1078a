package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/millrace/millrace/shared/event"
)

const jobsPath = v1 + "jobs"

// NewJob is a job for a topic (seed 004). Zero values are the server's defaults.
type NewJob struct {
	Topic          string
	Properties     json.RawMessage // an object, up to 256 KiB
	Priority       int64
	RunAt          time.Time
	Retries        *int // -1: no end
	RetryDelay     *time.Duration
	Unique         string        // while a job of the topic with this key is unfinished, that one is the answer
	UniqueWindow   time.Duration // and for so long from the creation
	FairnessKey    string
	Concurrency    *JobConcurrency
	PreferInstance string
}

// JobConcurrency limits how many jobs with a key run at once.
type JobConcurrency struct {
	Key   string `json:"key"`
	Limit int    `json:"limit"`
}

// MarshalJSON answers the job as the server takes it.
func (n NewJob) MarshalJSON() ([]byte, error) {
	type window struct {
		Key    string `json:"key"`
		Window string `json:"window"`
	}
	body := struct {
		Topic          string          `json:"topic"`
		Properties     json.RawMessage `json:"properties,omitempty"`
		Priority       int64           `json:"priority,omitempty"`
		RunAt          Time            `json:"run_at,omitzero"`
		Retries        *int            `json:"retries,omitempty"`
		RetryDelay     string          `json:"retry_delay,omitempty"`
		Unique         any             `json:"unique,omitempty"`
		FairnessKey    string          `json:"fairness_key,omitempty"`
		Concurrency    *JobConcurrency `json:"concurrency,omitempty"`
		PreferInstance string          `json:"prefer_instance,omitempty"`
	}{
		Topic: n.Topic, Properties: n.Properties, Priority: n.Priority, RunAt: Time{n.RunAt}, Retries: n.Retries,
		FairnessKey: n.FairnessKey, Concurrency: n.Concurrency, PreferInstance: n.PreferInstance,
	}
	if n.RetryDelay != nil {
		body.RetryDelay = event.FormatDuration(*n.RetryDelay)
	}
	switch {
	case n.UniqueWindow > 0:
		body.Unique = window{n.Unique, event.FormatDuration(n.UniqueWindow)}
	case n.Unique != "":
		body.Unique = n.Unique
	}
	return encode(body)
}

// Job is a job of a topic, or any other task with what it has of one.
type Job struct {
	ID             string          `json:"id"`
	Topic          string          `json:"topic,omitempty"`
	Job            string          `json:"job"`   // path of what runs it
	State          string          `json:"state"` // QUEUED, ACTIVE, SUCCEEDED, STOPPED, GIVEN_UP, ERROR or DROPPED
	Queue          string          `json:"queue"`
	Priority       int64           `json:"priority"`
	CreatedAt      Time            `json:"created_at"`
	RunAt          Time            `json:"run_at,omitzero"`
	StartedAt      Time            `json:"started_at,omitzero"`
	FinishedAt     Time            `json:"finished_at,omitzero"`
	Attempt        int             `json:"attempt"`
	Retries        int             `json:"retries"`
	Unique         string          `json:"unique,omitempty"`
	FairnessKey    string          `json:"fairness_key,omitempty"`
	Concurrency    *JobConcurrency `json:"concurrency,omitempty"`
	PreferInstance string          `json:"prefer_instance,omitempty"`
	Schedule       string          `json:"schedule,omitempty"`
	Instance       string          `json:"instance,omitempty"`
	Message        string          `json:"message,omitempty"`
	Output         json.RawMessage `json:"output,omitempty"`
	Properties     json.RawMessage `json:"properties,omitempty"`
	Progress       *JobProgress    `json:"progress,omitempty"`
}

// JobProgress is how far a running job says it is.
type JobProgress struct {
	Step    int    `json:"step"`
	Steps   int    `json:"steps"`
	ETA     Time   `json:"eta,omitzero"`
	Message string `json:"message,omitempty"`
}

// AddJob adds a job, once however often the request has to be sent. Existing says that the unique key is held by the job
// that is answered.
func (c *Client) AddJob(ctx context.Context, n NewJob) (job Job, existing bool, err error) {
	body, err := encode(n)
	var answer reply
	if err == nil {
		answer, err = c.ask(ctx, call{method: http.MethodPost, path: jobsPath, body: body, key: c.ownKey()}, &job)
	}
	if err != nil {
		return Job{}, false, fmt.Errorf("client: add a job to %s: %w", n.Topic, err)
	}
	return job, answer.status == http.StatusOK, nil
}

func jobURL(id string) string { return jobsPath + "/" + url.PathEscape(id) }

// Job answers a job by its id, or any other task.
func (c *Client) Job(ctx context.Context, id string) (job Job, err error) {
	if err := c.get(ctx, jobURL(id), &job); err != nil {
		return job, fmt.Errorf("client: job %s: %w", id, err)
	}
	return job, nil
}

// RemoveJob drops a job that is not finished, even while it runs; a finished one leaves the history.
func (c *Client) RemoveJob(ctx context.Context, id string) error {
	// It is not repeated: what was done unheard would be done to the history too.
	if _, err := c.repeat(ctx, call{method: http.MethodDelete, path: jobURL(id)}, -1); err != nil {
		return fmt.Errorf("client: remove job %s: %w", id, err)
	}
	return nil
}

// StopJob stops a job: at once if it is queued; one that runs is asked to. A finished one is a conflict (409).
func (c *Client) StopJob(ctx context.Context, id string) error {
	if err := c.act(ctx, http.MethodPost, jobURL(id)+"/stop"); err != nil {
		return fmt.Errorf("client: stop job %s: %w", id, err)
	}
	return nil
}

// JobQuery selects jobs.
type JobQuery struct {
	Type      string           `json:"type,omitempty"`  // ALL (default), ACTIVE, QUEUED, HISTORY, CANCELLED, SUCCEEDED, …
	Topic     string           `json:"topic,omitempty"` // empty: all
	Templates []map[string]any `json:"templates,omitempty"`
	Limit     int              `json:"-"` // at most so many; 0: all
}

// Jobs yields the jobs that the query selects, page after page: those that are not finished by creation, the history newest
// first. In a template, a member is a condition: an operator (=, <, <=, >, >=) before the name of a field or a property. An
// error is the last it yields.
func (c *Client) Jobs(ctx context.Context, q JobQuery) iter.Seq2[Job, error] {
	if len(q.Templates) == 0 {
		query := url.Values{}
		if q.Type != "" {
			query.Set("type", q.Type)
		}
		if q.Topic != "" {
			query.Set("topic", q.Topic)
		}
		return pages[Job](ctx, c, "jobs", "jobs", jobsPath, query, q.Limit)
	}
	body, err := json.Marshal(q)
	if err != nil {
		return func(yield func(Job, error) bool) { yield(Job{}, fmt.Errorf("client: search jobs: %w", err)) }
	}
	search := call{method: http.MethodPost, path: jobsPath + "/search", query: url.Values{}, body: body}
	return pagesOf[Job](ctx, c, "search jobs", "jobs", search, q.Limit)
}
