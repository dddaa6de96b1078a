package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	fast "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	like "github.com/go-json-experiment/json/v1"

	"github.com/millrace/millrace/shared/event"
)

const (
	jobsPath = v1 + "jobs"
	jobBatch = jobsPath + ":batch"
)

// NewJob is a job for a topic, as in Sling's job handling. Zero values are the server's defaults; Topic is required. Keys and
// names have at most 255 characters.
type NewJob struct {
	Topic          string          // segments of letters, digits, _ and -, with slashes between
	Properties     json.RawMessage // an object, up to 256 KiB
	Priority       int64           // higher is better; default 0; from -(2^53-1) to 2^53-1
	RunAt          time.Time       // not before; default: at once
	Retries        *int            // 0 to 1,000,000; -1: no end; default: what its job or its queue says, or 10
	RetryDelay     *time.Duration  // between attempts; default: what its job or its queue says, or 2 s
	Unique         string          // while a job of the topic with this key is unfinished, AddJob returns that one
	UniqueWindow   time.Duration   // how long from the creation the key is held at least; default 0
	FairnessKey    string          // whose turn it takes in a round-robin queue; default: the topic's
	Concurrency    *JobConcurrency // default: no limit
	PreferInstance string          // the name of the instance that should run it: it is kept for that for 5 s
}

// JobConcurrency limits how many jobs with a key run at once: 1 to 10,000.
type JobConcurrency struct {
	Key   string `json:"key"`
	Limit int    `json:"limit"` // 1 to 10,000
}

// MarshalJSON returns the job as the body of a request.
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
	return fast.Marshal(&body, plainly)
}

// plainly is what encode does, by an encoder that takes half the time. It does not know json.Number, which a job has not.
var plainly = fast.JoinOptions(like.DefaultOptionsV1(), jsontext.EscapeForHTML(false))

// Job is a job of a topic, or any other task with the fields that apply to it.
type Job struct {
	ID             string          `json:"id"`
	Topic          string          `json:"topic,omitempty"` // empty if it is not a topic's
	Job            string          `json:"job"`             // path of the job
	State          string          `json:"state"`           // QUEUED, ACTIVE, SUCCEEDED, STOPPED, GIVEN_UP, ERROR or DROPPED
	Queue          string          `json:"queue"`
	Priority       int64           `json:"priority"` // higher is better
	CreatedAt      Time            `json:"created_at"`
	RunAt          Time            `json:"run_at,omitzero"`      // not before; zero: at once
	StartedAt      Time            `json:"started_at,omitzero"`  // zero until then
	FinishedAt     Time            `json:"finished_at,omitzero"` // zero until then
	Attempt        int             `json:"attempt"`              // from 1; 0 before the first
	Retries        int             `json:"retries"`              // how often it is tried again at most; -1: no end
	Unique         string          `json:"unique,omitempty"`
	FairnessKey    string          `json:"fairness_key,omitempty"`
	Concurrency    *JobConcurrency `json:"concurrency,omitempty"`
	PreferInstance string          `json:"prefer_instance,omitempty"`
	Schedule       string          `json:"schedule,omitempty"`   // the schedule that made it, if any
	Instance       string          `json:"instance,omitempty"`   // the instance that runs it, or ran it last
	Message        string          `json:"message,omitempty"`    // what the newest attempt ended with
	Output         json.RawMessage `json:"output,omitempty"`     // of a success, up to 256 KiB
	Properties     json.RawMessage `json:"properties,omitempty"` // its payload
	Progress       *JobProgress    `json:"progress,omitempty"`   // the newest report; nil: none
}

// JobProgress is what a running job reports of its progress.
type JobProgress struct {
	Step    int    `json:"step"`         // done so far
	Steps   int    `json:"steps"`        // in all
	ETA     Time   `json:"eta,omitzero"` // when it will be done
	Message string `json:"message,omitempty"`
}

// AddJob adds a job, once however often the request is sent. existing says that the returned job was there before, and holds the
// unique key. Concurrent calls share requests, see [Options.Unshared].
func (c *Client) AddJob(ctx context.Context, n NewJob) (job Job, existing bool, err error) {
	body, err := n.MarshalJSON() // which encode would go through once more
	var added []AddedJob
	if err == nil {
		added, err = c.jobs.do(ctx, body, 1)
	}
	if err != nil {
		return Job{}, false, fmt.Errorf("client: add a job to %s: %w", n.Topic, err)
	}
	return added[0].Job, added[0].Existing, nil
}

// addArray adds the n jobs of an array.
func (c *Client) addArray(ctx context.Context, array []byte, n int) ([]AddedJob, error) {
	if n > 1 || c.pipes.ready(operation{path: jobBatch}) {
		added, size, err := c.addBatch(ctx, array, n)
		if err == nil && size > largeAnswer {
			err = c.complete(ctx, added)
		}
		if n == 1 {
			err = ofTheOnly(err)
		}
		return added, err
	}
	added := make([]AddedJob, 1)
	answer, err := c.ask(ctx, call{method: http.MethodPost, path: jobsPath, body: elements(array), key: c.ownKey()}, &added[0].Job)
	added[0].Existing = answer.status == http.StatusOK
	return added, err
}

// ofTheOnly returns the error of a batch of one as that of its element.
func ofTheOnly(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	e.Detail = strings.ReplaceAll(e.Detail, "body[0]", "body")
	for i := range e.Fields {
		e.Fields[i].Location = strings.Replace(e.Fields[i].Location, "body[0]", "body", 1)
	}
	return err
}

// largeAnswer is how many bytes a response to a batch has before the server leaves out properties.
const largeAnswer = 1 << 20

// complete reads what the response to a batch may have left out.
func (c *Client) complete(ctx context.Context, added []AddedJob) (err error) {
	for i := range added {
		if a := &added[i]; err == nil && a.Existing && a.Properties == nil {
			a.Job, err = c.Job(ctx, a.ID)
		}
	}
	return err
}

// addBatch adds the n jobs of an array; size is that of the response in bytes.
func (c *Client) addBatch(ctx context.Context, array []byte, n int) (added []AddedJob, size int, err error) {
	answer, err := c.ask(ctx, call{method: http.MethodPost, path: jobBatch, body: array, key: c.ownKey(), lines: "body"}, &added)
	if err == nil && len(added) != n {
		err = fmt.Errorf("answer: %d results", len(added))
	}
	return added, len(answer.body), err
}

// AddedJob is one of several jobs that were added.
type AddedJob struct {
	Job
	Existing bool `json:"existing"` // the job was there before, and holds the unique key
}

// AddJobs adds 1 to 1,000 jobs by one request, once however often it is sent, and returns them in the same order. An invalid one
// refuses all. An error that is [Temporary] means that patience ended and that some may have been added. Of those that were
// there before, Properties and Output may be missing if there are megabytes of them.
func (c *Client) AddJobs(ctx context.Context, news []NewJob) (added []AddedJob, err error) {
	body, err := encode(news)
	if err == nil {
		added, _, err = c.addBatch(ctx, body, len(news))
	}
	if err != nil {
		return nil, fmt.Errorf("client: add %d jobs: %w", len(news), err)
	}
	return added, nil
}

func jobURL(id string) string { return jobsPath + "/" + url.PathEscape(id) }

// Job returns a job by its id, or any other task.
func (c *Client) Job(ctx context.Context, id string) (job Job, err error) {
	if err := c.get(ctx, jobURL(id), &job); err != nil {
		return job, fmt.Errorf("client: job %s: %w", id, err)
	}
	return job, nil
}

// RemoveJob drops a job that is not finished, even while it runs; a finished one leaves the history.
func (c *Client) RemoveJob(ctx context.Context, id string) error {
	// It is not repeated: after a lost response, the repetition would remove the dropped job from the history too.
	if _, err := c.repeat(ctx, call{method: http.MethodDelete, path: jobURL(id)}, -1); err != nil {
		return fmt.Errorf("client: remove job %s: %w", id, err)
	}
	return nil
}

// StopJob stops a job: at once if it is queued; one that runs is asked to stop. A finished one is a conflict (409).
func (c *Client) StopJob(ctx context.Context, id string) error {
	if err := c.act(ctx, http.MethodPost, jobURL(id)+"/stop"); err != nil {
		return fmt.Errorf("client: stop job %s: %w", id, err)
	}
	return nil
}

// JobQuery selects jobs.
type JobQuery struct {
	Type      string           `json:"type,omitempty"`      // ALL (default), ACTIVE, QUEUED, HISTORY, CANCELLED, SUCCEEDED, …
	Topic     string           `json:"topic,omitempty"`     // empty: all
	Templates []map[string]any `json:"templates,omitempty"` // see [Client.Jobs]; none: all jobs
	Limit     int              `json:"-"`                   // at most so many; 0: all
}

// Jobs yields the jobs that the query selects, page after page: those that are not finished by creation, the history newest
// first. In a template, a member is a condition: an operator (=, <, <=, >, >=, or ~ for texts that hold another) before the name of a field or a property. An
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
