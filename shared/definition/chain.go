package definition

import "time"

// JobChain is a path of orders through several jobs (as in JobScheduler).
type JobChain struct {
	Path      string        `json:"path"`                // at most [MaxPath] bytes, see [ValidPath]; no comma
	MaxOrders int           `json:"max_orders,omitzero"` // orders that have begun at the first node and not ended; 0: no limit
	Timeout   time.Duration `json:"timeout,omitzero"`    // of an order, from its start to its end; 0: none
	MaxVisits int           `json:"max_visits,omitzero"` // of one order to one node; default [DefaultMaxVisits]
	Nodes     []Node        `json:"nodes"`               // at least one; an order begins at the first
}

// DefaultMaxVisits is how often an order may come to one node, unless its chain says otherwise.
const DefaultMaxVisits = 1000

// Node is a station of a job chain. At most one of Job, Fork, Prompt, Wait and Chain is set; a node without any of them is an
// end, and has an id only. Where a chain or a branch of a fork has no following node, an order is at its end.
type Node struct {
	ID     string  `json:"id,omitzero"`     // 1 to [MaxName] bytes, once in its chain with all branches; optional in branches
	Job    string  `json:"job,omitzero"`    // path of the job that runs an order's step here
	Fork   *Fork   `json:"fork,omitzero"`   // children that run side by side
	Prompt *Prompt `json:"prompt,omitzero"` // a question to a person
	Wait   *Wait   `json:"wait,omitzero"`   // for an event, or for a time
	// Chain is the path of another chain that the order goes through here. From an end to which only errors lead there, it goes on to
	// Error, from others to Next. Its job nodes keep their own errors; its limits do not count here.
	Chain string `json:"chain,omitzero"`

	Next    string            `json:"next,omitzero"`     // id of the node after success; default: the following node, of a prompt: see Answers
	Error   string            `json:"error,omitzero"`    // id of the node after an error; default: the order is suspended here
	OnError string            `json:"on_error,omitzero"` // what an error does first: setback or suspend; default: neither
	On      map[string]string `json:"on,omitempty"`      // ids of nodes by return codes, such as "7" or "7..9"; they decide before all else

	Delay   time.Duration `json:"delay,omitzero"`   // before each step here
	Timeout time.Duration `json:"timeout,omitzero"` // of a step here, with its attempts; 0: none
	Action  string        `json:"action,omitzero"`  // process (default), stop or next_state; the first value, which operators change
	Join    *Join         `json:"join,omitzero"`    // of a fork; nil: all
	Locks   []NodeLock    `json:"locks,omitempty"`  // that a step here holds; at most [MaxLocks]
}

// MaxLocks is how many locks a node may have: an order takes all that are free, and gives all back, in one write.
const MaxLocks = 8

// What a node does with orders that are at it.
const (
	ActionProcess   = "process"    // it runs their steps
	ActionStop      = "stop"       // they wait
	ActionNextState = "next_state" // they go on to the next node at once
)

// What an error does first at a node with a job.
const (
	ErrorSetsBack = "setback" // the step is repeated after the job's delay
	ErrorSuspends = "suspend" // the order stays here until somebody resumes it
)

// What a failed child of a fork does to the others.
const (
	FailedWaits   = "wait"   // they go on
	FailedCancels = "cancel" // they are ended
)

// Fork makes children of an order: one for each branch, or one for each element of a list. Exactly one of Branches and Each is
// set. The child of a branch, or of the element at an index, is the order ORDER!BRANCH or ORDER!INDEX of the same chain. It has the
// order's variables; that of an element has item and index, too, and not the list.
//
// A child succeeds at the end of its branch. It fails, and is gone, if a step fails that has no error node and is not to be
// suspended, if it comes to an end to which only errors lead, or if it is removed.
//
// The order goes on as soon as all children are made and the join is met, to the node's next, or cannot be met any more, to its error;
// where a failed child cancels the others, its failure decides at once. Children that are left go on by themselves, and do not count,
// or are ended under [FailedCancels]. An order that leaves the fork otherwise ends its children.
type Fork struct {
	Branches map[string][]Node `json:"branches,omitempty"` // steps by the branch's name; ids are optional: FORK/BRANCH/NUMBER, from 1
	Each     string            `json:"each,omitzero"`      // name of a variable that holds a list
	Job      string            `json:"job,omitzero"`       // of the children of Each; the id of their node is FORK/each
	OnFailed string            `json:"on_failed,omitzero"` // what a failed child does to the others: wait (default) or cancel
}

// Join says how many children of a fork must succeed. In definitions it is the text all, or an object with at_least.
type Join struct {
	AtLeast int `json:"at_least,omitzero"` // 0: all
}

// Prompt is a question to a person with a role.
type Prompt struct {
	Role     string            `json:"role"`              // who may answer, or a role that includes it
	Deadline time.Duration     `json:"deadline,omitzero"` // after which the order goes to Default; 0: none
	Default  string            `json:"default,omitzero"`  // id of a node; required with a deadline
	Answers  map[string]string `json:"answers"`           // ids of nodes by answers; at least one
}

// Wait is a wait for an event on the journal, or for a time. Exactly one of Event, For and Until is set.
type Wait struct {
	Event string         `json:"event,omitzero"`  // type of the event
	Path  string         `json:"path,omitzero"`   // path query that the event's key must match; default: any
	Where map[string]any `json:"where,omitempty"` // values that fields of the event must have; texts may hold ${VARIABLE} and ${id}
	For   time.Duration  `json:"for,omitzero"`
	Until string         `json:"until,omitzero"` // a time as RFC 3339 has it; may be ${VARIABLE}
	// Timeout is how long the order waits for an event before it goes to the node's error; 0: for ever.
	Timeout time.Duration `json:"timeout,omitzero"`
}

// NodeLock is a lock that a step at a node holds.
type NodeLock struct {
	Name   string `json:"name"`            // of a declared lock
	Shared bool   `json:"shared,omitzero"` // with other shared holders, up to the lock's number; otherwise alone
}

// Lock is what steps of orders hold together or alone.
type Lock struct {
	Name      string `json:"name"`                // 1 to [MaxName] bytes
	MaxShared int    `json:"max_shared,omitzero"` // shared holders at once; 0: no limit
}

// Setback is the delay of an order that was set back Count times in a row or more, up to the next greater count.
type Setback struct {
	Count     int           `json:"setback_count"`       // from 1
	Delay     time.Duration `json:"delay"`               // from 0
	IsMaximum bool          `json:"is_maximum,omitzero"` // one more setback ends in an error; on the greatest count only
}

// ScheduledOrder is the order that a schedule makes, and starts again at its ticks.
type ScheduledOrder struct {
	Chain string `json:"chain"` // path of a declared job chain
	ID    string `json:"id"`
}

// FileOrder starts an order for each file of a directory, the oldest first. The order's id is the file's path, which its variable
// scheduler_file_path holds too.
type FileOrder struct {
	Chain     string        `json:"chain"`            // path of a declared job chain
	Directory string        `json:"directory"`        // of this host, or s3://BUCKET/PREFIX
	Pattern   string        `json:"pattern,omitzero"` // of names, as path.Match has them; default: all
	Steady    time.Duration `json:"steady,omitzero"`  // how long a file must not have changed; default [DefaultSteady]
	Done      FileDone      `json:"done,omitzero"`    // what happens to the file at the order's end; default: removed
}

// DefaultSteady is how long a file must not have changed before an order starts for it.
const DefaultSteady = 5 * time.Second

// FileDone is what happens to an order's file at its end. At most one field is set.
type FileDone struct {
	MoveTo string `json:"move_to,omitzero"` // a directory
	Remove bool   `json:"remove,omitzero"`  // the default
}
