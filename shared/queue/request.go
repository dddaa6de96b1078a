package queue

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/task"
)

// New is a request for one task.
type New struct {
	Dialect task.Dialect
	Job     string // the job's path
	Group   string // what it is listed under; default: Job, or of a topic the group that it belongs to
	Prefix  string // what its id begins with; may be empty
	Queue   string // default: the job's, by its definition

	Priority  int64
	Payload   json.RawMessage
	NotBefore time.Time // zero: at once
	Modifier  string    // seed 002
	Missing   bool      // there is no such job: it is recorded as missing and never runs

	Unique       string        // while an unfinished task of the job has this key, that one is the answer; empty: none
	UniqueWindow time.Duration // the key is held so long from the creation, even when the task is finished
	Fairness     string        // default: Job
	Concurrency  *task.Concurrency
	Prefer       string // name of the instance that should run it, if it can; see [PreferFor]
	Trace        string

	// Same makes several requests one: a task of the group with the same text and the same NotBefore, which it then needs, is
	// the same task, for as long as it is kept. It is how a schedule makes each tick once.
	Same     string
	Schedule string // name of the schedule that asks
	Late     bool   // the unique key is taken at the start; see [task.Task]

	Attempts   int           // at most so many starts; 0: the job's default; -1: endless
	RetryDelay time.Duration // 0: the job's default
	Thrown     task.OnThrown
}

// ID returns the id of a request that has Same.
func (n *New) ID() task.ID {
	return task.NewID(n.Prefix, n.listedUnder(), n.NotBefore.UnixMicro(), task.GroupHash(n.Job+"\x00"+n.Same))
}

// listedUnder returns the group.
func (n *New) listedUnder() string { return cmp.Or(n.Group, topicGroup(n.Job), n.Job) }

// Added is the answer to one [New].
type Added struct {
	Task     task.Task
	Existing bool // the unique key was held by this task; nothing was added
}

// Enqueued is the answer to Enqueue.
type Enqueued struct {
	Tasks    []Added
	Replayed bool // an earlier request with the same idempotency key answered
}

// Once makes an Enqueue, or a claim, happen once.
type Once = journal.Idempotency

// Claimer asks for tasks.
type Claimer struct {
	Instance string   // what tasks and their events call who runs them
	Name     string   // by which tasks prefer an instance; empty: none does
	Capacity int      // how many it runs at once, by the leases that it holds under that name; 0: no limit
	Queues   []string // to take from, in this order; empty: every queue whose tasks this server runs
	Jobs     []string // patterns of an instance's jobs; empty: the tasks that this server runs by itself

	// Once is the claim's key: while leases that a claim of the same instance with the same key was given are held, those are
	// given again, and extended. It needs a Capacity. Nil: each claim counts.
	Once *Once
}

// Lease is the right to run a task until a time, and to say how it ended.
type Lease struct {
	Token   string
	Task    task.Task // as started; with its payload
	Expires time.Time
	Length  time.Duration // of the lease; a heartbeat is due after a third of it

	Replayed bool // an earlier claim with the same key was given it
}

// Beat is what a heartbeat tells.
type Beat struct {
	Progress *Progress
	Lines    []Line
}

// Progress is how far a running task says it is.
type Progress struct {
	Step    int       `json:"step"`
	Steps   int       `json:"steps"`
	ETA     time.Time `json:"eta,omitzero"`
	Message string    `json:"message,omitempty"`
}

// Alive is the answer to a heartbeat.
type Alive struct {
	Expires time.Time
	Stop    bool // somebody asked for the task to be stopped
}

// Outcome is how an attempt ended.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"
	Failed  Outcome = "failed"  // retried while attempts are left
	Cancel  Outcome = "cancel"  // not wanted again; if a stop was asked for, this is its answer
	Thrown  Outcome = "thrown"  // a panic or a Go error: retried or rejected as the task says
	Again   Outcome = "again"   // not an attempt at all: the target asked to come back later (429, 503)
	lost    Outcome = "lost"    // the lease ran out
	dropped Outcome = "dropped" // the task was removed while it ran
)

// Result says how an attempt ended.
type Result struct {
	Outcome    Outcome
	Message    string
	Code       int             // return code
	Output     json.RawMessage // of a success
	RetryDelay time.Duration   // 0: the task's
}

// Line is one line of a task's log.
type Line struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"` // info, error, warn or debug
	Message string    `json:"message"`
}

// LogQuery selects lines of a task's log.
type LogQuery struct {
	From, To time.Time // both inclusive; zero: open
	After    string    // cursor of an earlier answer
	Limit    int       // at most so many lines, 0: all there are
}

// LogPage is an answer of lines in their order.
type LogPage struct {
	Lines  []Line
	Cursor string // goes on behind the last line that was looked at
	More   bool   // more lines are there already
	Done   bool   // the task is finished and everything was answered
}

// Listing selects tasks of a group by creation.
type Listing struct {
	Group    string
	From, To time.Time // of creation, both inclusive; zero: open
	Newest   bool      // newest first
	Limit    int       // 1 to 1,000
	Cursor   string
	Match    func(*task.Task) bool // nil: all

	one bool // the first is all that is wanted: whether there are more is not asked
}

// Page is an answer to a Listing.
type Page struct {
	Tasks  []task.Task // without payloads that are kept apart
	Cursor string      // not empty: there may be more
}

// RuleKind is how a job is held.
type RuleKind string

// The kinds of rules. They are independent of each other.
const (
	Pause RuleKind = "pause" // by an operator
	Block RuleKind = "block" // by an admin
)

// Rules are those in force for one job path.
type Rules struct {
	Path  string    `json:"path"`
	Pause time.Time `json:"pause,omitzero"` // since when; zero: not
	Block time.Time `json:"block,omitzero"`
}

// State returns run, pause or block; block wins (seed 002).
func (r Rules) State() string {
	switch {
	case !r.Block.IsZero():
		return "block"
	case !r.Pause.IsZero():
		return "pause"
	default:
		return "run"
	}
}

// Reason is why a task is not running, or that it is.
type Reason struct {
	State   task.State
	Code    string         // stable: see reason.go
	Reason  string         // one sentence
	Since   time.Time      // since when this has been so, where that is known
	Details map[string]any // what the sentence speaks of, for programs
}
