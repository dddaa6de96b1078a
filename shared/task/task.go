package task

import (
	"encoding/json"
	"time"
)

// Dialect says which seed's words a task is spoken of in.
type Dialect string

// The dialects.
const (
	Sync  Dialect = "sync"  // seed 001
	Event Dialect = "event" // seed 002
	Job   Dialect = "job"   // seed 004
	Order Dialect = "order" // seed 000
)

// Task is one unit of work. Times are microseconds since 1970, 0 where they have not been reached. Its JSON is how it is
// stored; what clients see are the dialects' views.
type Task struct {
	ID      ID      `json:"id"`
	Dialect Dialect `json:"d"`
	Job     string  `json:"job"`           // the job's path, such as /sources/S/C
	Group   string  `json:"grp,omitempty"` // what it is listed under; empty: Job
	Queue   string  `json:"q"`

	State    State `json:"st"`
	Priority int64 `json:"pri,omitempty"` // higher is better
	Created  int64 `json:"at"`            // when it was made; of a schedule's tick that may be before its time, which its id tells
	// NotBefore is when the task may start at the earliest: the time asked for, or that of the next attempt.
	NotBefore int64 `json:"nb,omitempty"`
	Started   int64 `json:"sa,omitempty"` // the newest attempt's start
	Finished  int64 `json:"fa,omitempty"`

	Attempt  int `json:"n,omitempty"` // starts so far
	Attempts int `json:"max"`         // at most so many starts; -1: endless
	// PutOff is since when each attempt has ended by the target asking to come back later, which is no attempt. 0: the
	// newest one has not.
	PutOff int64 `json:"po,omitempty"`
	// RetryDelay is how long a failed attempt is followed by nothing.
	RetryDelay time.Duration `json:"rd,omitempty"`
	// Thrown says whether a thrown error (a panic, a Go error) is retried like a failure, or rejects.
	Thrown OnThrown `json:"thr,omitempty"`

	Fairness    string `json:"fk,omitempty"` // whose turn the task takes in a fair queue; empty: Job
	Unique      string `json:"u,omitempty"`  // unique key, within Job
	UniqueUntil int64  `json:"uu,omitempty"` // the key is held until then, even when the task is finished
	// Late says that the key is taken when the task starts, not when it is created: a task that finds it taken is dropped.
	Late        bool         `json:"late,omitempty"`
	Concurrency *Concurrency `json:"cc,omitempty"`
	Prefer      string       `json:"pi,omitempty"`  // name of the instance that should run it
	Modifier    string       `json:"mod,omitempty"` // seed 002
	Schedule    string       `json:"sch,omitempty"` // name of the schedule that made it

	Instance string          `json:"by,omitempty"`  // who runs or ran it last
	Lease    string          `json:"ls,omitempty"`  // token of the lease while it runs
	Message  string          `json:"msg,omitempty"` // what the newest attempt ended with
	Code     int             `json:"rc,omitempty"`  // return code of the newest attempt
	Output   json.RawMessage `json:"out,omitempty"`
	Trace    string          `json:"tp,omitempty"` // traceparent of whoever enqueued it (W3C Trace Context)

	// Payload is JSON. A large one is kept apart; then Apart holds its size and Payload is empty until it is fetched.
	Payload json.RawMessage `json:"p,omitempty"`
	Apart   int             `json:"pa,omitempty"`
}

// OnThrown says what a thrown error does.
type OnThrown string

// What a thrown error does. Empty means [ThrownRetries].
const (
	ThrownRetries OnThrown = "retry"
	ThrownRejects OnThrown = "reject"
)

// Concurrency limits how many tasks with the same key run at once, over all jobs.
type Concurrency struct {
	Key   string `json:"k"`
	Limit int    `json:"l"`           // at least 1
	Skip  bool   `json:"s,omitempty"` // a task that finds as many running is dropped; otherwise it waits
}

// HoldsUnique reports whether the task has taken its unique key.
func (t *Task) HoldsUnique() bool { return t.Unique != "" && (!t.Late || t.Attempt > 0) }

// ListedUnder answers the group.
func (t *Task) ListedUnder() string {
	if t.Group != "" {
		return t.Group
	}
	return t.Job
}

// Turn answers the fairness key.
func (t *Task) Turn() string {
	if t.Fairness != "" {
		return t.Fairness
	}
	return t.Job
}

// AttemptsLeft reports whether the task may be started once more.
func (t *Task) AttemptsLeft() bool { return t.Attempts < 0 || t.Attempt < t.Attempts }

// StateAt answers the task's state at that time in microseconds; held says that a rule, a limit or the lack of a
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

// Score is the priority as seed 001 computes it: priority·10^12 less the creation in seconds. It is shown, and agrees with
// the order that is used, (priority, creation in microseconds, id), wherever it can tell two tasks apart.
func (t *Task) Score() int64 { return t.Priority*1_000_000_000_000 - t.Created/1_000_000 }
