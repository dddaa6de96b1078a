package queue

import (
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// lease is the item of the right to run a task. Heartbeats and requests to stop change it without the journal; its version counts
// these changes, and each of them has the condition that the version is as it was read.
type lease struct {
	UUID     string        `json:"id"`
	Job      string        `json:"j"`
	Line     string        `json:"ln"`
	Instance string        `json:"by,omitempty"`
	Length   time.Duration `json:"l"`
	Expires  int64         `json:"x"` // microseconds since 1970
	Slots    []limit.Slot  `json:"p,omitempty"`
	Stop     bool          `json:"s,omitempty"`  // a stop was requested
	StopBy   string        `json:"sb,omitempty"` // on whose behalf
	Progress *Progress     `json:"pr,omitempty"`
	Logged   int           `json:"lg,omitempty"` // bytes of its log
	Beaten   int64         `json:"n,omitempty"`  // [Beat.Number] of the last heartbeat that had one
	// Allowed is the job's timeout if that is why the lease ends at Expires, instead of a whole Length after the last heartbeat;
	// else 0.
	Allowed time.Duration `json:"al,omitempty"`
}

// allLeases returns the items of all leases.
func (q *Queue) allLeases(ctx context.Context) iter.Seq2[*store.Item, error] {
	return func(yield func(*store.Item, error) bool) {
		for _, shard := range leaseShards {
			for item, err := range store.All(ctx, q.store, store.Range{Table: store.Work, Partition: leasePartition(string(shard))}) {
				if !yield(item, unavailable("read leases", err)) || err != nil {
					return
				}
			}
		}
	}
}

// newToken returns a token that names a task, an attempt and a secret, whose last character spreads leases over partitions:
//
//	UUID.ATTEMPT.SECRET
//
// So a token that is no longer valid can be distinguished from one that was never issued.
func (q *Queue) newToken(uuid string, attempt int) string {
	var secret [12]byte
	q.randomBytes(secret[:])
	return uuid + "." + strconv.Itoa(attempt) + "." + hex.EncodeToString(secret[:])
}

// parseToken returns the task and the attempt of a token. The error is [ErrNoLease] if it has not the form of a token.
func parseToken(token string) (uuid string, attempt int, err error) {
	uuid, rest, ok := strings.Cut(token, ".")
	number, secret, also := strings.Cut(rest, ".")
	attempt, bad := strconv.Atoi(number)
	if _, noID := task.ParseID(uuid); !ok || !also || bad != nil || noID != nil || len(uuid) != 36 || len(secret) != 24 {
		return "", 0, ErrNoLease
	}
	for _, c := range []byte(secret) {
		if !strings.ContainsRune(leaseShards, rune(c)) {
			return "", 0, ErrNoLease
		}
	}
	return uuid, attempt, nil
}

// heldLease is a lease and its task, as they were read.
type heldLease struct {
	lease
	version     int64
	task        task.Task
	taskVersion int64
}

// leased reads a lease and its task. The error is [ErrStale] or [ErrNoLease] if the token is not valid.
func (q *Queue) leased(ctx context.Context, token string) (heldLease, error) {
	var h heldLease
	uuid, attempt, err := parseToken(token)
	if err != nil {
		return h, err
	}
	items, err := q.store.Get(ctx, taskKey(uuid), leaseKey(token))
	if err != nil {
		return h, unavailable("read a lease", err)
	}
	switch {
	case items[0] == nil && maybeOfTopic(uuid):
		return h, ErrStale // it has succeeded, and leaves no history
	case items[0] == nil:
		return h, ErrNoLease
	}
	if err := decode(items[0], &h.task); err != nil {
		return h, err
	}
	h.taskVersion = items[0].Version
	if items[1] == nil || h.task.State != task.Running || h.task.Lease != token {
		if h.task.Lease != token && (attempt > h.task.Attempt || attempt < 1 || attempt == h.task.Attempt && h.task.State == task.Running) {
			return h, ErrNoLease
		}
		return h, ErrStale
	}
	h.version = items[1].Version
	return h, decode(items[1], &h.lease)
}

// Heartbeat extends a lease to its length from now, but not beyond the job's timeout and one length, and stores the worker's
// progress and log lines. The error is [ErrStale] or [ErrNoLease] if the token is not valid.
func (q *Queue) Heartbeat(ctx context.Context, token string, b Beat) (Alive, error) {
	for try := 0; ; try++ {
		h, err := q.leased(ctx, token)
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
			return alive, unavailable("extend a lease", err)
		}
		q.pause(ctx)
	}
}

// tries is how often a write of a single lease or entry is repeated.
const tries = 8

// extend writes the lease, the progress and the log lines. Race: a request to stop, another heartbeat and the sweep have a
// condition on the same version; one of them succeeds, the others read again.
func (q *Queue) extend(ctx context.Context, token string, h *heldLease, b Beat) (Alive, error) {
	next := h.lease
	if err := q.prolong(ctx, &next, &h.task); err != nil {
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
	ops, err := q.logOps(h, &next, b.Lines)
	if err != nil {
		return Alive{}, err
	}
	item := store.Item{Key: leaseKey(token), Version: h.version + 1, Value: encode(&next)}
	w := store.Write{Token: q.token(), Ops: append(ops, store.Put(item, store.VersionIs(h.version)))}
	err = q.store.Write(ctx, w)
	for try := 0; errors.Is(err, store.ErrUnknown) && try < tries && ctx.Err() == nil; try++ {
		q.pause(ctx)
		err = q.store.Write(ctx, w) // the very same, so that no line is there twice
	}
	if err != nil {
		return Alive{}, err
	}
	q.leases.drop(token)
	q.wakeForLease(next.Expires)
	return Alive{Expires: time.UnixMicro(next.Expires), Stop: next.Stop}, nil
}

// prolong sets the expiry of a lease to its length from now, but at most to its length after the timeout of the task's job: so its
// worker has the time to report the timeout itself, and one that does not loses the lease.
func (q *Queue) prolong(ctx context.Context, l *lease, t *task.Task) error {
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
	if last := t.Started + (allowed + l.Length).Microseconds(); l.Expires > last {
		l.Expires, l.Allowed = last, allowed
	}
	return nil
}

// ranOut returns the result of an attempt whose lease ran out.
func (l *lease) ranOut() Result {
	if l.Allowed > 0 {
		return Result{Outcome: Failed, Message: "it took longer than the " + l.Allowed.String() + " allowed"}
	}
	return Result{Outcome: typed.Lost, Message: leaseLost + ": its worker was not heard of for " + l.Length.String()}
}

// AppendLog appends lines to the log of a leased task, and extends the lease as [Queue.Heartbeat] does.
func (q *Queue) AppendLog(ctx context.Context, token string, lines []Line) error {
	_, err := q.Heartbeat(ctx, token, Beat{Lines: lines})
	return err
}

// Progress returns the newest progress that heartbeats of the current attempt have sent; nil if there is none, or if the task is
// not running. The error is [ErrNoTask] if there is no such task.
func (q *Queue) Progress(ctx context.Context, id task.ID) (*Progress, error) {
	t, _, err := q.load(ctx, id.UUID())
	if err != nil || t.State != task.Running {
		return nil, err
	}
	h, err := q.leased(ctx, t.Lease)
	if err != nil {
		return nil, nil // it has ended meanwhile
	}
	return h.Progress, nil
}

// leases caches the leases that this process has given and not seen changed. A completion takes the lease from here and saves
// a read; the conditions on the versions catch a lease that others have changed.
type leases struct {
	mu   sync.Mutex
	kept map[string]heldLease
}

// maxLeases bounds the cache: leases of remote workers may end in other processes.
const maxLeases = 4096

func (l *leases) keep(s *start) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil || len(l.kept) >= maxLeases {
		l.kept = map[string]heldLease{}
	}
	l.kept[s.token] = heldLease{lease: s.lease, version: 1, task: s.task, taskVersion: s.version}
}

func (l *leases) of(token string) (heldLease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, kept := l.kept[token]
	return h, kept
}

func (l *leases) drop(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.kept, token)
}
