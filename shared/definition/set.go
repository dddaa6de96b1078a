package definition

import (
	"encoding/json"
	"sync/atomic"
	"time"
)

// Set is everything that is declared, as a whole. It is immutable once it is in use.
type Set struct {
	Sources   map[string]Source `json:"sources,omitempty"`
	Handlers  []Handler         `json:"handlers,omitempty"`
	Jobs      []Job             `json:"jobs,omitempty"`
	Queues    []Queue           `json:"queues,omitempty"`
	Schedules []Schedule        `json:"schedules,omitempty"`
	JobChains []JobChain        `json:"job_chains,omitempty"`
	Lease     time.Duration     `json:"lease,omitzero"` // default 30 s

	revision int64 // see Revision

	sound bool                  // it was read as a whole, or made of such a set by an edit that leaves it right
	index atomic.Pointer[index] // made when the set is first asked
}

// Revision returns which set this is of those that were put in force one after the other: a later one's is higher. It is 0 of a set
// that was never in force.
func (s *Set) Revision() int64 { return s.revision }

// Target is where a task runs; at most one of its fields is set. None: on an instance.
type Target struct {
	HTTP      *HTTPTarget   `json:"http,omitzero"`
	Command   []string      `json:"command,omitempty"` // program and arguments; no shell
	Lambda    *LambdaTarget `json:"lambda,omitzero"`
	Go        string        `json:"go,omitzero"` // name of a function registered in this process
	Instances bool          `json:"instances,omitzero"`
}

// OnInstance reports whether the task runs on an instance that claims it, not by this server.
func (t Target) OnInstance() bool {
	return t.HTTP == nil && t.Command == nil && t.Lambda == nil && t.Go == ""
}

// HTTPTarget is an address that tasks are posted to.
type HTTPTarget struct {
	URL string `json:"url"`
}

// LambdaTarget is a function that tasks are handed to.
type LambdaTarget struct {
	ARN string `json:"arn"`
}

// Source is what collections are synchronized from (seed 001).
type Source struct {
	Target      Target        `json:"target,omitzero"`
	Collections []Collection  `json:"collections"`
	Timeout     time.Duration `json:"timeout,omitzero"`
	Lease       time.Duration `json:"lease,omitzero"`
}

// Collection is one part of a source; its job's path is /sources/SOURCE/COLLECTION.
type Collection struct {
	Name     string `json:"name"`
	Schedule string `json:"schedule,omitzero"` // a cron expression
	Timezone string `json:"timezone,omitzero"` // an IANA name; default UTC
	DST      string `json:"dst,omitzero"`      // cron (default) or quartz
}

// Handler takes events (seed 002); its job's path is /canvases/CANVAS/SPACE/NAME.
type Handler struct {
	Canvas     string        `json:"canvas"`
	Space      string        `json:"space"`
	Name       string        `json:"name"`
	Target     Target        `json:"target,omitzero"`
	Interval   string        `json:"interval,omitzero"`    // of a cron handler, one of [Intervals]: it gets an event by itself
	Attempts   int           `json:"attempts,omitzero"`    // default 3
	RetryDelay time.Duration `json:"retry_delay,omitzero"` // default 5 m
	OnError    string        `json:"on_error,omitzero"`    // retry (default) or reject
	Timeout    time.Duration `json:"timeout,omitzero"`
	Lease      time.Duration `json:"lease,omitzero"`
}

// Intervals are how often a cron handler may get an event (seed 002).
var Intervals = map[string]time.Duration{
	"Every 1min": time.Minute, "Every 1hr": time.Hour, "Every 12hrs": 12 * time.Hour, "Daily": 24 * time.Hour,
	"Weekly": 7 * 24 * time.Hour, "Fortnightly": 14 * 24 * time.Hour,
}

// Job is what tasks of a path are run by.
type Job struct {
	Path       string        `json:"path"`
	Target     Target        `json:"target,omitzero"`
	Queue      string        `json:"queue,omitzero"`
	Attempts   int           `json:"attempts,omitzero"` // 0: the dialect's or the queue's default; -1: endless
	RetryDelay time.Duration `json:"retry_delay,omitzero"`
	OnError    string        `json:"on_error,omitzero"`
	Timeout    time.Duration `json:"timeout,omitzero"` // how long one attempt may take; default [DefaultTimeout]
	Lease      time.Duration `json:"lease,omitzero"`   // how long it is held without a heartbeat; default: the set's
}

// QueueType is the policy of a queue.
type QueueType string

// The policies.
const (
	Unordered  QueueType = "unordered"   // by priority, then creation, in parallel
	Ordered    QueueType = "ordered"     // by creation, one at a time, a retry keeps its place
	RoundRobin QueueType = "round-robin" // in weighted turns over the fairness key
)

// The queues that are there without being declared, and may be declared to change them.
const (
	SyncQueue  = "sync-tasks"     // of seed 001; unordered
	EventQueue = "handler-events" // of seed 002; round-robin
	MainQueue  = "main"           // of whatever else names none; unordered
)

// Queue says how tasks wait and how many run.
type Queue struct {
	Name        string         `json:"name"`
	Topics      []string       `json:"topics,omitempty"`      // see [Set.QueueForTopic]
	Ranking     int            `json:"ranking,omitzero"`      // the highest takes a topic that several name; default 0
	Type        QueueType      `json:"type,omitzero"`         // default unordered
	MaxParallel int            `json:"max_parallel,omitzero"` // 0: no limit; of an ordered queue always 1
	Retries     *int           `json:"retries,omitzero"`      // default 10; -1 endless
	RetryDelay  *time.Duration `json:"retry_delay,omitzero"`  // default 2 s
	KeepJobs    bool           `json:"keep_jobs,omitzero"`
	Weights     map[string]int `json:"weights,omitempty"` // by fairness key or pattern, see [Queue.Weight]; default 1
}

// Schedule makes tasks at regular times.
type Schedule struct {
	Name     string          `json:"name"`
	Cron     string          `json:"cron,omitzero"`     // an expression; this or Date
	Date     time.Time       `json:"date,omitzero"`     // the only time at which it fires
	Timezone string          `json:"timezone,omitzero"` // an IANA name; default UTC
	DST      string          `json:"dst,omitzero"`      // cron (default) or quartz
	Job      string          `json:"job"`               // path of a collection, a handler or a job, or of a topic
	Payload  json.RawMessage `json:"payload,omitzero"`
	Misfire  string          `json:"misfire,omitzero"` // skip, once (default) or all
	Overlap  string          `json:"overlap,omitzero"` // allow (default), skip or queue
}

// JobChain is a way of orders through several jobs (seed 000).
type JobChain struct {
	Path  string `json:"path"`
	Nodes []Node `json:"nodes"`
}

// Node is a station of a job chain; without a job it is an end.
type Node struct {
	ID    string `json:"id"`
	Job   string `json:"job,omitzero"`
	Next  string `json:"next,omitzero"`
	Error string `json:"error,omitzero"`
}
