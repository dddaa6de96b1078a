package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace/millrace/client"
)

// jobCommand is all that can be done with jobs of topics.
type jobCommand struct {
	Add    jobAdd    `cmd:"" help:"Add a job to a topic."`
	List   jobList   `cmd:"" help:"List jobs: those that are not finished oldest first, the history newest first."`
	Search jobSearch `cmd:"" help:"Find jobs by their fields and properties."`
	Show   jobShow   `cmd:"" help:"Print a job."`
	Stop   jobStop   `cmd:"" help:"Stop jobs."`
	Remove jobRemove `cmd:"" help:"Remove jobs, even while they run; finished ones leave the history."`
	Retry  jobRetry  `cmd:"" help:"Do finished jobs again that did not succeed."`
	Act    jobAct    `cmd:"" help:"Remove, stop or retry all jobs that a filter selects."`
}

type jobAdd struct {
	remote
	format
	Topic       string        `arg:"" help:"Topic: segments of letters, digits, _ and -, with a slash between them."`
	Properties  string        `arg:"" optional:"" help:"What the job is given: a JSON object."`
	Priority    int64         `help:"Higher is sooner; default 0." placeholder:"N"`
	Delay       time.Duration `help:"Not before this time is over, such as 5m." xor:"delay" placeholder:"TIME"`
	At          time.Time     `help:"Not before then, such as 2026-01-31T12:00:00Z." xor:"delay" placeholder:"TIME"`
	Retries     *int          `help:"How often it is tried again; -1 has no end. Default: as its queue says." placeholder:"N"`
	RetryDelay  *string       `help:"Between attempts, such as 30s." placeholder:"TIME"`
	Unique      string        `help:"While a job of the topic with this key is unfinished, that one's id is printed and none is added." placeholder:"KEY"`
	Window      time.Duration `help:"The unique key is held for at least this time from now on." placeholder:"TIME"`
	Fairness    string        `help:"Whose turn it takes in a round-robin queue." placeholder:"KEY"`
	Concurrency string        `help:"Key of which no more than --at-once run." placeholder:"KEY"`
	AtOnce      int           `help:"How many with the concurrency key may run at once; default 1." default:"1" placeholder:"N"`
	Prefer      string        `help:"Name of the instance that should run it." placeholder:"NAME"`
}

func (jobAdd) Help() string {
	return `Prints the job's id. If the unique key is held, that is the id of the job that holds it.

    millrace job add mail/send '{"to":"ada@example.org"}' --unique ada --window 1h`
}

// Run adds the job.
func (a jobAdd) Run(ctx context.Context, c console) error {
	n, err := a.job()
	if err != nil {
		return err
	}
	return a.on(c, func(server *client.Client) error {
		job, existing, err := server.AddJob(ctx, n)
		if err != nil {
			return err
		}
		if existing {
			c.note("a job with this unique key is there already")
		}
		return a.line(c, job.ID, job)
	})
}

func (a *jobAdd) job() (client.NewJob, error) {
	n := client.NewJob{
		Topic: a.Topic, Priority: a.Priority, RunAt: a.At, Retries: a.Retries, Unique: a.Unique, UniqueWindow: a.Window,
		FairnessKey: a.Fairness, PreferInstance: a.Prefer,
	}
	if a.Properties != "" {
		if n.Properties = json.RawMessage(a.Properties); !json.Valid(n.Properties) {
			return n, misused("the properties are no JSON")
		}
	}
	if a.Window != 0 && a.Unique == "" {
		return n, misused("--window needs --unique")
	}
	if a.Delay != 0 {
		n.RunAt = time.Now().Add(a.Delay)
	}
	if a.Concurrency != "" {
		n.Concurrency = &client.JobConcurrency{Key: a.Concurrency, Limit: a.AtOnce}
	}
	if a.RetryDelay != nil {
		delay, err := time.ParseDuration(*a.RetryDelay)
		if err != nil {
			return n, misused("--retry-delay: %v", err)
		}
		n.RetryDelay = &delay
	}
	return n, nil
}

// jobFilter says which jobs are listed.
type jobFilter struct {
	Type  string `help:"Which: ${enum}; default ALL, those that are not finished." enum:"ALL,ACTIVE,QUEUED,HISTORY,CANCELLED,SUCCEEDED,STOPPED,GIVEN_UP,ERROR,DROPPED" default:"ALL" placeholder:"TYPE"`
	Topic string `help:"Only jobs of this topic." placeholder:"TOPIC"`
	Limit int    `help:"At most so many; default 100, 0 all." default:"100" placeholder:"N"`
}

func (f jobFilter) query() (client.JobQuery, error) {
	if f.Limit < 0 {
		return client.JobQuery{}, misused("--limit is %d, want at least 0", f.Limit)
	}
	return client.JobQuery{Type: f.Type, Topic: f.Topic, Limit: f.Limit}, nil
}

type jobList struct {
	remote
	format
	jobFilter
}

// Run prints the jobs.
func (l jobList) Run(ctx context.Context, c console) error {
	q, err := l.query()
	if err != nil {
		return err
	}
	return l.on(c, func(server *client.Client) error { return printJobs(ctx, c, server, l.format, q) })
}

func printJobs(ctx context.Context, c console, server *client.Client, f format, q client.JobQuery) error {
	return list(c, f, "jobs", server.Jobs(ctx, q), "CREATED\tSTATE\tTOPIC\tQUEUE\tPRIORITY\tATTEMPT\tFINISHED\tID", func(j *client.Job) []any {
		return []any{when(j.CreatedAt), j.State, j.Topic, j.Queue, j.Priority, j.Attempt, when(j.FinishedAt), j.ID}
	})
}

type jobSearch struct {
	remote
	format
	jobFilter
	Templates []string `arg:"" help:"JSON objects; a job is found if all members of one hold."`
}

func (jobSearch) Help() string {
	return `A member is an operator (=, <, <=, >, >=, ~ for texts that hold another; none means =) before the name of a field or of a property, and a value:

    millrace job search '{"customer":"ada",">=priority":5}' '{"customer":"bob"}' --type HISTORY`
}

// Run prints what is found.
func (s jobSearch) Run(ctx context.Context, c console) error {
	q, err := s.query()
	if err != nil {
		return err
	}
	for _, text := range s.Templates {
		var template map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &template); err != nil {
			return misused("%s is no JSON object", text)
		}
		sought := map[string]any{}
		for name, value := range template {
			sought[name] = value
		}
		q.Templates = append(q.Templates, sought)
	}
	return s.on(c, func(server *client.Client) error { return printJobs(ctx, c, server, s.format, q) })
}

type jobShow struct {
	remote
	format
	ID string `arg:"" help:"Id of a job, or of any other task."`
}

// Run prints the job.
func (s jobShow) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error {
		job, err := server.Job(ctx, s.ID)
		return s.show(c, job, err)
	})
}

// jobArgs name jobs.
type jobArgs struct {
	remote
	IDs []string `arg:"" name:"id" help:"Ids of the jobs."`
}

// each does something with every job, up to the first that fails.
func (a jobArgs) each(c console, do func(server *client.Client, id string) error) error {
	return a.on(c, func(server *client.Client) error {
		for _, id := range a.IDs {
			if err := do(server, id); err != nil {
				return err
			}
		}
		return nil
	})
}

type jobStop struct{ jobArgs }

func (jobStop) Help() string {
	return `A queued job is stopped at once, a running one when its worker reports that it has stopped. A finished one is a conflict.`
}

// Run stops the jobs.
func (s jobStop) Run(ctx context.Context, c console) error {
	return s.each(c, func(server *client.Client, id string) error { return server.StopJob(ctx, id) })
}

type jobRemove struct{ jobArgs }

// Run removes the jobs.
func (r jobRemove) Run(ctx context.Context, c console) error {
	return r.each(c, func(server *client.Client, id string) error { return server.RemoveJob(ctx, id) })
}

type jobRetry struct{ jobArgs }

// Run prints the ids of the new jobs.
func (r jobRetry) Run(ctx context.Context, c console) error {
	return r.each(c, func(server *client.Client, id string) error {
		job, err := server.Retry(ctx, id)
		if err == nil {
			_, err = fmt.Fprintln(c.out, job.ID)
		}
		return err
	})
}
