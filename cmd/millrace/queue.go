package main

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/client"
)

// queueCommand shows queues and acts on them.
type queueCommand struct {
	List    queueList    `cmd:"" help:"List the queues, with their states and statistics."`
	Show    queueShow    `cmd:"" help:"Print a queue."`
	Top     queueTop     `cmd:"" help:"Watch the queues at work."`
	Suspend queueSuspend `cmd:"" help:"Keep a queue's tasks from being started."`
	Resume  queueResume  `cmd:"" help:"Let a queue's tasks be started again."`
	Purge   queuePurge   `cmd:"" help:"Drop the tasks of a queue that wait."`
}

type queueArgs struct {
	remote
	Name string `arg:"" help:"The queue's name."`
}

type queueList struct {
	remote
	format
}

// Run prints the queues.
func (l queueList) Run(ctx context.Context, c console) error {
	return l.on(c, func(server *client.Client) error {
		heading := "NAME\tTYPE\tAT ONCE\tSTATE\tQUEUED\tACTIVE\tFINISHED\tFAILED\tCANCELLED\tWAITING\tPROCESSING"
		return list(c, l.format, "queues", server.Queues(ctx), heading, func(q *client.Queue) []any {
			s := &q.Statistics
			return []any{
				q.Name, q.Type, atOnce(q), openness(q), s.Queued, s.Active, s.Finished, s.Failed, s.Cancelled,
				waited(&s.AverageWaiting), waited(&s.AverageProcessing),
			}
		})
	})
}

func atOnce(q *client.Queue) any {
	if q.MaxParallel == 0 {
		return "-"
	}
	return q.MaxParallel
}

func openness(q *client.Queue) string {
	if q.Suspended {
		return "suspended"
	}
	return "open"
}

type queueShow struct {
	queueArgs
	format
}

// Run prints the queue.
func (s queueShow) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error {
		q, err := server.Queue(ctx, s.Name)
		return s.show(c, q, err)
	})
}

type queueTop struct {
	remote
	Every time.Duration `help:"How often to print the table; default 2s." default:"2s" placeholder:"TIME"`
	Times int           `short:"n" help:"Print so many tables, then end; default until interrupted." placeholder:"N"`
}

func (queueTop) Help() string {
	return `ENDED/S and MORE/S are per second since the table before: how many attempts have ended, and by how many the waiting tasks grew.`
}

// clearScreen clears a terminal (ECMA-48).
const clearScreen = "\x1b[H\x1b[2J"

// Run prints the table again and again.
func (t queueTop) Run(ctx context.Context, c console) error {
	if t.Every < 100*time.Millisecond {
		return misused("--every is %v, want at least 100ms", t.Every)
	}
	return t.on(c, func(server *client.Client) error {
		ticker := time.NewTicker(t.Every)
		defer ticker.Stop()
		before, then := map[string]client.Statistics{}, time.Time{}
		for n := 1; ; n++ {
			all, err := collect(server.Queues(ctx))
			if err != nil {
				return err
			}
			now := time.Now()
			if n > 1 {
				if _, err := fmt.Fprint(c.out, clearScreen); err != nil {
					return err
				}
			}
			if err := printTop(c, all, before, now.Sub(then)); err != nil || n == t.Times {
				return err
			}
			for i := range all {
				before[all[i].Name] = all[i].Statistics
			}
			then = now
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
	})
}

// printTop prints the state of the queues, and the rates since the table before.
func printTop(c console, all []client.Queue, before map[string]client.Statistics, since time.Duration) error {
	return table(c.out, "QUEUE\tSTATE\tQUEUED\tACTIVE\tENDED/S\tMORE/S\tWAITING\tPROCESSING", func(row func(...any)) {
		for i := range all {
			q := &all[i]
			s := &q.Statistics
			ended, more := "-", "-"
			if b, known := before[q.Name]; known && since > 0 {
				ended = fmt.Sprintf("%.1f", float64(s.Processed-b.Processed)/since.Seconds())
				more = fmt.Sprintf("%+.1f", float64(s.Queued-b.Queued)/since.Seconds())
			}
			row(q.Name, openness(q), s.Queued, s.Active, ended, more, waited(&s.AverageWaiting), waited(&s.AverageProcessing))
		}
	})
}

type queueSuspend struct{ queueArgs }

func (queueSuspend) Help() string {
	return `Running tasks go on. A name with {0} means all queues of that family.`
}

// Run suspends the queue.
func (s queueSuspend) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error { return server.SuspendQueue(ctx, s.Name, true) })
}

type queueResume struct{ queueArgs }

// Run resumes the queue.
func (r queueResume) Run(ctx context.Context, c console) error {
	return r.on(c, func(server *client.Client) error { return server.SuspendQueue(ctx, r.Name, false) })
}

type queuePurge struct {
	queueArgs
	Yes bool `help:"Do it. Without this, only how many would be dropped is printed."`
}

func (queuePurge) Help() string {
	return `The tasks go to the history as DROPPED. Running tasks go on.`
}

// Run purges the queue.
func (p queuePurge) Run(ctx context.Context, c console) error {
	return p.on(c, func(server *client.Client) error {
		if !p.Yes {
			q, err := server.Queue(ctx, p.Name)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.out, "%d tasks of %s would be dropped; go ahead with --yes\n", q.Statistics.Queued, p.Name)
			return err
		}
		dropped, err := server.PurgeQueue(ctx, p.Name)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.out, "%d tasks were dropped\n", dropped)
		return err
	})
}
