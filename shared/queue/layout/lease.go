package layout

import (
	"context"
	"encoding/hex"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Lease is the item of the right to run a task. Heartbeats and requests to stop change it without the journal; its version counts
// these changes, and each of them has the condition that the version is as it was read.
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

// Progress is a running task's report of how far it is.
type Progress struct {
	Step    int       `json:"step"`              // steps done so far
	Steps   int       `json:"steps"`             // steps in all
	ETA     time.Time `json:"eta,omitzero"`      // expected end; zero: not known
	Message string    `json:"message,omitempty"` // at most queue.MaxMessage bytes; a longer one is cut
}

// AllLeases returns the items of all leases.
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
	Version     int64
	Task        task.Task
	TaskVersion int64
}

// LoadLease reads a lease and its task. The error is [ErrStale] or [ErrNoLease] if the token is not valid.
func LoadLease(ctx context.Context, s store.Store, token string) (Held, error) {
	var h Held
	uuid, attempt, err := ParseToken(token)
	if err != nil {
		return h, err
	}
	items, err := s.Get(ctx, TaskKey(uuid), LeaseKey(token))
	if err != nil {
		return h, Failure("read a lease", err)
	}
	switch {
	case items[0] == nil && maybeOfTopic(uuid):
		return h, ErrStale // it has succeeded, and leaves no history
	case items[0] == nil:
		return h, ErrNoLease
	}
	if err := Decode(items[0], &h.Task); err != nil {
		return h, err
	}
	h.TaskVersion = items[0].Version
	if items[1] == nil || h.Task.State != task.Running || h.Task.Lease != token {
		if h.Task.Lease != token && (attempt > h.Task.Attempt || attempt < 1 || attempt == h.Task.Attempt && h.Task.State == task.Running) {
			return h, ErrNoLease
		}
		return h, ErrStale
	}
	h.Version = items[1].Version
	return h, Decode(items[1], &h.Lease)
}

// GiveBack returns the operations that end a lease and free its slots.
func (h *Held) GiveBack(token string) []store.Op {
	item := store.Delete(LeaseKey(token), store.VersionIs(h.Version))
	item.Item.Version = h.Version // outside the journal's order
	ops := append(make([]store.Op, 0, 1+len(h.Slots)), item)
	for i := range h.Slots {
		ops = append(ops, h.Slots[i].GiveBack()) // ours as long as the lease is
	}
	return ops
}
