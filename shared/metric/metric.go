// Package metric lists what Millrace measures of itself, once for every way to publish it: Prometheus on plain hosts, CloudWatch on
// Lambda. Alarms, dashboards and documents use these names.
//
// It imports none of Millrace's packages.
package metric

// Metric is one measurement.
type Metric struct {
	Name   string
	Help   string
	Unit   string   // as CloudWatch calls it: Seconds or Count
	Labels []string // by what it is told apart besides Store; in CloudWatch its dimensions
}

// Store is the label that every metric has first: which deployment it is of, by the store as MILLRACE_STORE names it. Without it, two
// deployments in one account, or in one Prometheus, would add up.
const Store = "store"

// What Millrace measures. Requests, operations and events are published on Lambda too; the others only by plain hosts.
var (
	Requests = Metric{
		"millrace_http_request_duration_seconds", "Requests by route and status, from the first byte read to the last written, waiting included.",
		"Seconds", []string{"route", "status"},
	}
	Operations  = Metric{"millrace_operations_total", "Operations by what came of them.", "Count", []string{"operation", "outcome"}}
	Events      = Metric{"millrace_events_total", "Events that operations moved.", "Count", []string{"operation"}}
	Followers   = Metric{"millrace_followers", "Requests that wait for events now.", "Count", nil}
	StoreCalls  = Metric{"millrace_store_calls_total", "Calls of the store by method, whatever came of them.", "Count", []string{"method"}}
	ClockOffset = Metric{
		"millrace_clock_offset_seconds", "How far this process's clock is ahead of the store's date, negative where it is behind; 0 while it is right.",
		"Seconds", nil,
	}
)

// What whole deployments are watched by, see docs/runbook.md.
var (
	OldestWait = Metric{
		"millrace_oldest_wait_seconds", "How long ago the oldest of the tasks that can start was created: of the first 16 of each line, each minute.",
		"Seconds", nil,
	}
	DueLag = Metric{
		"millrace_due_lag_seconds", "How long what has fallen due still waits for its time, where several processes share the store; each minute.",
		"Seconds", nil,
	}
	LeasesLost = Metric{"millrace_leases_lost_total", "Leases that were ended since their worker was not heard of.", "Count", nil}
	Misfires   = Metric{
		"millrace_misfires_total", "Schedules that had ticks whose time passed while no process could make them, at each look.", "Count", nil,
	}
)

// All returns every metric.
func All() []Metric {
	return []Metric{Requests, Operations, Events, Followers, StoreCalls, ClockOffset, OldestWait, DueLag, LeasesLost, Misfires}
}
