package event_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
)

// someTypes has types of every kind, for Match.
var someTypes = []string{
	"OrderAdded", "OrderStarted", "JobStateChanged", "JobChainStateChanged", "TaskStarted", "FileBasedAdded",
	"SchedulerClosed", "StreamAppended", "VariablesCustomEvent", "PackageInstalled", "Paid",
}

func matching(s event.Selection) string {
	var matched []string
	for _, name := range someTypes {
		if s.Match(name) {
			matched = append(matched, name)
		}
	}
	return strings.Join(matched, " ")
}

func TestParseReturnSelectsTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ list, want string }{
		{"Event", strings.Join(someTypes, " ")},
		{"OrderStarted", "OrderStarted"},
		{"OrderEvent", "OrderAdded OrderStarted"},
		{"JobEvent", "JobStateChanged"},
		{"JobChainEvent,TaskEvent", "JobChainStateChanged TaskStarted"},
		{"CustomEvent", "VariablesCustomEvent PackageInstalled Paid"},
		{"CustomEvent,OrderStarted", "OrderStarted VariablesCustomEvent PackageInstalled Paid"},
		{"OrderStarted,CustomEvent,Paid", "OrderStarted VariablesCustomEvent PackageInstalled Paid"},
		{"Paid", "Paid"},
		{"Paid,OrderEvent,Paid", "OrderAdded OrderStarted Paid"},
		{"VariablesCustomEvent", "VariablesCustomEvent"},
		{"Event,Paid", strings.Join(someTypes, " ")},
		{"NeverEmitted", ""},
	} {
		s, err := event.ParseReturn(c.list)
		if err != nil {
			t.Errorf("ParseReturn(%s) = %v", c.list, err)
			continue
		}
		if diff := cmp.Diff(c.want, matching(s)); diff != "" {
			t.Errorf("ParseReturn(%s) matches (-want +got):\n%s", c.list, diff)
		}
		if s.Kind() != event.SelectsEvents || s.Overview() != "" {
			t.Errorf("ParseReturn(%s): Kind = %d, Overview = %q", c.list, s.Kind(), s.Overview())
		}
	}
}

func TestParseReturnOfOtherKinds(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]event.Kind{
		"OrderOverview": event.SelectsOverview, "JobOverview": event.SelectsOverview, "JobChainOverview": event.SelectsOverview,
		"TaskOverview": event.SelectsOverview, "FileBasedOverview": event.SelectsOverview, "ObjectOverview": event.SelectsOverview,
		"OrderStatisticsChanged": event.SelectsStatistics,
	} {
		s, err := event.ParseReturn(list)
		if err != nil || s.Kind() != want || (s.Overview() == list) != (want == event.SelectsOverview) {
			t.Errorf("ParseReturn(%s) = kind %d of %q, %v, want kind %d", list, s.Kind(), s.Overview(), err, want)
		}
		if matching(s) != "" {
			t.Errorf("ParseReturn(%s) matches %s, want no events", list, matching(s))
		}
	}
}

func TestParseReturnRefuses(t *testing.T) {
	t.Parallel()
	for list, named := range map[string]string{
		"":                                     "empty element",
		",":                                    "empty element",
		"OrderEvent,":                          "empty element",
		"OrderEvent,,JobEvent":                 "empty element",
		"OrderEvent, JobEvent":                 `" JobEvent"`,
		"1":                                    `"1"`,
		"a b":                                  `"a b"`,
		"OrderNonsense":                        "OrderNonsense",
		"Event,TaskNonsense":                   "TaskNonsense",
		"StreamX":                              "StreamX",
		"OrderOverview,OrderEvent":             "OrderOverview and OrderEvent",
		"OrderEvent,OrderOverview":             "OrderEvent and OrderOverview",
		"OrderOverview,JobOverview":            "OrderOverview and JobOverview",
		"OrderOverview,OrderOverview":          "OrderOverview and OrderOverview",
		"OrderStatisticsChanged,OrderEvent":    "OrderStatisticsChanged and OrderEvent",
		"OrderOverview,OrderStatisticsChanged": "OrderOverview and OrderStatisticsChanged",
	} {
		_, err := event.ParseReturn(list)
		if event.ReasonOf(err) != event.Invalid || !strings.HasPrefix(err.Error(), "query.return: ") || !strings.Contains(err.Error(), named) {
			t.Errorf("ParseReturn(%s) = %v, want Invalid at query.return naming %s", list, err, named)
		}
	}
}

func TestSelectionWithin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list   string
		family event.Family
		want   string // "refused": an error
	}{
		{"Event", event.OrderEvent, "OrderAdded OrderStarted"},
		{"OrderEvent", event.OrderEvent, "OrderAdded OrderStarted"},
		{"OrderStarted", event.OrderEvent, "OrderStarted"},
		{"Event", event.JobEvent, "JobStateChanged"},
		{"Event", event.CustomEvent, "VariablesCustomEvent PackageInstalled Paid"},
		{"CustomEvent", event.CustomEvent, "VariablesCustomEvent PackageInstalled Paid"},
		{"Paid", event.CustomEvent, "Paid"},
		{"Paid,Event", event.CustomEvent, "VariablesCustomEvent PackageInstalled Paid"},
		{"Paid", event.OrderEvent, "refused"},
		{"OrderEvent,JobEvent", event.OrderEvent, "refused"},
		{"CustomEvent", event.OrderEvent, "refused"},
		{"OrderEvent", event.CustomEvent, "refused"},
		{"OrderOverview", event.OrderEvent, ""},
		{"OrderOverview", event.JobEvent, "refused"},
		{"ObjectOverview", event.CustomEvent, ""},
		{"OrderStatisticsChanged", event.OrderEvent, ""},
		{"OrderStatisticsChanged", event.TaskEvent, "refused"},
	} {
		s, err := event.ParseReturn(c.list)
		if err != nil {
			t.Fatalf("ParseReturn(%s) = %v", c.list, err)
		}
		within, err := s.Within(c.family)
		got := matching(within)
		if err != nil {
			got = "refused"
		}
		if got != c.want || within.Kind() != s.Kind() && err == nil {
			t.Errorf("ParseReturn(%s).Within(%s) matches %q, %v, want %q", c.list, c.family, got, err, c.want)
		}
	}
}

func TestZeroAndFullSelections(t *testing.T) {
	t.Parallel()
	if got := matching(event.Selection{}); got != "" {
		t.Errorf("the zero Selection matches %s, want nothing", got)
	}
	if got := matching(event.Everything()); got != strings.Join(someTypes, " ") {
		t.Errorf("Everything matches %s, want all", got)
	}
}
