package main

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/cron"
	"github.com/millrace/millrace/shared/event"
)

// cronCommand is about cron expressions.
type cronCommand struct {
	Next cronNext `cmd:"" help:"Print when an expression fires, and what it means. Needs no server."`
}

type cronNext struct {
	format
	Expression string    `arg:"" name:"expr" help:"The expression, in quotes: 6 or 7 fields are Quartz, 5 classic cron; or @daily and the like, or @every 90s."`
	TZ         string    `name:"tz" help:"Time zone; default UTC." placeholder:"ZONE"`
	After      time.Time `help:"Times after this one; default now." placeholder:"TIME"`
	Count      int       `help:"How many times." default:"5" placeholder:"N"`
	DST        string    `name:"dst" help:"What becomes of times that the clock skips or repeats: cron fires them once, quartz loses the skipped ones." enum:"cron,quartz" default:"cron"`
}

func (cronNext) Help() string {
	return `Examples:

    millrace cron next "0 0/20 9-17 ? * MON-FRI" --tz Europe/Berlin
    millrace cron next "30 2 * * *" --tz Europe/Berlin --after 2027-03-27T00:00:00Z --dst quartz`
}

// firesReport is what is printed as JSON, like the response of GET cron/next.
type firesReport struct {
	Times       []event.Time `json:"times"`
	Description string       `json:"description"`
	FiresPerDay float64      `json:"fires_per_day"`
	Warnings    []string     `json:"warnings"`
}

// Run prints the times on lines of their own, and notes the description and the warnings.
func (n cronNext) Run(c console) error {
	found, err := n.find(time.Now())
	if err != nil {
		return usageError{err}
	}
	switch n.Output {
	case "json":
		return printJSON(c.out, found)
	case "jsonl":
		return printLines(c.out, found.Times)
	}
	c.note("%s; %s on average", found.Description, perDay(found.FiresPerDay))
	for _, warning := range found.Warnings {
		c.note("warning: %s", warning)
	}
	for _, at := range found.Times {
		fmt.Fprintln(c.out, at.Format("Mon 2006-01-02 15:04:05 -07:00"))
	}
	return nil
}

// find returns the times and what else is known of the expression; now is the default of --after.
func (n cronNext) find(now time.Time) (*firesReport, error) {
	if n.Count < 1 {
		return nil, fmt.Errorf("--count is %d, want at least 1", n.Count)
	}
	expression, err := cron.Parse(n.Expression)
	if err != nil {
		return nil, err
	}
	zone, err := cron.Zone(n.TZ)
	if err != nil {
		return nil, err
	}
	saving, err := cron.ParseSaving(n.DST)
	if err != nil {
		return nil, err
	}
	table := expression.In(zone, saving)
	if !n.After.IsZero() {
		now = n.After
	}
	r := &firesReport{Times: []event.Time{}, Description: expression.Describe(), FiresPerDay: expression.FiresPerDay(), Warnings: append([]string{}, table.Warnings(now)...)}
	for at, found := table.Next(now); found && len(r.Times) < n.Count; at, found = table.Next(at) {
		r.Times = append(r.Times, event.Time{Time: at})
	}
	return r, nil
}

// perDay returns how often something happens: times a day, or once in some days.
func perDay(n float64) string {
	switch {
	case n == 0:
		return "never"
	case n == 1:
		return "once a day"
	case n > 1:
		return fmt.Sprintf("%.4g times a day", n)
	default:
		return fmt.Sprintf("once in %.4g days", 1/n)
	}
}
