package definition

import (
	"encoding/json"
	"sync/atomic"
	"time"
)

// Set is everything that is declared. It is immutable once it is in use. Durations are above 0 unless a field says
// otherwise; 0 means the default.
type Set struct {
	Sources   map[string]Source `json:"sources,omitempty"`    // by name, of 1 to [MaxName] bytes
	Handlers  []Handler         `json:"handlers,omitempty"`   // one per canvas, space and name
	Jobs      []Job             `json:"jobs,omitempty"`       // one per path
	Queues    []Queue           `json:"queues,omitempty"`     // one per name; their order matters for topics
	Schedules []Schedule        `json:"schedules,omitempty"`  // one per name
	JobChains []JobChain        `json:"job_chains,omitempty"` // one per path
	Locks     []Lock            `json:"locks,omitempty"`      // one per name
	// FileOrders start orders for files. They come from the server's own file only, never from the API.
	FileOrders []FileOrder   `json:"file_orders,omitempty"`
	Lease      time.Duration `json:"lease,omitzero"` // of tasks whose job has none; default [DefaultLease]

	revision int64 // see Revision

	sound bool                  // it was read as a whole, or made of such a set by an edit that keeps it valid
	index atomic.Pointer[index] // built at the first lookup
}

// Revision returns the set's version among those that were in force: a later one's is higher. It is 0 for a set that was
// never in force.
func (s *Set) Revision() int64 { return s.revision }

// Target is where a task runs; at most one of its fields is set. If none is, the task runs on an instance.
type Target struct {
	// HTTP is the address that tasks are posted to.
	HTTP    *HTTPTarget `json:"http,omitzero"`
	Command []string    `json:"command,omitempty"` // program and arguments; no shell
	// Lambda is the function that tasks are passed to.
	Lambda    *LambdaTarget `json:"lambda,omitzero"`
	Go        string        `json:"go,omitzero"`        // name of a function that is registered in the server's process
	Instances bool          `json:"instances,omitzero"` // true is the same as no target
}

// OnInstance reports whether the task runs on an instance that claims it, not by this server.
func (t Target) OnInstance() bool {
	return t.HTTP == nil && t.Command == nil && t.Lambda == nil && t.Go == ""
}

// HTTPTarget is a server that tasks are posted to.
type HTTPTarget struct {
	URL string `json:"url"` // absolute, of scheme http or https
}

// LambdaTarget is a function of AWS Lambda.
type LambdaTarget struct {
	ARN string `json:"arn"` // of the function, with or without a version or an alias
}

// Source is what collections are synchronized from (as in EventNative's task scheduler).
type Source struct {
	Target      Target        `json:"target,omitzero"` // of the tasks of all its collections
	Collections []Collection  `json:"collections"`
	Timeout     time.Duration `json:"timeout,omitzero"` // of one attempt; default [DefaultTimeout]
	Lease       time.Duration `json:"lease,omitzero"`   // of a task without a heartbeat; default: the set's
}

// Collection is one part of a source, a task's unit of work; its job's path is /sources/SOURCE/COLLECTION.
type Collection struct {
	Name     string `json:"name"`              // 1 to [MaxName] bytes, once in its source
	Schedule string `json:"schedule,omitzero"` // a cron expression; empty: none
	Timezone string `json:"timezone,omitzero"` // an IANA name; default UTC
	DST      string `json:"dst,omitzero"`      // cron (default) or quartz
}

// Handler takes events (as in Dark); its job's path is /canvases/CANVAS/SPACE/NAME, each part of 1 to [MaxName] bytes.
type Handler struct {
	Canvas string `json:"canvas"`
	Space  string `json:"space"`
	Name   string `json:"name"`
	Target Target `json:"target,omitzero"`
	// Interval, of a cron handler, is a key of [Intervals]: how often it gets an event.
	Interval   string        `json:"interval,omitzero"`
	Attempts   int           `json:"attempts,omitzero"`    // starts of a task at most; default 3, -1: endless
	RetryDelay time.Duration `json:"retry_delay,omitzero"` // between attempts; default 5 minutes
	OnError    string        `json:"on_error,omitzero"`    // what a thrown error does: retry (default) or reject
	Timeout    time.Duration `json:"timeout,omitzero"`     // of one attempt; default [DefaultTimeout]
	Lease      time.Duration `json:"lease,omitzero"`       // of a task without a heartbeat; default: the set's
}

// Intervals are the possible intervals of cron handlers, as in Dark.
var Intervals = map[string]time.Duration{
	"Every 1min": time.Minute, "Every 1hr": time.Hour, "Every 12hrs": 12 * time.Hour, "Daily": 24 * time.Hour,
	"Weekly": 7 * 24 * time.Hour, "Fortnightly": 14 * 24 * time.Hour,
}

// Job says how the tasks of a path are run.
type Job struct {
	Path   string `json:"path"` // at most [MaxPath] bytes, see [ValidPath]
	Target Target `json:"target,omitzero"`
	Queue  string `json:"queue,omitzero"` // default: of a topic, see [Set.QueueForTopic]; otherwise [MainQueue]
	// Attempts is how many times a task is started at most; -1: endless. 0 means the retries + 1 of its queue (named here,
	// a topic's, or [MainQueue]) if that has any, otherwise 11 for a topic and 1 for others.
	Attempts int `json:"attempts,omitzero"`
	// RetryDelay is the pause between attempts. 0 means that of its queue (named here, a topic's, or [MainQueue]) if that has one,
	// otherwise 2 s for a topic and none for others.
	RetryDelay time.Duration `json:"retry_delay,omitzero"`
	// OnError is what a thrown error does: retry or reject; default: reject for a topic, retry for others.
	OnError string        `json:"on_error,omitzero"`
	Timeout time.Duration `json:"timeout,omitzero"` // of one attempt; default [DefaultTimeout]
	Lease   time.Duration `json:"lease,omitzero"`   // of a task without a heartbeat; default: the set's
	// Setbacks are the delays of orders that this job has set back, by rising counts; none: no delay, and no end.
	Setbacks []Setback `json:"delay_order_after_setback,omitempty"`
}

// QueueType is the order in which a queue's tasks start.
type QueueType string

// The types of queues.
const (
	Unordered  QueueType = "unordered"   // by priority, then creation, in parallel
	Ordered    QueueType = "ordered"     // by creation, one at a time; a retry keeps its place
	RoundRobin QueueType = "round-robin" // in weighted turns over the fairness keys
)

// The built-in queues. They need no declaration; one that is declared is changed by it.
const (
	SyncQueue  = "sync-tasks"     // of collections, as in EventNative; unordered
	EventQueue = "handler-events" // of handlers, as in Dark; round-robin
	MainQueue  = "main"           // of tasks for which no other queue is named; unordered
)

// Queue says in which order tasks start and how many run at once.
type Queue struct {
	Name        string         `json:"name"`                  // 1 to [MaxName] bytes; with {0}, of a family of queues
	Topics      []string       `json:"topics,omitempty"`      // patterns of topics, see [Set.QueueForTopic]
	Ranking     int            `json:"ranking,omitzero"`      // of several queues that match a topic, the highest takes it; default 0
	Type        QueueType      `json:"type,omitzero"`         // default unordered; of [EventQueue] round-robin
	MaxParallel int            `json:"max_parallel,omitzero"` // tasks that run at once; 0: no limit; of an ordered queue always 1
	Retries     *int           `json:"retries,omitzero"`      // of a failed task; from 0, -1: endless; nil: the default of the job
	RetryDelay  *time.Duration `json:"retry_delay,omitzero"`  // between attempts, from 0; nil: the default of the job
	KeepJobs    bool           `json:"keep_jobs,omitzero"`    // also keep tasks of topics in the history after success
	Weights     map[string]int `json:"weights,omitempty"`     // by fairness key or pattern, see [Queue.Weight]; at least 1, default 1
}

// Schedule creates tasks at regular times, or once.
type Schedule struct {
	Name     string          `json:"name"`              // 1 to [MaxName] bytes
	Cron     string          `json:"cron,omitzero"`     // an expression; either this or Date is required
	Date     time.Time       `json:"date,omitzero"`     // the only time at which it fires, in UTC to the microsecond
	Timezone string          `json:"timezone,omitzero"` // an IANA name; default UTC
	DST      string          `json:"dst,omitzero"`      // cron (default) or quartz
	Job      string          `json:"job,omitzero"`      // path of a declared collection, handler or job, or of any topic; either this or Order
	Order    *ScheduledOrder `json:"order,omitzero"`    // the order that each tick makes, or starts again
	Payload  json.RawMessage `json:"payload,omitzero"`  // of each task; JSON of at most 256 KiB
	Misfire  string          `json:"misfire,omitzero"`  // which late ticks get a task: skip (none), once (default: one task) or all
	// Overlap is what happens to a tick while the task of an earlier one is unfinished: allow (default; both run), skip or
	// queue.
	Overlap string `json:"overlap,omitzero"`
}
