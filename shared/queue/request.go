package queue

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/task"
)

// New is a request for one task.
type New struct {
	Dialect task.Dialect
	Job     string // the job's path, which begins with /; required
	Group   string // the group that it is listed under; default: Job, or the group of a topic's job
	Prefix  string // beginning of the id; default: empty
	Queue   string // name of the queue; default: the job's, else [definition.MainQueue]

	Priority  int64           // higher starts earlier; default 0
	Payload   json.RawMessage // JSON of at most [MaxPayload] bytes; default: none
	NotBefore time.Time       // the earliest start; zero or past: at once
	Modifier  string          // as Dark's events have; default: empty
	Missing   bool            // there is no such job: the task is recorded as missing and never runs

	Unique       string            // while an unfinished task of the job has this key, that task is returned; empty: no key
	UniqueWindow time.Duration     // how long from its creation the task holds the key, even if it finishes earlier; default 0
	Fairness     string            // the fairness key; default: Job
	Concurrency  *task.Concurrency // nil: no limit
	Prefer       string            // name of the instance that should run it, if it can, see [PreferFor]; default: none
	Trace        string            // traceparent of the request (W3C Trace Context); default: none

	// Same identifies the task: requests with the same Job, Same and NotBefore, which is then required, make one task, for as
	// long as that is kept. So a schedule makes each tick once. Default: empty, each request makes a task.
	Same     string
	Schedule string // name of the schedule that makes the task; default: none
	// Order is the order whose step the task is; default: none. Given is then the task's id, from [Queue.NewID].
	Order *task.Order
	Given task.ID
	Late  bool // the unique key is taken at NotBefore, see [task.Task]; default: at the creation
	Turns bool // with Late: it is taken at the start, so that several tasks of a job can wait for each other

	Cause event.ID // the event that brings the task about; default: none, it is a client's request
	again bool     // it does another task again

	Attempts   int           // the most starts; at least -1; 0: the job's, else 1; -1: endless
	RetryDelay time.Duration // the pause after a failed attempt; 0: the job's
	Thrown     task.OnThrown // effect of a thrown error; empty: the job's
}

// ID returns the id of the task of a request that has Same.
func (n *New) ID() task.ID {
	return task.NewID(n.Prefix, n.listedUnder(), n.NotBefore.UnixMicro(), task.GroupHash(n.Job+"\x00"+n.Same))
}

// listedUnder returns the name of the group.
func (n *New) listedUnder() string { return cmp.Or(n.Group, layout.TopicGroup(n.Job), n.Job) }

// Added is the result of one [New].
type Added struct {
	Task     task.Task
	Existing bool // this task held the unique key, or had the same id; nothing was added
}

// Enqueued is the result of [Queue.Enqueue].
type Enqueued struct {
	Tasks    []Added // in the order of the request
	Replayed bool    // this is the result of an earlier request with the same idempotency key
}

// Once is the idempotency key of an Enqueue or a claim.
type Once = journal.Idempotency

// Claimer is who claims tasks: a server's worker, or an instance.
type Claimer struct {
	Instance string   // the runner's name in tasks and their events; may be empty
	Name     string   // the name by which tasks prefer it, see [New]; empty: no task does
	Capacity int      // the most leases that Instance may hold at once; 0 or less: no limit
	Queues   []string // the lines to take from, in this order; empty: all whose tasks it may run
	Jobs     []string // patterns of the jobs that an instance runs; empty: the jobs that this server runs itself

	// Once is the claim's idempotency key: while leases that a claim of the same instance with the same key got are held,
	// further claims return these, extended. It has an effect only with a Capacity. Nil: each claim starts tasks.
	Once *Once

	Until  time.Time // the end of the claimer's own lease: leases end then at first, whatever their length; zero: they have their length
	Early  *Early    // what was read before the claim; nil: nothing was
	Next   *Waiting  // its next wait, which will not begin if the claim finds a task; nil: none is expected
	Beside Beside    // is written with the starts; only with a Capacity. Nil: nothing is
}

// Lease is the right to run a task until Expires, and to complete it.
type Lease struct {
	Token    string        // the secret that heartbeats and the completion name
	Task     task.Task     // as started, with its payload
	Expires  time.Time     // when it ends without a heartbeat
	Length   time.Duration // from start or heartbeat to Expires, by the job's definition; send a heartbeat after a third of it
	Deadline time.Time     // when the attempt is to stop, since it has taken as long as it may; zero if Replayed

	Replayed bool // an earlier claim with the same idempotency key got it
}

// Beat is the content of a heartbeat.
type Beat struct {
	Progress *Progress      // nil: as before
	Lines    []tasklog.Line // to append to the task's log

	By     string // the instance that must hold the lease, else the error is [ErrForeign]; empty: whoever has the token
	Number int64  // of the request, rising: one of the lease's that is not above the last changes nothing; 0: it has none
}

// Progress is a running task's report of how far it is.
type Progress = layout.Progress

// Alive is the result of a heartbeat.
type Alive struct {
	Expires time.Time // the lease's new end
	Stop    bool      // the task is to stop: it was asked to, or has taken longer than its job's timeout
}

// Outcome is how an attempt ended.
type Outcome = typed.Outcome

// The outcomes that callers may pass; [typed.Outcome] says what they mean.
const (
	OK     = typed.OK
	Failed = typed.Failed
	Cancel = typed.Cancel
	Thrown = typed.Thrown
	Again  = typed.Again
)

// Result says how an attempt ended.
type Result struct {
	Outcome    Outcome         // required
	Message    string          // at most [MaxMessage] bytes are kept
	Code       int             // return code; default 0
	Output     json.RawMessage // of a success: JSON of at most [MaxPayload] bytes; what is not JSON is dropped
	RetryDelay time.Duration   // pause before the next attempt, not negative; 0: the task's
	Variables  json.RawMessage // of an order's step: an object with the variables of the order that it changes; empty: none
}
