package cron_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/cron"
	"github.com/millrace/millrace/shared/cron/crontest"
)

func TestPrevious(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ expression, before, want string }{
		{"0 0 12 * * ?", "2024-03-01 12:00:00", "2024-02-29 12:00:00"},
		{"0 0 12 * * ?", "2024-03-01 12:00:01", "2024-03-01 12:00:00"},
		{"15,45 10-12 22-2/3 * * ?", "2024-01-01 22:10:15", "2024-01-01 01:12:45"},
		{"0 0 0 L * ?", "2024-03-15 00:00:00", "2024-02-29 00:00:00"},
		{"0 0 0 29 2 ?", "2024-02-01 00:00:00", "2020-02-29 00:00:00"},
		{"0 0 0 1 1 ? 2030,2040", "2099-01-01 00:00:00", "2040-01-01 00:00:00"},
		{"0 0 0 1 1 ? 2030,2040", "2040-01-01 00:00:00", "2030-01-01 00:00:00"},
		{"0 0 0 1 1 ? 2030,2040", "2030-01-01 00:00:00", "never"},
		{"0 0 0 30 2 ?", "2030-01-01 00:00:00", "never"},
		{"* * * * * ?", "2500-01-01 00:00:00", "2099-12-31 23:59:59"},
		{"* * * * * ?", "1970-01-01 00:00:00", "never"},
		{"@every 90s", "2024-01-01 00:00:00", "2023-12-31 23:58:30"},
		{"@every 90s", "1970-01-01 00:00:00", "never"},
		{"@every 90s", "1970-01-01 00:00:01", "1970-01-01 00:00:00"},
		{"@every 90s", "2500-01-01 00:00:00", "2099-12-31 23:58:30"},
	} {
		before, err := time.Parse(layout, test.before)
		if err != nil {
			t.Fatal(err)
		}
		got, found := parse(t, test.expression).In(nil, cron.Cron).Previous(before)
		if shown := got.Format(layout); found && shown != test.want || found != (test.want != "never") {
			t.Errorf("%s: Previous(%s) = %s, %v, want %s", test.expression, test.before, shown, found, test.want)
		}
	}
}

// A fraction of a second neither hides a time nor returns it twice.
func TestFractions(t *testing.T) {
	t.Parallel()
	table := parse(t, "* * * * * ?").In(nil, cron.Cron)
	at := time.Unix(1_700_000_000, 0)
	for _, test := range []struct {
		fraction       time.Duration
		next, previous time.Duration
	}{{0, time.Second, -time.Second}, {1, time.Second, 0}, {time.Second - 1, time.Second, 0}} {
		next, _ := table.Next(at.Add(test.fraction))
		previous, _ := table.Previous(at.Add(test.fraction))
		if next.Sub(at) != test.next || previous.Sub(at) != test.previous {
			t.Errorf("%v after a second: Next %v, Previous %v, want %v, %v", test.fraction, next.Sub(at), previous.Sub(at), test.next, test.previous)
		}
	}
	half := at.Add(-time.Second / 2)
	if got := slices.Collect(table.Between(half, at.Add(time.Second))); len(got) != 2 {
		t.Errorf("Between = %v, want both ends of the second", got)
	}
}

// No time is too early or too late to ask about.
func TestExtremes(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{"* * * * * ?", "@every 1h", "0 0 0 29 2 ?"} {
		for _, saving := range []cron.Saving{cron.Cron, cron.Quartz} {
			table := parse(t, expression).In(zone(t, "America/New_York"), saving)
			for _, u := range []int64{math.MinInt64 / 2, -1 << 40, 1 << 40, math.MaxInt64 / 2} {
				at := time.Unix(u, 0)
				if next, found := table.Next(at); found != at.Before(time.Unix(0, 0)) {
					t.Errorf("%s: Next(%v) = %v, %v", expression, at, next, found)
				}
				if previous, found := table.Previous(at); found != at.After(time.Unix(0, 0)) {
					t.Errorf("%s: Previous(%v) = %v, %v", expression, at, previous, found)
				}
			}
		}
	}
}

// In the supported years, in UTC, Next and Previous return what a walk over days and seconds finds.
func TestCalendar(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	for range 3000 {
		s := crontest.Quartz(random.IntN)
		if random.IntN(4) == 0 {
			s = crontest.Classic(random.IntN)
		}
		table := parse(t, s.Text).In(nil, cron.Cron)
		after := time.Unix(random.Int64N(4_102_444_800), 0).UTC()
		want, exists := walk(s, after)
		got, found := table.Next(after)
		if found != exists || !got.Equal(want) {
			t.Fatalf("%s: Next(%v) = %v, %v, want %v, %v", s.Text, after, got, found, want, exists)
		}
		if !found {
			continue
		}
		again, found := table.Next(got)
		if !found {
			continue
		}
		if back, found := table.Previous(again); !found || !back.Equal(got) {
			t.Fatalf("%s: Previous(%v) = %v, %v, want %v", s.Text, again, back, found, got)
		}
	}
}

// walk returns the next time of a sample, found day by day, second by second, up to the end of 2099.
func walk(s *crontest.Sample, after time.Time) (time.Time, bool) {
	for d := after.Truncate(24 * time.Hour); d.Year() < 2100; d = d.AddDate(0, 0, 1) {
		if !s.MatchDay(d) {
			continue
		}
		for second := range 24 * 60 * 60 {
			at := d.Add(time.Duration(second) * time.Second)
			if at.After(after) && s.MatchClock(second/3600, second/60%60, second%60) {
				return at, true
			}
		}
	}
	return time.Time{}, false
}
