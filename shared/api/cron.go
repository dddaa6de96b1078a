package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/millrace/millrace/shared/cron"
)

const (
	defaultFires = 5
	maxFires     = 1000
)

func describeCron() *operation {
	return &operation{
		ID: "cronNext", Tags: []string{"Schedules"}, Summary: "When does an expression fire?",
		Description: "The next times of a cron expression, without declaring anything. An expression that is wrong is refused " +
			"with the character and the reason.",
		Parameters: cronParams(),
		Responses:  answers(http.StatusOK, typeJSON, ref("Fires")),
	}
}

// fires responds with the times at which the expression in the query fires.
func fires(x *exchange) error {
	q, err := x.query()
	if err != nil {
		return err
	}
	expression, table, err := q.timetable()
	if err != nil {
		return err
	}
	after, err := q.time("after")
	if err != nil {
		return err
	}
	if _, given, _ := q.one("after"); !given {
		after = time.Now()
	}
	count, err := q.fires()
	if err != nil {
		return err
	}
	times := []string{}
	for at, found := table.Next(after); found && len(times) < count; at, found = table.Next(at) {
		times = append(times, formatTime(at))
	}
	return x.value(http.StatusOK, struct {
		Times       []string `json:"times"`
		Description string   `json:"description"`
		FiresPerDay float64  `json:"fires_per_day"`
		Warnings    []string `json:"warnings"`
	}{times, expression.Describe(), expression.FiresPerDay(), append([]string{}, table.Warnings(after)...)})
}

// timetable reads expr, tz and dst.
func (q query) timetable() (*cron.Expression, cron.Timetable, error) {
	refused := func(name string, err error) (*cron.Expression, cron.Timetable, error) {
		return nil, cron.Timetable{}, invalid("query."+name, "%v", err)
	}
	text, err := q.needed("expr")
	if err != nil {
		return nil, cron.Timetable{}, err
	}
	expression, err := cron.Parse(text)
	if err != nil {
		return refused("expr", err)
	}
	name, given, err := q.one("tz")
	if err != nil {
		return nil, cron.Timetable{}, err
	}
	if given && name == "" {
		return nil, cron.Timetable{}, invalid("query.tz", "is empty, want a name of the IANA database, as Europe/Berlin")
	}
	zone, err := cron.Zone(name)
	if err != nil {
		return refused("tz", err)
	}
	rule, _, err := q.one("dst")
	if err != nil {
		return nil, cron.Timetable{}, err
	}
	saving, err := cron.ParseSaving(rule)
	if err != nil {
		return refused("dst", err)
	}
	return expression, expression.In(zone, saving), nil
}

// fires reads how many times are wanted.
func (q query) fires() (int, error) {
	value, given, err := q.one("count")
	if !given || err != nil {
		return defaultFires, err
	}
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil || n < 1 || n > maxFires {
		return 0, invalid("query.count", "want a whole number from 1 to %d", maxFires)
	}
	return int(n), nil
}

func cronParams() params {
	count := between("", 1, maxFires)
	count.Default = defaultFires
	rule := choice("", "cron", "quartz")
	rule.Default = "cron"
	expression := text("")
	expression.Examples = []any{"0 0/5 9-17 ? * MON-FRI"}
	return params{
		queryParam("expr", "6 or 7 fields are Quartz, 5 classic cron; or @daily and the like, or @every 90s", true, expression),
		queryParam("tz", "IANA name of the time zone; default UTC", false, text("")),
		queryParam("after", "The times are after this one; default now", false, dateTime("")),
		queryParam("count", "How many times are wanted", false, count),
		queryParam("dst", "What becomes of local times that daylight saving skips or repeats. cron: what is skipped fires when the clock goes "+
			"on, what is repeated the first time, what fires in every hour at every real instant. quartz: what is skipped is lost, what "+
			"is repeated fires the second time", false, rule),
	}
}

func firesSchema() *schema {
	return object("When an expression fires", members{
		"times":         listOf(dateTime("")),
		"description":   text("The expression in words"),
		"fires_per_day": {Type: "number", Description: "On an average day of the years that the expression names"},
		"warnings":      listOf(text("A likely mistake")),
	}, false, "times", "description", "fires_per_day", "warnings")
}
