package api

import "time"

// Metrics receives what the API measures. Methods are called concurrently and must not block. Package api/prom has one
// for Prometheus.
type Metrics interface {
	// Request counts a finished request. route is the operation's pattern, such as "POST /jobscheduler/master/api/event",
	// or "none" where nothing is; it never holds what a client sent. A client that left early counts as status 499.
	Request(route string, status int, took time.Duration)

	// Outcome counts what came of an operation and how many events it moved: ("emit", "appended", 3), ("read", "torn", 0).
	Outcome(operation, outcome string, events int)

	// Following counts the requests that wait for events, up and down.
	Following(change int)
}

// unmeasured drops what it is told.
type unmeasured struct{}

// Request implements Metrics.
func (unmeasured) Request(string, int, time.Duration) {}

// Outcome implements Metrics.
func (unmeasured) Outcome(string, string, int) {}

// Following implements Metrics.
func (unmeasured) Following(int) {}
