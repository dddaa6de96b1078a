package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/client"
)

// scheduleCommand shows schedules and acts on them.
type scheduleCommand struct {
	List     scheduleList     `cmd:"" help:"List the schedules: when they fire next, and how the last tick ended."`
	Show     scheduleShow     `cmd:"" help:"Print a schedule."`
	Suspend  scheduleSuspend  `cmd:"" help:"Keep a schedule from firing."`
	Resume   scheduleResume   `cmd:"" help:"Let a schedule fire again, from now on."`
	Trigger  scheduleTrigger  `cmd:"" help:"Make a task of a schedule now."`
	Backfill scheduleBackfill `cmd:"" help:"Make the ticks of a range in the past."`
}

// named is a schedule on a server.
type named struct {
	remote
	Name string `arg:"" help:"The schedule's name; that of a collection's is sources/SOURCE/COLLECTION."`
}

type scheduleList struct {
	remote
	format
}

// Run prints the schedules.
func (s scheduleList) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error {
		return list(c, s.format, "schedules", server.Schedules(ctx), "NAME\tCRON\tJOB\tNEXT\tLAST\tOUTCOME", func(s *client.Schedule) []any {
			return []any{s.Name, s.Cron, madeText(s), nextText(s), lastText(s), outcomeText(s)}
		})
	})
}

// madeText returns what the schedule makes: the path of a job, or of an order.
func madeText(s *client.Schedule) string {
	if s.Order != nil {
		return s.Order.Chain + "," + s.Order.ID
	}
	return s.Job
}

func nextText(s *client.Schedule) string {
	switch {
	case s.Suspended:
		return "suspended"
	case len(s.Next) == 0:
		return "never"
	default:
		return s.Next[0].Format(time.DateTime)
	}
}

func lastText(s *client.Schedule) string {
	if s.Last == nil {
		return "-"
	}
	return s.Last.FiredAt.Format(time.DateTime)
}

func outcomeText(s *client.Schedule) string {
	if s.Last == nil || s.Last.Outcome == "" {
		return "-"
	}
	return s.Last.Outcome
}

type scheduleShow struct {
	named
	format
}

// Run prints the schedule.
func (s scheduleShow) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error {
		one, err := server.Schedule(ctx, s.Name)
		if err != nil {
			return err
		}
		if s.Output != "table" {
			return printJSON(c.out, one)
		}
		times := make([]string, len(one.Next))
		for i := range one.Next {
			times[i] = one.Next[i].Format(time.DateTime)
		}
		return table(c.out, "SCHEDULE\t"+one.Name, func(row func(...any)) {
			row("fires", one.Description)
			row("cron", strings.TrimSpace(one.Cron+" "+one.Timezone))
			if one.Order != nil {
				row("order", madeText(&one))
			} else {
				row("job", one.Job)
			}
			row("next", strings.Join(times, ", "))
			row("last", lastText(&one)+" "+outcomeText(&one))
			row("suspended", one.Suspended)
			for _, warning := range one.Warnings {
				row("warning", warning)
			}
		})
	})
}

type scheduleSuspend struct{ named }

// Run suspends the schedule.
func (s scheduleSuspend) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error { return server.SuspendSchedule(ctx, s.Name, true) })
}

type scheduleResume struct{ named }

// Run resumes the schedule.
func (s scheduleResume) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error { return server.SuspendSchedule(ctx, s.Name, false) })
}

type scheduleTrigger struct{ named }

// Run triggers the schedule and prints the task's id.
func (s scheduleTrigger) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error {
		id, err := server.TriggerSchedule(ctx, s.Name)
		if err == nil {
			fmt.Fprintln(c.out, id)
		}
		return err
	})
}

type scheduleBackfill struct {
	named
	From time.Time `arg:"" help:"The first time, such as 2026-03-01T00:00:00Z."`
	To   time.Time `arg:"" help:"The last time, which counts too."`
}

// Run makes the ticks and prints how many they are.
func (s scheduleBackfill) Run(ctx context.Context, c console) error {
	return s.on(c, func(server *client.Client) error {
		n, err := server.BackfillSchedule(ctx, s.Name, s.From, s.To)
		if err == nil {
			c.note("%s", count(n, "tick"))
		}
		return err
	})
}
