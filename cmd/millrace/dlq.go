package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/task/failure"
)

// dlqCommand looks after jobs that have failed for good, by the shape of their errors.
type dlqCommand struct {
	List   dlqList   `cmd:"" help:"List the jobs that have failed, grouped by topic and by the shape of their error."`
	Show   dlqShow   `cmd:"" help:"List the jobs of a group."`
	Replay dlqReplay `cmd:"" help:"Do failed jobs again: counted first, then at a rate."`
}

// dlqFilter says which failed jobs.
type dlqFilter struct {
	Topic  string        `help:"Only jobs of this topic." placeholder:"TOPIC"`
	State  string        `help:"Only GIVEN_UP, whose attempts are used up, or only ERROR, that were rejected." enum:"GIVEN_UP,ERROR," default:"" placeholder:"STATE"`
	Match  string        `help:"Only jobs whose error contains this text." placeholder:"TEXT"`
	Within time.Duration `help:"Only jobs that failed within this time before now, such as 24h." placeholder:"TIME"`
}

// failed returns the failed jobs that the filter selects, newest first.
func (f dlqFilter) failed(ctx context.Context, server *client.Client) ([]client.Job, error) {
	q := client.JobQuery{Type: cmp.Or(f.State, "CANCELLED"), Topic: f.Topic}
	var jobs []client.Job
	for job, err := range server.Jobs(ctx, q) {
		if err != nil {
			return nil, err
		}
		if f.Within > 0 && time.Since(job.FinishedAt.Time) > f.Within {
			break
		}
		if (job.State == "GIVEN_UP" || job.State == "ERROR") && strings.Contains(job.Message, f.Match) {
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

// failures are failed jobs of one topic whose errors have one shape.
type failures struct {
	Group  string      `json:"group"`
	Topic  string      `json:"topic"`
	Shape  string      `json:"shape"`
	Count  int         `json:"count"`
	Oldest client.Time `json:"oldest"`
	Newest client.Time `json:"newest"`
	Last   string      `json:"last"` // id of the newest

	jobs []client.Job
}

// grouped groups jobs, which come newest first; the largest group is the first.
func grouped(jobs []client.Job) []failures {
	at := map[string]int{}
	var groups []failures
	for _, job := range jobs {
		shape := failure.Shape(job.Message)
		name := groupName(job.Topic, shape)
		i, known := at[name]
		if !known {
			i, at[name] = len(groups), len(groups)
			groups = append(groups, failures{Group: name, Topic: job.Topic, Shape: shape, Newest: job.FinishedAt, Last: job.ID})
		}
		g := &groups[i]
		g.Count, g.Oldest, g.jobs = g.Count+1, job.FinishedAt, append(g.jobs, job)
	}
	slices.SortStableFunc(groups, func(a, b failures) int { return b.Count - a.Count })
	return groups
}

// groupName names a group by what its jobs have in common, so that later calls give it the same name.
func groupName(topic, shape string) string {
	sum := sha256.Sum256([]byte(topic + "\x00" + shape))
	return hex.EncodeToString(sum[:4])
}

type dlqList struct {
	remote
	format
	dlqFilter
}

// Run prints the groups.
func (l dlqList) Run(ctx context.Context, c console) error {
	return l.on(c, func(server *client.Client) error {
		jobs, err := l.failed(ctx, server)
		if err != nil {
			return err
		}
		return listed(c, l.format, "groups", grouped(jobs), "GROUP\tCOUNT\tTOPIC\tNEWEST\tERROR", func(g *failures) []any {
			return []any{g.Group, g.Count, g.Topic, when(g.Newest), g.Shape}
		})
	})
}

type dlqShow struct {
	remote
	format
	dlqFilter
	Group string `arg:"" help:"Group, as dlq list prints it."`
}

// Run prints the jobs of the group.
func (s dlqShow) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error {
		jobs, err := s.of(ctx, server, s.Group)
		if err != nil {
			return err
		}
		return listed(c, s.format, "jobs", jobs, "FINISHED\tSTATE\tATTEMPT\tID\tERROR", func(j *client.Job) []any {
			return []any{when(j.FinishedAt), j.State, j.Attempt, j.ID, j.Message}
		})
	})
}

// of returns the jobs of a group; all that the filter selects where group is empty.
func (f dlqFilter) of(ctx context.Context, server *client.Client, group string) ([]client.Job, error) {
	jobs, err := f.failed(ctx, server)
	if err != nil || group == "" {
		return jobs, err
	}
	for _, g := range grouped(jobs) {
		if g.Group == group {
			return g.jobs, nil
		}
	}
	return nil, noGroupError(group)
}

// noGroupError says that there is no such group; it is exit status 3.
type noGroupError string

func (e noGroupError) Error() string {
	return fmt.Sprintf("no failed job is in the group %s", string(e))
}

type dlqReplay struct {
	remote
	dlqFilter
	Group string  `arg:"" optional:"" help:"Group, as dlq list prints it; default: all that the flags select."`
	Yes   bool    `help:"Do it. Without this, only how many there are is printed."`
	Rate  float64 `help:"At most so many a second; default 10." default:"10" placeholder:"N"`
}

func (dlqReplay) Help() string {
	return `Each job is added anew, with all its attempts, and its failure leaves the history. The oldest is the first. If it is interrupted,
it prints how many jobs were replayed; the same command replays the rest.`
}

// Run counts the jobs, and replays them.
func (r dlqReplay) Run(ctx context.Context, c console) error {
	if r.Rate <= 0 {
		return misused("--rate is %v, want more than 0", r.Rate)
	}
	return r.on(c, func(server *client.Client) error {
		jobs, err := r.of(ctx, server, r.Group)
		if err != nil {
			return err
		}
		if !r.Yes {
			_, err := fmt.Fprintf(c.out, "%d jobs would be replayed; go ahead with --yes\n", len(jobs))
			return err
		}
		slices.Reverse(jobs)
		done, err := replay(ctx, server, jobs, time.Duration(float64(time.Second)/r.Rate))
		c.note("%d of %d jobs were replayed", done, len(jobs))
		return err
	})
}

// replay does jobs again, at that pace.
func replay(ctx context.Context, server *client.Client, jobs []client.Job, pace time.Duration) (done int, err error) {
	ticker := time.NewTicker(max(pace, time.Microsecond))
	defer ticker.Stop()
	for _, job := range jobs {
		if done > 0 {
			select {
			case <-ctx.Done():
				return done, ctx.Err()
			case <-ticker.C:
			}
		}
		if _, err := server.RetryOnce(ctx, "replay-"+job.ID, job.ID); err != nil { // once: a replay that is cut off here must not be done twice
			return done, err
		}
		done++
		if err := server.RemoveJob(ctx, job.ID); err != nil {
			return done, err
		}
	}
	return done, nil
}
