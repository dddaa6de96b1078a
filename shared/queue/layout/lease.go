package layout

import (
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Lease is the right to run a task. It begins as a part of its task's item, see [Started], since most tasks end before anything becomes
// of it: so it costs no write of its own. Heartbeats and requests to stop change it without the journal: the first of them makes an item
// of it, which counts from then on, and whose version counts the changes. Each change rests on what was read, see [Held.Change].
type Lease struct {
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
	Beaten   int64         `json:"n,omitempty"`  // the number of the last heartbeat that had one
	// Allowed is the job's timeout if that is why the lease ends at Expires, instead of a whole Length after the last heartbeat;
	// else 0.
	Allowed time.Duration `json:"al,omitempty"`
}

// ToStop reports whether the holder is to stop: that was requested, or its last heartbeat came after the job's timeout.
func (l *Lease) ToStop() bool { return l.Stop || l.Allowed > 0 }

// Progress is a running task's report of how far it is.
type Progress struct {
	Step    int       `json:"step"`              // steps done so far
	Steps   int       `json:"steps"`             // steps in all
	ETA     time.Time `json:"eta,omitzero"`      // expected end; zero: not known
	Message string    `json:"message,omitempty"` // at most queue.MaxMessage bytes; a longer one is cut
}

// Started is what a task's item holds while the task runs: its lease too, as it was given.
type Started struct {
	task.Task
	Given *Lease `json:"given,omitempty"` // without what the task says: UUID, Job and Instance; nil in an item of layout 2 or older
}

// StartedAs returns the value of the item of a task that is started with a lease.
func StartedAs(t *task.Task, l *Lease) []byte {
	given := *l
	given.UUID, given.Job, given.Instance = "", "", ""
	return Encode(&Started{*t, &given})
}

// AsGiven returns the lease as it was given; ok is false if the task does not run, or its lease is an item.
func (s *Started) AsGiven() (l Lease, ok bool) {
	if s.Given == nil || s.Task.State != task.Running {
		return l, false
	}
	l = *s.Given
	l.UUID, l.Job, l.Instance = s.Task.ID.UUID(), s.Task.Job, s.Task.Instance
	return l, true
}

// Run is an attempt that has begun.
type Run struct {
	UUID  string
	Since int64 // when it began, in microseconds since 1970
}

// Running returns the attempts that are under way, or have ended just now, in the order of their ids: which ones, the journal tells, of
// whose folds one is [projection.Work].
func Running(ctx context.Context, j *journal.Journal) (runs []Run, err error) {
	_, err = j.SnapshotOf(ctx, projection.WorkName, projection.RunningTasks(), func(key string, value []byte) {
		id, since := projection.RunningTask(key, value)
		runs = append(runs, Run{task.ID(id).UUID(), since})
	})
	return runs, Failure("look for tasks that run", err)
}

// AtOnce is how many items one read asks for.
const AtOnce = 100

// AllLeases returns the items of the leases that have one.
func AllLeases(ctx context.Context, s store.Store) iter.Seq2[*store.Item, error] {
	return func(yield func(*store.Item, error) bool) {
		for _, shard := range leaseShards {
			for item, err := range store.All(ctx, s, store.Range{Table: store.Work, Partition: leasePartition(string(shard))}) {
				if !yield(item, Failure("read leases", err)) || err != nil {
					return
				}
			}
		}
	}
}

// TokenOf returns a token that names a task, an attempt and a secret, whose last character spreads leases over partitions:
//
//	UUID.ATTEMPT.SECRET
//
// So a token that is no longer valid can be distinguished from one that was never issued.
func TokenOf(uuid string, attempt int, secret [12]byte) string {
	return uuid + "." + strconv.Itoa(attempt) + "." + hex.EncodeToString(secret[:])
}

// ParseToken returns the task and the attempt of a token. The error is [ErrNoLease] if it has not the form of a token.
func ParseToken(token string) (uuid string, attempt int, err error) {
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

// Held is a lease and its task, as they were read.
type Held struct {
	Lease
	Version     int64 // of the lease's item; 0: it has none yet
	Task        task.Task
	TaskVersion int64
}

// LoadLease reads a lease and its task. The error is [ErrStale] or [ErrNoLease] if the token is not valid.
func LoadLease(ctx context.Context, s store.Store, token string) (Held, error) {
	uuid, _, err := ParseToken(token)
	if err != nil {
		return Held{}, err
	}
	items, err := s.Get(ctx, TaskKey(uuid), LeaseKey(token))
	if err != nil {
		return Held{}, Failure("read a lease", err)
	}
	return held(token, items[0], items[1])
}

// LoadLeases reads leases with their tasks, in the order of their tokens; nil stands for one that is no longer valid, or that is damaged: then
// there is an error, too. Where they cannot be read, there is only an error.
func LoadLeases(ctx context.Context, s store.Store, tokens []string) (all []*Held, damaged error) {
	all = make([]*Held, 0, len(tokens))
	for page := range slices.Chunk(tokens, AtOnce/2) {
		keys := make([]store.Key, 0, AtOnce)
		for _, token := range page {
			uuid, _, err := ParseToken(token)
			if err != nil {
				return nil, err
			}
			keys = append(keys, TaskKey(uuid), LeaseKey(token))
		}
		items, err := s.Get(ctx, keys...)
		if err != nil {
			return nil, Failure("read leases", err)
		}
		for i, token := range page {
			h, err := held(token, items[2*i], items[2*i+1])
			switch {
			case err == nil:
				all = append(all, &h)
			case errors.Is(err, ErrStale), errors.Is(err, ErrNoLease):
				all = append(all, nil)
			default:
				all, damaged = append(all, nil), errors.Join(damaged, err)
			}
		}
	}
	return all, damaged
}

// held returns a lease as the items of its task and of itself say, each nil if there is none.
func held(token string, of, item *store.Item) (h Held, err error) {
	uuid, attempt, _ := ParseToken(token)
	switch {
	case of == nil && maybeOfTopic(uuid):
		return h, ErrStale // it has succeeded, and leaves no history
	case of == nil:
		return h, ErrNoLease
	}
	var t Started
	if err := Decode(of, &t); err != nil {
		return h, err
	}
	h.Task, h.TaskVersion = t.Task, of.Version
	given, is := t.AsGiven()
	switch {
	case h.Task.Lease != token && (attempt > h.Task.Attempt || attempt < 1 || attempt == h.Task.Attempt && h.Task.State == task.Running):
		return h, ErrNoLease
	case h.Task.State != task.Running, h.Task.Lease != token, item == nil && !is:
		return h, ErrStale
	case item == nil:
		h.Lease = given
		return h, nil
	}
	h.Version = item.Version
	return h, Decode(item, &h.Lease)
}

// Change returns the operations that change a lease to this one. Race: another change and whoever ends the lease rest on the same item's
// version, or on its absence; the first change rests on the task too, since an end by its holder leaves the absence as it is.
func (h *Held) Change(token string, next *Lease) []store.Op {
	item := store.Item{Key: LeaseKey(token), Version: h.Version + 1, Value: Encode(next)}
	if h.Version > 0 {
		return []store.Op{store.Put(item, store.VersionIs(h.Version))}
	}
	return []store.Op{store.Put(item, store.Absent), store.Check(TaskKey(h.UUID), store.VersionIs(h.TaskVersion))}
}

// GiveBack returns the operations that end a lease and free its slots. unchanged says that the end rests on the lease as it was read. One
// that does not, a success, may leave an item that was made meanwhile, which a sweep removes.
func (h *Held) GiveBack(token string, unchanged bool) []store.Op {
	ops := make([]store.Op, 0, 1+len(h.Slots))
	switch {
	case h.Version > 0:
		item := store.Delete(LeaseKey(token), store.VersionIs(h.Version))
		item.Item.Version = h.Version // outside the journal's order
		ops = append(ops, item)
	case unchanged:
		ops = append(ops, store.Check(LeaseKey(token), store.Absent))
	}
	for i := range h.Slots {
		ops = append(ops, h.Slots[i].GiveBack()) // ours as long as the lease is
	}
	return ops
}
