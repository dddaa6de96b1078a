package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/millrace/millrace/client"
)

// taskCommand is the commands for sync tasks, events of handlers, and tasks of any kind.
type taskCommand struct {
	Enqueue taskEnqueue `cmd:"" help:"Synchronize a collection of a source."`
	Emit    taskEmit    `cmd:"" help:"Emit an event to a handler."`
	List    taskList    `cmd:"" help:"List the sync tasks of a source, oldest first."`
	Events  taskEvents  `cmd:"" help:"List the events of a handler, newest first."`
	Show    taskShow    `cmd:"" help:"Show a task."`
	Logs    taskLogs    `cmd:"" help:"Print the log of a task."`
	Cancel  taskCancel  `cmd:"" help:"Cancel a sync task."`
	Retry   taskRetry   `cmd:"" help:"Do a finished task again that did not succeed."`
	Why     taskWhy     `cmd:"" help:"Say why a task is not running."`
}

type taskEnqueue struct {
	remote
	format
	Source     string `arg:"" help:"Source, as it is defined."`
	Collection string `arg:"" help:"Collection of the source."`
	Priority   int64  `help:"Higher is sooner: 100 low, 200 as by schedule, 300 by hand." default:"300" placeholder:"N"`
}

func (taskEnqueue) Help() string {
	return `Prints the id of the new task, or of the one that is scheduled or running for this collection already.`
}

// Run enqueues the task.
func (e taskEnqueue) Run(ctx context.Context, c console) error {
	if e.Priority < 1 {
		return misused("--priority is %d, want at least 1", e.Priority)
	}
	return e.on(c, func(server *client.Client) error {
		id, existing, err := server.EnqueueSync(ctx, e.Source, e.Collection, e.Priority)
		if err != nil {
			return err
		}
		if existing {
			c.note("%s of %s is under way already", e.Collection, e.Source)
		}
		return e.line(c, id, map[string]any{"task_id": id, "existing": existing})
	})
}

// handlerArgs name a handler.
type handlerArgs struct {
	Canvas string `arg:"" help:"Canvas of the handler."`
	Space  string `arg:"" help:"Its space, such as WORKER."`
	Name   string `arg:"" help:"Its name."`
}

func (h handlerArgs) handler() client.HandlerName { return client.HandlerName(h) }

type taskEmit struct {
	remote
	format
	handlerArgs
	Value    string        `arg:"" help:"What the handler is given: JSON; anything else is taken as a text."`
	Delay    time.Duration `help:"Not before this time is over, such as 5m." xor:"delay" placeholder:"TIME"`
	At       time.Time     `help:"Not before then, such as 2026-01-31T12:00:00Z." xor:"delay" placeholder:"TIME"`
	Modifier string        `help:"Modifier of the event; default _." placeholder:"TEXT"`
}

func (taskEmit) Help() string {
	return `Examples:

    millrace task emit shop WORKER mail '{"to":"you@example.org"}'
    millrace task emit shop WORKER mail hello --delay 5m

Prints the event's id. Without a handler of that name the event is recorded as missing, which is exit status 3.`
}

// Run emits the event.
func (e taskEmit) Run(ctx context.Context, c console) error {
	return e.on(c, func(server *client.Client) error {
		event := client.NewEvent{Value: json.RawMessage(e.Value), DelayUntil: e.At, Modifier: e.Modifier}
		if !json.Valid(event.Value) {
			event.Value = json.RawMessage(quote(e.Value))
		}
		if e.Delay != 0 {
			event.DelayUntil = time.Now().Add(e.Delay)
		}
		emitted, err := server.EmitTo(ctx, e.handler(), event)
		if err != nil {
			return err
		}
		if err := e.line(c, emitted.ID, emitted); err != nil {
			return err
		}
		if emitted.Status == "missing" {
			return missingError{e.handler()}
		}
		return nil
	})
}

// missingError says that an event has no handler.
type missingError struct{ handler client.HandlerName }

func (e missingError) Error() string {
	return fmt.Sprintf("there is no handler %v: the event is recorded as missing and will not run", e.handler)
}

type taskList struct {
	remote
	format
	Source     string        `arg:"" help:"Source, as it is defined."`
	Collection string        `arg:"" optional:"" help:"Only tasks of this collection."`
	Status     string        `help:"Only tasks of this status: SCHEDULED, RUNNING, SUCCESS, FAILED or CANCELED." placeholder:"STATUS"`
	Last       time.Duration `help:"Only tasks created within this time before now or --end; default 24h." default:"24h" xor:"start" placeholder:"TIME"`
	Start      time.Time     `help:"Only tasks created then or later, such as 2026-01-31T12:00:00Z." xor:"start" placeholder:"TIME"`
	End        time.Time     `help:"Only tasks created then or earlier; default now." placeholder:"TIME"`
	Limit      int           `help:"At most so many; default all." placeholder:"N"`
}

// Run prints the tasks.
func (l taskList) Run(ctx context.Context, c console) error {
	if l.Limit < 0 {
		return misused("--limit is %d, want at least 1", l.Limit)
	}
	return l.on(c, func(server *client.Client) error {
		if l.End.IsZero() {
			l.End = time.Now().Add(time.Minute) // the server's clock may be ahead
		}
		if l.Start.IsZero() {
			l.Start = l.End.Add(-l.Last - time.Minute)
		}
		return list(c, l.format, "tasks", server.SyncTasks(ctx, client.SyncQuery{
			Source: l.Source, Collection: l.Collection, Status: l.Status, Start: l.Start, End: l.End, Limit: l.Limit,
		}), "CREATED\tSTATUS\tPRIORITY\tCOLLECTION\tSTARTED\tFINISHED\tID", func(t *client.SyncTask) []any {
			return []any{when(t.CreatedAt), t.Status, t.Priority, t.Collection, when(t.StartedAt), when(t.FinishedAt), t.ID}
		})
	})
}

type taskEvents struct {
	remote
	format
	handlerArgs
	Status string `help:"Only events of this status: new, scheduled, locked, done, error or missing." placeholder:"STATUS"`
	Limit  int    `help:"At most so many; default 100, 0 all." default:"100" placeholder:"N"`
}

// Run prints the events.
func (e taskEvents) Run(ctx context.Context, c console) error {
	if e.Limit < 0 {
		return misused("--limit is %d, want at least 0", e.Limit)
	}
	return e.on(c, func(server *client.Client) error {
		return list(c, e.format, "events", server.HandlerEvents(ctx, e.handler(), e.Status, e.Limit), "ENQUEUED\tSTATUS\tRETRIES\tNOT BEFORE\tVALUE\tID", func(e *client.HandlerEvent) []any {
			return []any{when(e.EnqueuedAt), e.Status, e.Retries, when(e.DelayUntil), brief(e.Value), e.ID}
		})
	})
}

type taskShow struct {
	remote
	format
	ID     string `arg:"" help:"Id of a sync task, or with --canvas of an event."`
	Canvas string `help:"Canvas of the event." placeholder:"CANVAS"`
}

// Run prints the task.
func (s taskShow) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error {
		if s.Canvas != "" {
			event, err := server.HandlerEvent(ctx, s.Canvas, s.ID)
			return s.show(c, event, err)
		}
		task, err := server.SyncTask(ctx, s.ID)
		return s.show(c, task, err)
	})
}

type taskCancel struct {
	remote
	ID string `arg:"" help:"Id of the task."`
}

func (taskCancel) Help() string {
	return `A scheduled task is canceled at once, a running one when its worker reports that it has stopped. A finished one is a conflict.`
}

// Run cancels the task.
func (t taskCancel) Run(ctx context.Context, c console) error {
	return t.on(c, func(server *client.Client) error {
		return server.CancelSync(ctx, t.ID)
	})
}

type taskRetry struct {
	remote
	format
	ID string `arg:"" help:"Id of a finished task, of whatever kind."`
}

// Run prints the id of the new task.
func (t taskRetry) Run(ctx context.Context, c console) error {
	return t.on(c, func(server *client.Client) error {
		job, err := server.Retry(ctx, t.ID)
		if err != nil {
			return err
		}
		return t.line(c, job.ID, job)
	})
}

type taskWhy struct {
	remote
	format
	ID string `arg:"" help:"Id of the task, of whatever kind."`
}

// Run prints the reason.
func (t taskWhy) Run(ctx context.Context, c console) error {
	return t.on(c, func(server *client.Client) error {
		why, err := server.Why(ctx, t.ID)
		if err != nil {
			return err
		}
		return t.line(c, fmt.Sprintf("%s: %s", why.State, why.Reason), why)
	})
}

type taskLogs struct {
	remote
	format
	ID     string `arg:"" help:"Id of the task."`
	Follow bool   `short:"f" help:"Go on until the task is finished."`
}

// Run prints the lines as they come.
func (l taskLogs) Run(ctx context.Context, c console) error {
	return l.on(c, func(server *client.Client) error {
		lines := server.SyncTaskLogs
		if l.Follow {
			lines = server.FollowLogs
		}
		if l.Output == "json" {
			all, err := collect(lines(ctx, l.ID))
			if err != nil {
				return err
			}
			return printJSON(c.out, map[string][]client.LogLine{"logs": all})
		}
		return l.print(ctx, c, lines(ctx, l.ID))
	})
}

// print prints line by line; with --follow, each at once.
func (l taskLogs) print(ctx context.Context, c console, lines iter.Seq2[client.LogLine, error]) error {
	w := bufio.NewWriter(c.out)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for line, err := range lines {
		switch {
		case err != nil && l.Follow && ctx.Err() != nil:
			return w.Flush() // ended by Ctrl-C, as following is
		case err != nil:
			_ = w.Flush() // the error of the lines says more
			return err
		case l.Output == "jsonl":
			err = e.Encode(line)
		default:
			_, err = fmt.Fprintf(w, "%s  %-5s  %s\n", line.Time.Local().Format("15:04:05.000000"), line.Level, line.Message)
		}
		if err == nil && l.Follow {
			err = w.Flush()
		}
		if err != nil {
			return err
		}
	}
	return w.Flush()
}
