package view

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/rule"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Tasks reads what is stored of tasks, and what the journal tells of them. It changes nothing. Its methods may be called concurrently.
type Tasks struct{ o Options }

// Options of Tasks. All are required.
type Options struct {
	Store       store.Store
	Journal     *journal.Journal // on Store
	Definitions interface {      // the set in force, which may be some seconds old
		Current(ctx context.Context) (*definition.Set, error)
	}
	Now      func() time.Time
	Rulebook *rule.Book
	Limits   *limit.Limits
	Lines    func(ctx context.Context, queue string) ([]layout.Line, error) // all lines of a queue
	Runners  func(ctx context.Context) ([]Runner, error)                    // the instances that may be given tasks
}

// New returns Tasks.
func New(o Options) *Tasks { return &Tasks{o} }

// Get returns a task with its payload. The error is [layout.ErrNoTask] if there is none with exactly this id.
func (v *Tasks) Get(ctx context.Context, id task.ID) (task.Task, error) {
	t, _, err := layout.FindTask(ctx, v.o.Store, id)
	return t, err
}

// Logs returns lines of a task's log, in their order. The error is [layout.ErrNoTask] if there is no such task.
func (v *Tasks) Logs(ctx context.Context, id task.ID, l tasklog.Query) (tasklog.Page, error) {
	t, _, err := layout.LoadTask(ctx, v.o.Store, id.UUID())
	if err != nil {
		return tasklog.Page{}, err
	}
	return tasklog.Read(ctx, v.o.Store, &t, l)
}

// Progress returns the newest progress that heartbeats of the current attempt have sent; nil if there is none, or if the task is
// not running. The error is [layout.ErrNoTask] if there is no such task.
func (v *Tasks) Progress(ctx context.Context, id task.ID) (*layout.Progress, error) {
	t, _, err := layout.LoadTask(ctx, v.o.Store, id.UUID())
	if err != nil || t.State != task.Running {
		return nil, err
	}
	h, err := layout.LoadLease(ctx, v.o.Store, t.Lease)
	if err != nil {
		return nil, nil // it has ended meanwhile
	}
	return h.Progress, nil
}

// Running returns how many tasks each of these instances runs, in their order, by the names that claimers give. It reads the slots of each.
func (v *Tasks) Running(ctx context.Context, instances []string) (counts []int, err error) {
	counts = make([]int, len(instances))
	errs := make([]error, len(instances))
	var group sync.WaitGroup
	room := make(chan struct{}, readsAtOnce)
	for i, name := range instances {
		room <- struct{}{}
		group.Go(func() {
			counts[i], errs[i] = v.slotsTaken(ctx, layout.InstanceLimit(name))
			<-room
		})
	}
	group.Wait()
	return counts, errors.Join(errs...)
}

// readsAtOnce is how many requests of one call are under way at once.
const readsAtOnce = 16

// Dialect returns the dialect of the task of a lease. If the task is gone, it was of a topic, and its dialect is [task.Job].
func (v *Tasks) Dialect(ctx context.Context, token string) (task.Dialect, error) {
	uuid, _, err := layout.ParseToken(token)
	if err != nil {
		return "", err
	}
	t, _, err := layout.LoadTask(ctx, v.o.Store, uuid)
	if errors.Is(err, layout.ErrNoTask) {
		return task.Job, nil
	}
	return t.Dialect, err
}

// Rules returns the rules in force whose path begins with prefix, sorted by path. Job paths begin with /.
func (v *Tasks) Rules(ctx context.Context, prefix string) ([]rule.Rules, error) {
	set, err := v.o.Rulebook.InForce(ctx)
	if err != nil {
		return nil, err
	}
	return set.Matching(prefix), nil
}

// Suspended returns since when queues and families of queues are suspended, by name.
func (v *Tasks) Suspended(ctx context.Context) (map[string]time.Time, error) {
	set, err := v.o.Rulebook.InForce(ctx)
	if err != nil {
		return nil, err
	}
	return maps.Clone(set.Suspended), nil
}

// slotsTaken returns how many slots of a limit are taken.
func (v *Tasks) slotsTaken(ctx context.Context, name string) (int, error) {
	taken, err := v.o.Limits.Read(ctx, name)
	if err != nil {
		return 0, layout.Failure("read a limit", err)
	}
	return taken.Count(), nil
}
