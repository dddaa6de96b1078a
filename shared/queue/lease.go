package queue

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// newToken returns the token of a new lease.
func (q *Queue) newToken(uuid string, attempt int) string {
	var secret [12]byte
	q.randomBytes(secret[:])
	return layout.TokenOf(uuid, attempt, secret)
}

// Heartbeat extends a lease to its length from now, but not beyond the job's timeout and one length, and stores the worker's
// progress and log lines. From the timeout on it says that the task is to stop. The error is [ErrStale] or [ErrNoLease] if the token is not valid.
func (q *Queue) Heartbeat(ctx context.Context, token string, b Beat) (Alive, error) {
	for try := 0; ; try++ {
		h, err := layout.LoadLease(ctx, q.store, token)
		if err != nil {
			return Alive{}, err
		}
		if b.By != "" && h.Instance != b.By {
			return Alive{}, ErrForeign
		}
		alive, err := q.extend(ctx, token, &h, b)
		if store.AsConflict(err) == nil || try == tries {
			if err == nil {
				q.heard(ctx, h.Instance)
			}
			return alive, layout.Failure("extend a lease", err)
		}
		q.pause(ctx)
	}
}

// tries is how often a write of a single lease or entry is repeated.
const tries = 8

// extend writes the lease, the progress and the log lines. Race: a request to stop, another heartbeat and the sweep have a
// condition on the same version; one of them succeeds, the others read again.
func (q *Queue) extend(ctx context.Context, token string, h *layout.Held, b Beat) (Alive, error) {
	next := h.Lease
	if err := q.prolong(ctx, &next, &h.Task); err != nil {
		return Alive{}, err
	}
	if b.Number != 0 && b.Number <= next.Beaten {
		b.Progress, b.Lines = nil, nil // it was done before
	}
	next.Beaten = max(next.Beaten, b.Number)
	if b.Progress != nil {
		p := *b.Progress
		p.Message = cut(p.Message)
		next.Progress = &p
	}
	ops, err := tasklog.Append(h, &next, b.Lines, q.now())
	if err != nil {
		return Alive{}, err
	}
	w := store.Write{Token: q.token(), Ops: append(ops, h.Change(token, &next)...)}
	err = q.store.Write(ctx, w)
	for try := 0; errors.Is(err, store.ErrUnknown) && try < tries && ctx.Err() == nil; try++ {
		q.pause(ctx)
		err = q.store.Write(ctx, w) // the very same, so that no line is there twice
	}
	if err != nil {
		return Alive{}, err
	}
	q.leases.madeItem(token, next.Expires)
	q.wakeForLease(next.Expires)
	return Alive{Expires: time.UnixMicro(next.Expires), Stop: next.ToStop()}, nil
}

// prolong sets the expiry of a lease to its length from now, but at most to its length after the timeout of the task's job: so its
// worker has the time to stop and to say so, and one that does not loses the lease.
func (q *Queue) prolong(ctx context.Context, l *layout.Lease, t *task.Task) error {
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return err
	}
	job, _ := set.JobOf(t.Job)
	if err := q.compareClock(ctx); err != nil {
		return err
	}
	l.Expires, l.Allowed = q.micro()+l.Length.Microseconds(), 0
	allowed := t.Allowed(job.Timeout)
	if last := t.Started + (allowed + l.Length).Microseconds(); l.Expires >= last {
		l.Expires, l.Allowed = last, allowed
	}
	return nil
}

// ranOut returns the result of an attempt whose lease ran out.
func ranOut(l *layout.Lease) Result {
	if l.Allowed > 0 {
		return Result{Outcome: Failed, Message: tookTooLong(l)}
	}
	return Result{Outcome: typed.Lost, Message: leaseLost + ": its worker was not heard of for " + l.Length.String()}
}

// deadline returns when the running attempt of a task has taken as long as it may.
func deadline(t *task.Task, job *definition.Job) time.Time {
	return time.UnixMicro(t.Started).Add(t.Allowed(job.Timeout))
}

// tookTooLong is why an attempt has failed whose worker was heard of after the timeout.
func tookTooLong(l *layout.Lease) string {
	return "it took longer than the " + l.Allowed.String() + " allowed"
}

// AppendLog appends lines to the log of a leased task, and extends the lease as [Queue.Heartbeat] does.
func (q *Queue) AppendLog(ctx context.Context, token string, lines []tasklog.Line) error {
	_, err := q.Heartbeat(ctx, token, Beat{Lines: lines})
	return err
}

// leases caches the leases that this process has given and not seen changed. A completion takes the lease from here and saves
// a read; what a result rests on is a condition of its write, so that a change by others is found.
type leases struct {
	mu   sync.Mutex
	kept map[string]layout.Held

	seen int64 // when the items of leases were read last, in microseconds since 1970; 0: never, or they are being read
	next int64 // when the first of these, or of what this process has made items since, runs out; 0: there are none

	// What the newest sweep has read of leases without an item. They are as they were given as long as they have none.
	read atomic.Pointer[map[layout.Run]given]
}

// readItems notes that the items of leases are about to be read. Those that are made meanwhile may be missed.
func (l *leases) readItems() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen, l.next = 0, 0
}

// sawItems notes when the items of leases were read, and when the first of these runs out.
func (l *leases) sawItems(seen, next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen, l.next = seen, earlier(l.next, next)
}

// madeItem notes that this process has changed a lease, which has an item from then on, and when it runs out.
func (l *leases) madeItem(token string, expires int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.kept, token)
	l.next = earlier(l.next, expires)
}

// itemsSeen returns what sawItems has noted last.
func (l *leases) itemsSeen() (seen, next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen, l.next
}

// maxLeases bounds the cache: leases of remote workers may end in other processes.
const maxLeases = 4096

func (l *leases) keep(s *start) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil || len(l.kept) >= maxLeases {
		l.kept = map[string]layout.Held{}
	}
	l.kept[s.token] = layout.Held{Lease: s.lease, Task: s.task, TaskVersion: s.version}
}

func (l *leases) of(token string) (layout.Held, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, kept := l.kept[token]
	return h, kept
}

// all returns a copy of all that are kept, by token.
func (l *leases) all() map[string]layout.Held {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.kept)
}

// refresh replaces what is kept of a lease, if it is kept still.
func (l *leases) refresh(token string, h *layout.Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, kept := l.kept[token]; kept {
		l.kept[token] = *h
	}
}

// dropOlder drops what is kept of a lease if it was changed since.
func (l *leases) dropOlder(token string, version int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, kept := l.kept[token]; kept && h.Version < version {
		delete(l.kept, token)
	}
}

func (l *leases) drop(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.kept, token)
}
