package event_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/event"
)

func TestCheckEmittable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]event.Reason{
		"PackageInstalled":       0,
		"a":                      0,
		"my.app:thing_done-2":    0,
		"EventX":                 0,
		"ScheduleFired":          0, // begins with Schedule, not with Scheduler
		"orderPlaced":            0, // names are case-sensitive
		"VariablesCustomEvent":   0,
		strings.Repeat("x", 255): 0,
		"":                       event.Invalid,
		"1st":                    event.Invalid,
		"_x":                     event.Invalid,
		"has space":              event.Invalid,
		"a,b":                    event.Invalid,
		"Grün":                   event.Invalid,
		"Ünsinn":                 event.Invalid,
		"a\x00":                  event.Invalid,
		"a\xff":                  event.Invalid,
		strings.Repeat("x", 256): event.Invalid,
		"Event":                  event.Unprocessable,
		"CustomEvent":            event.Unprocessable,
		"OrderEvent":             event.Unprocessable,
		"OrderStarted":           event.Unprocessable,
		"SchedulerClosed":        event.Unprocessable,
		"StreamAppended":         event.Unprocessable,
		"OrderStatisticsChanged": event.Unprocessable,
		"ObjectOverview":         event.Unprocessable,
		"OrderPlaced":            event.Unprocessable,
		"Orderly":                event.Unprocessable,
		"JobX":                   event.Unprocessable,
		"TaskX":                  event.Unprocessable,
		"FileBasedX":             event.Unprocessable,
		"SchedulerX":             event.Unprocessable,
		"StreamX":                event.Unprocessable,
		"JobChainSomethingNovel": event.Unprocessable,
	} {
		if got := event.ReasonOf(event.CheckEmittable(name)); got != want {
			t.Errorf("CheckEmittable(%q) = %v, want %v", name, got, want)
		}
		malformed := event.ReasonOf(event.CheckName(name)) == event.Invalid
		if malformed != (want == event.Invalid) {
			t.Errorf("CheckName(%q): malformed = %t", name, malformed)
		}
	}
}
