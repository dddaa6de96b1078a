package definition

import (
	"encoding/json"
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
	Lease     time.Duration     `json:"lease,omitempty"` // default 30 s
}

// Target is where a task runs; at most one of its fields is set. None: on an instance.
type Target struct {
	HTTP      *HTTPTarget   `json:"http,omitempty"`
	Command   []string      `json:"command,omitempty"` // program and arguments; no shell
	Lambda    *LambdaTarget `json:"lambda,omitempty"`
	Go        string        `json:"go,omitempty"` // name of a function registered in this process
	Instances bool          `json:"instances,omitempty"`
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
	Target      Target        `json:"target"`
	Collections []Collection  `json:"collections"`
	Timeout     time.Duration `json:"timeout,omitempty"`
	Lease       time.Duration `json:"lease,omitempty"`
}

// Collection is one part of a source; its job's path is /sources/SOURCE/COLLECTION.
type Collection struct {
	Name     string `json:"name"`
	Schedule string `json:"schedule,omitempty"` // a cron expression
	Timezone string `json:"timezone,omitempty"`
}

// Handler takes events (seed 002); its job's path is /canvases/CANVAS/SPACE/NAME.
type Handler struct {
	Canvas     string        `json:"canvas"`
	Space      string        `json:"space"`
	Name       string        `json:"name"`
	Target     Target        `json:"target"`
	Attempts   int           `json:"attempts,omitempty"`    // default 3
	RetryDelay time.Duration `json:"retry_delay,omitempty"` // default 5 m
	OnError    string        `json:"on_error,omitempty"`    // retry (default) or reject
	Timeout    time.Duration `json:"timeout,omitempty"`
	Lease      time.Duration `json:"lease,omitempty"`
}

// Job is what tasks of a path are run by.
type Job struct {
	Path       string        `json:"path"`
	Target     Target        `json:"target"`
	Queue      string        `json:"queue,omitempty"`
	Attempts   int           `json:"attempts,omitempty"` // 0: the dialect's or the queue's default; -1: endless
	RetryDelay time.Duration `json:"retry_delay,omitempty"`
	OnError    string        `json:"on_error,omitempty"`
	Timeout    time.Duration `json:"timeout,omitempty"` // how long one attempt may take; default: no end
	Lease      time.Duration `json:"lease,omitempty"`   // how long it is held without a heartbeat; default: the set's
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
	Topics      []string       `json:"topics,omitempty"`
	Type        QueueType      `json:"type,omitempty"`         // default unordered
	MaxParallel int            `json:"max_parallel,omitempty"` // 0: no limit; of an ordered queue always 1
	Retries     *int           `json:"retries,omitempty"`      // default 10; -1 endless
	RetryDelay  *time.Duration `json:"retry_delay,omitempty"`  // default 2 s
	KeepJobs    bool           `json:"keep_jobs,omitempty"`
	Weights     map[string]int `json:"weights,omitempty"` // by fairness key or pattern (* one level, ** below); default 1
}

// Schedule makes tasks at regular times.
type Schedule struct {
	Name     string          `json:"name"`
	Cron     string          `json:"cron"`
	Timezone string          `json:"timezone,omitempty"`
	Job      string          `json:"job"`
	Payload  json.RawMessage `json:"payload,omitempty"`
	Misfire  string          `json:"misfire,omitempty"`
	Overlap  string          `json:"overlap,omitempty"`
}

// JobChain is a way of orders through several jobs (seed 000).
type JobChain struct {
	Path  string `json:"path"`
	Nodes []Node `json:"nodes"`
}

// Node is a station of a job chain; without a job it is an end.
type Node struct {
	ID    string `json:"id"`
	Job   string `json:"job,omitempty"`
	Next  string `json:"next,omitempty"`
	Error string `json:"error,omitempty"`
}
