package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/task"
)

// JobEngine keeps the tasks of topics; a [queue.Queue] is one.
type JobEngine interface {
	Engine
	Remove(ctx context.Context, id task.ID) error
	Jobs(ctx context.Context, l view.JobListing) (view.Page, error)
	Progress(ctx context.Context, id task.ID) (*queue.Progress, error)
}

// jobs is what the operations on jobs share.
type jobs struct {
	submission
	jobEngine JobEngine
}

func describeAddJob() *operation {
	return &operation{
		ID: "addJob", Tags: []string{"Jobs"}, Summary: "Add a job to a topic",
		Description: "201 with the new job, or 200 with the one that holds the unique key. A topic needs no declared job: a job that no " +
			"instance and no target can run waits until one can.",
		Parameters: params{idempotencyKey()},
		Body:       jsonBody(ref("NewJob"), map[string]any{"topic": "mail/send", "properties": map[string]any{"to": "ada@example.com"}}),
		Responses:  newOrThere(ref("Job"), "The job that holds the unique key"),
	}
}

func (j *jobs) add(x *exchange) error {
	b := take()
	defer b.give()
	body, err := x.within(b) // what is read of jobs is copied
	if err != nil {
		return err
	}
	n, err := readNewJobs()("body", body)
	if err != nil {
		return err
	}
	answer, err := j.submission.add(x, "", b.bytes, n)
	if err != nil {
		return err
	}
	return x.made(j.engine, &answer)
}

// made responds with a new task, or the one that was there already.
func (x *exchange) made(e Engine, answer *queue.Enqueued) error {
	added := &answer.Tasks[0]
	status, t := http.StatusCreated, added.Task
	if added.Existing {
		status = http.StatusOK
	}
	if err := x.fill(e, &t); err != nil && !errors.Is(err, queue.ErrNoTask) { // it may have gone since
		return err
	}
	return x.value(status, viewJob(&t, time.Now().UnixMicro()))
}

func describeJob() *operation {
	return &operation{
		ID: "oneJob", Tags: []string{"Jobs"}, Summary: "A job", Description: "Shows any other task too, by its id.",
		Parameters: params{pathParam("id", "The job's id")},
		Responses:  answers(http.StatusOK, typeJSON, ref("Job")), failures: []int{404},
	}
}

func describeRemoveJob() *operation {
	return &operation{
		ID: "removeJob", Tags: []string{"Jobs"}, Summary: "Remove a job",
		Description: "One that is not finished goes to the history as DROPPED, even while it runs; a finished one leaves the history.",
		Parameters:  params{pathParam("id", "The job's id")},
		Responses:   empty(), failures: []int{404},
	}
}

func describeStopJob() *operation {
	return &operation{
		ID: "stopJob", Tags: []string{"Jobs"}, Summary: "Stop a job",
		Description: "A queued job is STOPPED at once, a running one when its worker reports that it has stopped.",
		Parameters:  params{pathParam("id", "The job's id")},
		Responses:   empty(), failures: []int{404, 409},
	}
}

func (j *jobs) show(x *exchange) error {
	found, err := x.findAny(j.engine)
	if err != nil {
		return err
	}
	v := viewJob(&found, time.Now().UnixMicro())
	if found.State == task.Running {
		p, err := j.jobEngine.Progress(x.r.Context(), found.ID)
		if err != nil {
			return err
		}
		v.Progress = viewProgress(p)
	}
	return x.value(http.StatusOK, v)
}

func (j *jobs) remove(x *exchange) error {
	found, err := x.find(j.engine, task.Job, task.OfOrder)
	if err != nil {
		return err
	}
	if err := j.jobEngine.Remove(x.r.Context(), found.ID); err != nil {
		return err
	}
	return x.done()
}

func (j *jobs) stop(x *exchange) error {
	found, err := x.find(j.engine, task.Job, task.OfOrder)
	if err != nil {
		return err
	}
	if _, err := j.engine.Stop(x.r.Context(), found.ID); err != nil {
		return err
	}
	return x.done()
}

// jobView is a job with all that is known of it.
type jobView struct {
	ID             task.ID          `json:"id"`
	Topic          string           `json:"topic,omitempty"`
	Job            string           `json:"job"`
	State          task.Status      `json:"state"`
	Queue          string           `json:"queue"`
	Priority       int64            `json:"priority"`
	CreatedAt      string           `json:"created_at"`
	RunAt          string           `json:"run_at,omitempty"`
	StartedAt      string           `json:"started_at,omitempty"`
	FinishedAt     string           `json:"finished_at,omitempty"`
	Attempt        int              `json:"attempt"`
	Retries        int              `json:"retries"`
	Unique         string           `json:"unique,omitempty"`
	FairnessKey    string           `json:"fairness_key,omitempty"`
	Concurrency    *concurrencyView `json:"concurrency,omitempty"`
	PreferInstance string           `json:"prefer_instance,omitempty"`
	Schedule       string           `json:"schedule,omitempty"`
	Instance       string           `json:"instance,omitempty"`
	Message        string           `json:"message,omitempty"`
	Output         json.RawMessage  `json:"output,omitempty"`
	Properties     json.RawMessage  `json:"properties,omitempty"`
	Progress       *progressView    `json:"progress,omitempty"`
}

type concurrencyView struct {
	Key   string `json:"key"`
	Limit int    `json:"limit"`
}

type progressView struct {
	Step    int    `json:"step"`
	Steps   int    `json:"steps"`
	ETA     string `json:"eta,omitempty"`
	Message string `json:"message,omitempty"`
}

func viewJob(t *task.Task, now int64) jobView {
	v := jobView{
		ID: t.ID, Job: t.Job, State: t.StateAt(now, false).In(t.Dialect), Queue: t.Queue, Priority: t.Priority,
		CreatedAt: stampOf(t.Created), RunAt: stampOf(t.NotBefore), StartedAt: stampOf(t.Started), FinishedAt: stampOf(t.Finished),
		Attempt: t.Attempt, Retries: max(t.Attempts-1, -1), Unique: t.Unique, FairnessKey: t.Fairness, PreferInstance: t.Prefer,
		Schedule: t.Schedule, Instance: t.Instance, Message: t.Message, Output: t.Output, Properties: t.Payload,
	}
	if topic, ok := queue.TopicOf(t.Job); ok {
		v.Topic = topic
	}
	if c := t.Concurrency; c != nil {
		v.Concurrency = &concurrencyView{c.Key, c.Limit}
	}
	return v
}

func viewProgress(p *queue.Progress) *progressView {
	if p == nil {
		return nil
	}
	v := &progressView{Step: p.Step, Steps: p.Steps, Message: p.Message}
	if !p.ETA.IsZero() {
		v.ETA = formatTime(p.ETA)
	}
	return v
}

func jobSchema() *schema {
	return object("A task. Members that do not apply are left out", members{
		"id": text(""), "job": text("Path of what runs it"), "state": text("Of a job of a topic one of " + join(statusesOf(task.Job)) + "; other tasks have the statuses of their kind"), "queue": text(""),
		"priority": {Type: "integer"}, "created_at": dateTime(""),
		"topic":      text("Left out if its job is not a topic's"),
		"run_at":     dateTime("It does not start before this time; of a job that failed, its next attempt's"),
		"started_at": dateTime("The newest attempt's start"), "finished_at": dateTime(""), "attempt": whole("How often it was started", 0),
		"retries": whole("How often it is tried again at most; -1 has no end", -1), "unique": text(""), "fairness_key": text(""),
		"concurrency": concurrencySchema(), "prefer_instance": text(""), "schedule": text("Name of the schedule that made it"),
		"instance": text("The process that runs or ran it last"), "message": text("The message with which the newest attempt ended"),
		"output": {Description: "The result of a success: any JSON"}, "properties": {Description: "As they were given"},
		"progress": object("How far a running task is, as its worker has reported", members{
			"step": whole("", 0), "steps": whole("", 0), "eta": dateTime(""), "message": text(""),
		}, false, "step", "steps"),
	}, false, "id", "job", "state", "queue", "priority", "created_at", "attempt", "retries")
}

func concurrencySchema() *schema {
	limit := between("How many with the key may run at once", 1, maxConcurrency)
	return object("", members{"key": shortText(""), "limit": limit}, false, "key", "limit")
}
