package cronbench

import (
	"testing"
	"time"

	"github.com/reugn/go-quartz/quartz"
	"github.com/robfig/cron/v3"

	ours "github.com/millrace/millrace/shared/cron"
)

// expressions as each library writes them: ours and go-quartz read Quartz, robfig the classic form with seconds.
var expressions = []struct{ quartz, classic string }{
	{"0 0 12 * * ?", "0 0 12 * * *"},
	{"0 0/5 * * * ?", "0 0/5 * * * *"},
	{"0 30 9 ? * 2-6", "0 30 9 * * 1-5"},
	{"0 15 10,14 1 * ?", "0 15 10,14 1 * *"},
	{"0 0 0 1 1 ?", "0 0 0 1 1 *"}, // go-quartz takes the 29th of February for the 1st of March,
}

// next returns the first time after another.
type next func(after time.Time) time.Time

func millrace(t testing.TB, expression string, zone *time.Location) next {
	x, err := ours.Parse(expression)
	if err != nil {
		t.Fatal(err)
	}
	table := x.In(zone, ours.Cron)
	return func(after time.Time) time.Time {
		at, _ := table.Next(after)
		return at
	}
}

func robfig(t testing.TB, expression string) next {
	schedule, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(expression)
	if err != nil {
		t.Fatal(err)
	}
	return schedule.Next
}

func goQuartz(t testing.TB, expression string, zone *time.Location) next {
	trigger, err := quartz.NewCronTriggerWithLoc(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	return func(after time.Time) time.Time {
		at, err := trigger.NextFireTime(after.UnixNano())
		if err != nil {
			t.Fatal(err)
		}
		return time.Unix(0, at).In(zone)
	}
}

func begin(zone *time.Location) time.Time { return time.Date(2026, 4, 1, 0, 0, 0, 0, zone) }

func berlin(t testing.TB) *time.Location {
	zone, err := ours.Zone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestSameTimes: what is measured is the same work.
func TestSameTimes(t *testing.T) {
	t.Parallel()
	for _, zone := range []*time.Location{time.UTC, berlin(t)} {
		for _, e := range expressions {
			a, b, c := millrace(t, e.quartz, zone), robfig(t, e.classic), goQuartz(t, e.quartz, zone)
			at := begin(zone)
			for range 15 {
				want := a(at)
				if gotB, gotC := b(at), c(at); !gotB.Equal(want) || !gotC.Equal(want) {
					t.Errorf("%s after %v: %v, robfig %v, go-quartz %v", e.quartz, at, want, gotB, gotC)
				}
				at = want
			}
		}
	}
}

func BenchmarkNext(b *testing.B) {
	zone := berlin(b)
	for _, e := range expressions {
		for _, library := range []struct {
			name string
			next next
		}{{"millrace", millrace(b, e.quartz, zone)}, {"robfig", robfig(b, e.classic)}, {"go-quartz", goQuartz(b, e.quartz, zone)}} {
			b.Run(e.quartz+"/"+library.name, func(b *testing.B) {
				at, round := begin(zone), 0
				b.ReportAllocs()
				for b.Loop() {
					at = library.next(at)
					if round++; round == 15 {
						at, round = begin(zone), 0
					}
				}
			})
		}
	}
}
