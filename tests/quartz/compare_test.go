package quartz_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/cron"
	"github.com/millrace/millrace/shared/cron/crontest"
)

var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu", "America/Caracas",
	"Europe/Moscow", "Asia/Beirut", "America/Havana",
}

// TestAgreement asks about random expressions at random instants, in half of the cases close to where a clock is set.
func TestAgreement(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 5))
	loaded := load(t)
	const asked, answered = 30_000, 24_000
	var questions []question
	for len(questions) < asked {
		s := crontest.Quartz(random.IntN)
		z := random.IntN(len(zones))
		if random.IntN(3) == 0 {
			z = 0
		}
		q := question{s.Text, zones[z], instant(random, loaded[z]), 3}
		if q.adapt(loaded[z]) {
			questions = append(questions, q)
		}
	}
	refused := 0
	for i, got := range ask(t, questions) {
		q := questions[i]
		x, err := cron.Parse(q.expression)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if got.refused {
			refused++
			if !beyondQuartz.MatchString(q.expression) {
				t.Errorf("%s: Quartz refuses it", q.expression)
			}
			continue
		}
		z := loaded[slices.Index(zones, q.zone)]
		if want, have := next(x, z, q), until2099(got.times, z); !slices.Equal(want, have) {
			t.Errorf("%s in %s after %s:\nQuartz %v\nours   %v", q.expression, q.zone, shown(z, q.after), shown(z, have...), shown(z, want...))
		}
	}
	t.Logf("%d questions, of which Quartz refused %d", asked, refused)
	if asked-refused < answered {
		t.Errorf("Quartz refused %d of %d: the others say little", refused, asked)
	}
}

func load(t *testing.T) []*time.Location {
	t.Helper()
	all := make([]*time.Location, len(zones))
	for i, name := range zones {
		z, err := cron.Zone(name)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = z
	}
	return all
}

// instant returns a time from 1970 to 2099; every other is within three days of a change of the zone's clock, if it has any.
func instant(random *rand.Rand, z *time.Location) int64 {
	at := random.Int64N(endOf2099)
	if random.IntN(2) == 0 {
		at = random.Int64N(1_900_000_000) // where more is known of zones
		if _, end := time.Unix(at, 0).In(z).ZoneBounds(); !end.IsZero() {
			at = end.Unix() + random.Int64N(6*86400) - 3*86400
		}
	}
	return at
}

// next returns the next time by package cron.
func next(x *cron.Expression, z *time.Location, q question) (times []int64) {
	table := x.In(z, cron.Quartz)
	at := time.Unix(q.after, 0)
	for range q.count {
		following, found := table.Next(at)
		if !found {
			break
		}
		at = following
		times = append(times, at.Unix())
	}
	return times
}

// until2099 leaves out what lies after 2099 by the zone's clock.
func until2099(times []int64, z *time.Location) []int64 {
	return slices.DeleteFunc(slices.Clone(times), func(at int64) bool { return time.Unix(at, 0).In(z).Year() > 2099 })
}

func shown(z *time.Location, times ...int64) (texts []string) {
	for _, at := range times {
		texts = append(texts, time.Unix(at, 0).In(z).Format("Mon 2006-01-02 15:04:05 -0700"))
	}
	return texts
}

// Expressions that Quartz refuses, though their meaning is plain: ranges from a name to a number or back, L or more than one #
// among several days of the week.
var beyondQuartz = regexp.MustCompile(`(?i)[A-Z]{3}-\d|\d-[A-Z]{3}|L\S*,|,\S*L|#\S*#`)

// adapt changes a question, or returns that it is not to be asked, so that it meets none of Quartz's faults: TestFaults
// shows them.
func (q *question) adapt(z *time.Location) bool {
	fields := strings.Fields(strings.ToUpper(q.expression))
	dates, weekdays := fields[3], fields[5]
	switch {
	case strings.Contains(dates, "L") && strings.Contains(dates, ","),
		strings.Contains(weekdays, "#") && strings.Contains(weekdays, ","),
		namedStep.MatchString(q.expression),
		repeats(z, q.after):
		return false
	case strings.Contains(dates, "W"): // the first time of a month is right, where midnight is
		at := time.Unix(q.after, 0).UTC()
		q.after = time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC).Unix() - 1
		q.zone, q.count = "UTC", 1
	}
	return true
}

var namedStep = regexp.MustCompile(`(?i)[A-Z]{3}/`)

// repeats reports whether the zone's clock will show the time again that it shows now.
func repeats(z *time.Location, at int64) bool {
	t := time.Unix(at, 0).In(z)
	_, end := t.ZoneBounds()
	if end.IsZero() {
		return false
	}
	_, before := t.Zone()
	_, after := end.In(z).Zone()
	return at+int64(before) >= end.Unix()+int64(after)-1
}
