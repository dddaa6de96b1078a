package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/millrace/millrace/shared/bell"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Definitions answer the set in force. It may be some seconds old.
type Definitions interface {
	Current(ctx context.Context) (*definition.Set, error)
}

// Options of a Queue. Store, Journal and Definitions are needed.
type Options struct {
	Store       store.Store
	Journal     *journal.Journal // on the same store
	Definitions Definitions
	Bell        bell.Bell        // default: none is rung
	Now         func() time.Time // default time.Now
	Log         *slog.Logger     // default: discards
}

// Queue is one process's access to the tasks of a store. Its methods may be called concurrently.
type Queue struct{}

// Open answers a Queue. Nothing is read or written yet.
func Open(o Options) *Queue { return &Queue{} }

var errTODO = errors.ErrUnsupported

// Enqueue adds tasks, all of them or none. Once, if not nil, makes it happen once for all calls with the same key.
func (q *Queue) Enqueue(ctx context.Context, once *Once, tasks ...New) (Enqueued, error) {
	return Enqueued{}, errTODO
}

// Claim starts up to max tasks, the best that the claimer may run, and answers their leases; none where none is ready.
func (q *Queue) Claim(ctx context.Context, by Claimer, max int) ([]Lease, error) { return nil, errTODO }

// Heartbeat extends a lease and takes what the worker tells.
func (q *Queue) Heartbeat(ctx context.Context, token string, b Beat) (Alive, error) {
	return Alive{}, errTODO
}

// Complete ends an attempt and answers the task's state afterwards.
func (q *Queue) Complete(ctx context.Context, token string, r Result) (task.State, error) {
	return "", errTODO
}

// AppendLog appends lines to the log of a leased task.
func (q *Queue) AppendLog(ctx context.Context, token string, lines []Line) error { return errTODO }

// Get answers a task with its payload.
func (q *Queue) Get(ctx context.Context, id task.ID) (task.Task, error) {
	return task.Task{}, errTODO
}

// List answers tasks of a group by their creation.
func (q *Queue) List(ctx context.Context, l Listing) (Page, error) { return Page{}, errTODO }

// Stop cancels a task that is queued at once, and asks a running one to stop; running says which of the two it was.
func (q *Queue) Stop(ctx context.Context, id task.ID) (running bool, err error) { return false, errTODO }

// Retry enqueues a finished task that did not succeed once more, as a new task.
func (q *Queue) Retry(ctx context.Context, id task.ID) (task.Task, error) {
	return task.Task{}, errTODO
}

// Logs answers lines of a task's log.
func (q *Queue) Logs(ctx context.Context, id task.ID, l LogQuery) (LogPage, error) {
	return LogPage{}, errTODO
}

// Progress answers what the newest heartbeat of a running task told; nil if nothing.
func (q *Queue) Progress(ctx context.Context, id task.ID) (*Progress, error) { return nil, errTODO }

// Why answers why a task is not running, or that it is.
func (q *Queue) Why(ctx context.Context, id task.ID) (Reason, error) { return Reason{}, errTODO }

// SetRule puts a rule on a job's path or takes it away; both are idempotent.
func (q *Queue) SetRule(ctx context.Context, path string, kind RuleKind, on bool) error {
	return errTODO
}

// Rules answers the rules in force whose path begins with prefix, by path.
func (q *Queue) Rules(ctx context.Context, prefix string) ([]Rules, error) { return nil, errTODO }

// Counts answers how many tasks of each state the jobs have whose paths begin with prefix, by path.
func (q *Queue) Counts(ctx context.Context, prefix string) (map[string]map[task.State]int64, error) {
	return nil, errTODO
}

// OldestWaiting answers the creation of the oldest queued task of a group; zero if none is queued.
func (q *Queue) OldestWaiting(ctx context.Context, group string) (time.Time, error) {
	return time.Time{}, errTODO
}

// Promote makes ready what has fallen due, and answers when something falls due next; zero if nothing does.
func (q *Queue) Promote(ctx context.Context) (next time.Time, err error) { return time.Time{}, errTODO }

// RingDue rings the bell, with its own delay, for what falls due until then.
func (q *Queue) RingDue(ctx context.Context, until time.Time) (rung int, err error) { return 0, errTODO }

// Sweep returns tasks whose leases have run out, releases what nothing holds any longer, and rings for what is ready.
func (q *Queue) Sweep(ctx context.Context) (Swept, error) { return Swept{}, errTODO }

// Swept says what a sweep did.
type Swept struct {
	Lost     int // leases that had run out
	Released int // tasks that were held
	Rung     int
}

// Close ends what runs in the background.
func (q *Queue) Close() error { return nil }
