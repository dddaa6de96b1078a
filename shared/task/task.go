package task

import (
	"encoding/json"
	"time"
)

// Dialect is the set of words in which a task is shown, see docs/dialects.md.
type Dialect string

// The dialects.
const (
	Sync  Dialect = "sync"  // as in EventNative's task scheduler
	Event Dialect = "event" // as Dark's events
	Job   Dialect = "job"   // as in Sling's job handling
	// OfOrder is the dialect of an order's steps, as in JobScheduler.
	OfOrder Dialect = "step"
)

// Task is one unit of work. Times are in microseconds since 1970, 0 while they have not been reached. A new
// field gets a number in the stored form too (queue/layout/fields.go); its JSON is what earlier versions stored, and what people are
// shown. Clients see the dialects' views.
type Task struct {
	ID      ID      `json:"id"`
	Dialect Dialect `json:"d"`
	Job     string  `json:"job"`           // the job's path, such as /sources/S/C
	Group   string  `json:"grp,omitempty"` // the group that it is listed under; empty: Job
	Queue   string  `json:"q"`             // name of the queue

	State    State `json:"st"`
	Priority int64 `json:"pri,omitempty"` // higher starts earlier; default 0
	Created  int64 `json:"at"`            // when it was created; a schedule's tick may be created before the time in its id
	// NotBefore is the earliest start: the time asked for, or that of the next attempt. It may be past.
	NotBefore int64 `json:"nb,omitempty"`
	Started   int64 `json:"sa,omitempty"` // start of the newest attempt
	Finished  int64 `json:"fa,omitempty"` // when it reached a final state

	Attempt  int `json:"n,omitempty"` // starts so far
	Attempts int `json:"max"`         // starts at most, from 1; -1: endless
	// PutOff is the time of the first of the newest attempts that all ended because the target asked to come back later,
	// which does not count as an attempt; 0: the newest one ended otherwise.
	PutOff int64 `json:"po,omitempty"`
	// RetryDelay is the pause after a failed attempt; default 0.
	RetryDelay time.Duration `json:"rd,omitempty"`
	// Thrown says whether a thrown error (a panic, a Go error) is retried like a failure, or rejects the task.
	Thrown OnThrown `json:"thr,omitempty"`

	Fairness    string `json:"fk,omitempty"` // the fairness key: whose turn the task takes in a round-robin queue; empty: Job
	Unique      string `json:"u,omitempty"`  // unique key, within Job; empty: none
	UniqueUntil int64  `json:"uu,omitempty"` // the key is held until then, even if the task is finished
	// Late says that the key is taken at NotBefore or at the start, instead of the creation: a task that finds it taken is dropped.
	Late        bool         `json:"late,omitempty"`
	Concurrency *Concurrency `json:"cc,omitempty"`  // nil: no limit
	Prefer      string       `json:"pi,omitempty"`  // name of the preferred instance; empty: none
	Modifier    string       `json:"mod,omitempty"` // as Dark's events have
	Schedule    string       `json:"sch,omitempty"` // name of the schedule that created it

	Order *Order `json:"o,omitempty"` // the order whose step it is; nil: of none

	Instance string          `json:"by,omitempty"`  // the instance that runs it or ran it last
	Lease    string          `json:"ls,omitempty"`  // token of the lease while it runs
	Message  string          `json:"msg,omitempty"` // result of the newest attempt in words
	Code     int             `json:"rc,omitempty"`  // return code of the newest attempt
	Output   json.RawMessage `json:"out,omitempty"` // of the newest attempt; JSON of at most 256 KiB; empty: none
	Trace    string          `json:"tp,omitempty"`  // traceparent of the request that created it (W3C Trace Context)

	// Payload is JSON of at most 256 KiB. A large one is stored as an item of its own; then Apart holds its size in bytes,
	// and Payload is empty until it is fetched.
	Payload json.RawMessage `json:"p,omitempty"`
	Apart   int             `json:"pa,omitempty"`
}

// Order says which order's step a task is, and at which node.
type Order struct {
	Chain string `json:"c"` // path of the job chain
	ID    string `json:"i"`
	Node  string `json:"n"`           // id of the node in its chain
	First bool   `json:"f,omitempty"` // the order's first step: it starts with the order

	Timeout  time.Duration `json:"to,omitempty"` // of the step, from the start of its first attempt; 0: none
	Deadline int64         `json:"dl,omitempty"` // when it ends, microseconds since 1970; 0: it has not been started, or has none
}

// Begin returns what the first start of a step's task at a time in microseconds makes of its order: it may have a deadline from then on.
func (o *Order) Begin(now int64) *Order {
	if o == nil || o.Timeout == 0 || o.Deadline != 0 {
		return o
	}
	begun := *o
	begun.Deadline = now + o.Timeout.Microseconds()
	return &begun
}

// Allowed returns how long the newest attempt may take, if its job's timeout is that long: less for the step of an order that has a
// deadline before.
func (t *Task) Allowed(timeout time.Duration) time.Duration {
	if t.Order == nil || t.Order.Deadline == 0 {
		return timeout
	}
	left := max(time.Duration(t.Order.Deadline-t.Started)*time.Microsecond, time.Microsecond)
	if timeout > 0 {
		return min(timeout, left)
	}
	return left
}

// TooLate reports whether an attempt at a time in microseconds would be after the deadline.
func (t *Task) TooLate(at int64) bool {
	return t.Order != nil && t.Order.Deadline != 0 && at >= t.Order.Deadline
}

// Path returns the path of the order: that of its chain, a comma, and its id.
func (o *Order) Path() string { return o.Chain + "," + o.ID }

// OnThrown is the effect of a thrown error.
type OnThrown string

// The effects of a thrown error. Empty means [ThrownRetries].
const (
	ThrownRetries OnThrown = "retry"
	ThrownRejects OnThrown = "reject"
)

// Concurrency limits how many tasks with the same key run at once, across all jobs.
type Concurrency struct {
	Key   string `json:"k"`           // chosen by the client; any task with it counts
	Limit int    `json:"l"`           // tasks that run at once, at least 1
	Skip  bool   `json:"s,omitempty"` // a task that finds the limit reached is dropped; otherwise it waits
}

// HoldsUnique reports whether the task has taken its unique key.
func (t *Task) HoldsUnique() bool { return t.Unique != "" && (!t.Late || t.Attempt > 0) }

// ListedUnder returns the name of the group: Group, or Job if that is empty.
func (t *Task) ListedUnder() string {
	if t.Group != "" {
		return t.Group
	}
	return t.Job
}

// Begins reports whether the start of the newest attempt was the task's first: attempts that were put off do not count, but have
// been started.
func (t *Task) Begins() bool { return t.Attempt == 1 && t.PutOff == 0 }

// Turn returns the fairness key: Fairness, or Job if that is empty.
func (t *Task) Turn() string {
	if t.Fairness != "" {
		return t.Fairness
	}
	return t.Job
}

// AttemptsLeft reports whether the task may be started again.
func (t *Task) AttemptsLeft() bool { return t.Attempts < 0 || t.Attempt < t.Attempts }

// StateAt returns the task's state at now in microseconds since 1970; held says that a rule, a limit or a missing
// capability keeps it from starting.
func (t *Task) StateAt(now int64, held bool) State {
	if !t.State.Queued() {
		return t.State
	}
	if held || t.NotBefore > now {
		return Waiting
	}
	return Ready
}

// Score is the priority as EventNative's task scheduler computes it: priority·10^12 less the creation in seconds. It is
// for display. Where it differs for two tasks, they start in its order; the order in use is (priority, creation in
// microseconds, id).
func (t *Task) Score() int64 { return t.Priority*1_000_000_000_000 - t.Created/1_000_000 }
