package cron_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/cron"
	"github.com/millrace/millrace/shared/cron/crontest"
)

// instant is one second and what the clock of some zone shows then.
type instant struct {
	at    int64
	local time.Time // in UTC, for its fields
}

// seconds returns every second of a time and what the zone's clock shows then.
func seconds(zone *time.Location, from, to time.Time) []instant {
	var all []instant
	for at := from.Unix(); at <= to.Unix(); at++ {
		t := time.Unix(at, 0).In(zone)
		_, offset := t.Zone()
		all = append(all, instant{at, time.Unix(at+int64(offset), 0).UTC()})
	}
	return all
}

// brute returns when a sample fires, by the definitions, examining every second. It cannot know which times the clock
// skips or repeats at the edges of the span, so callers leave a margin.
func brute(s *crontest.Sample, span []instant, saving cron.Saving) []int64 {
	recurs := true
	for h := range 24 {
		recurs = recurs && matchesIn(s, h)
	}
	fires := map[int64]bool{}
	shown := map[int64][]int64{} // local time: the instants at which the clock shows it
	for _, i := range span {
		shown[i.local.Unix()] = append(shown[i.local.Unix()], i.at)
	}
	for n, i := range span {
		at := shown[i.local.Unix()]
		switch match := s.Match(i.local); {
		case !match:
		case saving == cron.Quartz:
			fires[at[len(at)-1]] = true
		case recurs:
			fires[i.at] = true
		default:
			fires[at[0]] = true
		}
		if saving == cron.Cron && !recurs && n > 0 {
			for skipped := span[n-1].local.Add(time.Second); skipped.Before(i.local); skipped = skipped.Add(time.Second) {
				if s.Match(skipped) {
					fires[i.at] = true
				}
			}
		}
	}
	var sorted []int64
	for at := range fires {
		sorted = append(sorted, at)
	}
	slices.Sort(sorted)
	return sorted
}

// matchesIn reports whether the sample fires in some second of that hour of a day.
func matchesIn(s *crontest.Sample, hour int) bool {
	for second := range 3600 {
		if s.MatchClock(hour, second/60, second%60) {
			return true
		}
	}
	return false
}

// shifts are times at which clocks were set, each difficult in another way.
var shifts = []struct {
	zone string
	at   string // about
	wide int    // hours to either side
}{
	{"Europe/Berlin", "2024-03-31 01:00:00", 5},
	{"Europe/Berlin", "2024-10-27 01:00:00", 5},
	{"America/New_York", "2024-03-10 07:00:00", 5},
	{"America/New_York", "2024-11-03 06:00:00", 5},
	{"America/New_York", "2090-03-12 07:00:00", 5},
	{"America/Sao_Paulo", "2018-11-04 03:00:00", 5},   // a gap at midnight
	{"America/Sao_Paulo", "2018-02-18 02:00:00", 5},   // the hour before midnight twice
	{"Asia/Beirut", "2022-03-26 22:00:00", 5},         // midnight again
	{"America/Havana", "2024-11-03 05:00:00", 5},      // the hour after midnight twice
	{"Australia/Lord_Howe", "2024-10-05 15:30:00", 5}, // half an hour skipped
	{"Australia/Lord_Howe", "2024-04-06 15:00:00", 5}, // half an hour repeated
	{"Pacific/Apia", "2011-12-30 10:00:00", 50},       // a day skipped
	{"Pacific/Kwajalein", "1993-08-20 12:00:00", 50},  // the same, in 1993
	{"Asia/Kathmandu", "1985-12-31 18:30:00", 5},      // a quarter of an hour skipped, for good
	{"Africa/Monrovia", "1972-01-07 00:44:30", 5},     // 44 minutes and 30 seconds
	{"Africa/Casablanca", "2025-02-23 02:00:00", 5},   // for Ramadan, in the opposite direction
	{"Europe/Dublin", "2024-03-31 01:00:00", 5},       // where winter time is the exception
	{"Europe/Moscow", "2014-10-25 22:00:00", 5},       // an hour back without daylight saving
	{"America/Caracas", "2007-12-09 07:00:00", 5},     // half an hour back
	{"Antarctica/Troll", "2024-03-31 01:00:00", 6},    // two hours
	{"Antarctica/Troll", "2024-10-27 01:00:00", 6},
	{"Asia/Pyongyang", "2018-05-04 15:00:00", 5},
	{"America/Scoresbysund", "2024-03-31 00:00:00", 5},
	{"Europe/Berlin", "2040-12-31 12:00:00", 14},       // the last day of a leap year beyond the table, see periodAt
	{"Australia/Lord_Howe", "2040-12-31 12:00:00", 14}, // where it is summer
	{"UTC", "2024-02-29 12:00:00", 14},
}

// TestOracle compares with brute force around every kind of shift, under both rules and in both directions.
func TestOracle(t *testing.T) {
	t.Parallel()
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	for _, shift := range shifts {
		for _, saving := range []cron.Saving{cron.Cron, cron.Quartz} {
			t.Run(shift.zone+" "+shift.at+" "+saving.String(), func(t *testing.T) {
				t.Parallel()
				z := zone(t, shift.zone)
				about, err := time.Parse(layout, shift.at)
				if err != nil {
					t.Fatal(err)
				}
				wide := time.Duration(shift.wide) * time.Hour
				margin := 3 * time.Hour
				if shift.wide > 24 {
					margin = 25 * time.Hour
				}
				span := seconds(z, about.Add(-wide), about.Add(wide))
				random := rand.New(rand.NewPCG(1, uint64(about.Unix())))
				for range rounds {
					s := crontest.Near(random.IntN, span[len(span)/2].local)
					x := parse(t, s.Text)
					table := x.In(z, saving)
					from, to := about.Add(margin-wide), about.Add(wide-margin)
					want := within(brute(s, span, saving), from, to)
					if got := forward(table, from, to); !slices.Equal(want, got) {
						t.Fatalf("%s, forward (-brute force +Between):\n%s", s.Text, cmp.Diff(shown(z, want), shown(z, got)))
					}
					if got := backward(table, from, to); !slices.Equal(want, got) {
						t.Fatalf("%s, backward (-brute force +Previous):\n%s", s.Text, cmp.Diff(shown(z, want), shown(z, got)))
					}
				}
			})
		}
	}
}

func within(all []int64, from, to time.Time) []int64 {
	return slices.DeleteFunc(all, func(at int64) bool { return at < from.Unix() || at > to.Unix() })
}

func forward(table cron.Timetable, from, to time.Time) (all []int64) {
	for at := range table.Between(from, to) {
		all = append(all, at.Unix())
	}
	return all
}

func backward(table cron.Timetable, from, to time.Time) (all []int64) {
	at, found := table.Previous(to.Add(1))
	for ; found && !at.Before(from); at, found = table.Previous(at) {
		all = append(all, at.Unix())
	}
	slices.Reverse(all)
	return all
}

// shown returns instants as text.
func shown(z *time.Location, all []int64) []string {
	var texts []string
	for _, at := range all {
		texts = append(texts, time.Unix(at, 0).In(z).Format(time.RFC3339))
	}
	return texts
}
