package rule

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/lock"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// Book is one process's access to the rules of a store. Its methods may be called concurrently.
type Book struct {
	o     Options
	mu    lock.Mutex
	known *Set // of a process alone; nil: to be read
	reads *groupcommit.Group[*reading]
	last  atomic.Pointer[readThen] // the last read that succeeded
}

// readThen is what a read has found that began at a time.
type readThen struct {
	began time.Time
	set   *Set
}

// Settling is how long rules count as in force that were read; who changes one waits as long, so that no claim that begins afterwards goes
// by those before.
const Settling = 20 * time.Millisecond

// reading is one caller's share of a read.
type reading struct {
	set *Set
	err error
}

// Options of a Book. All are required.
type Options struct {
	Store   store.Store
	Journal *journal.Journal // on Store
	Now     func() time.Time
	Apply   func(ctx context.Context, ops ...store.Op) error // writes operations without the journal
	Alone   bool                                             // the process has the store to itself: what was read is kept
}

// New returns a Book.
func New(o Options) *Book {
	b := &Book{o: o, mu: lock.New()}
	b.reads = groupcommit.New(groupcommit.Options[*reading]{
		Batch: func() func(*reading) bool { return func(*reading) bool { return true } },
		Write: b.readFor,
	})
	return b
}

// readFor reads the rules for several callers.
func (b *Book) readFor(ctx context.Context, all []*reading) {
	began := time.Now()
	set, err := readSet(ctx, b.o.Store)
	if err == nil {
		set.Read = began
		b.last.Store(&readThen{began, set})
	}
	for _, r := range all {
		r.set, r.err = set, err
	}
}

// InForce returns the rules in force; nobody changes what is returned. It costs a read, unless they are kept. All rules lie in one
// partition, which many processes read for each claim: callers that come while a read is under way share the next.
func (b *Book) InForce(ctx context.Context) (*Set, error) {
	if !b.o.Alone {
		var r reading
		if err := b.reads.Do(ctx, &r); err != nil {
			return nil, err
		}
		return r.set, r.err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known != nil {
		return b.known, nil
	}
	set, err := readSet(ctx, b.o.Store)
	b.known = set
	return set, err
}

// Lately returns the rules in force as they were read just now, but for which lines are kept, and how long ago that began; nil if they were
// not.
func (b *Book) Lately() (set *Set, age time.Duration) {
	last := b.last.Load()
	if last == nil {
		return nil, 0
	}
	if age, fresh := Age(last.began); fresh {
		return last.set, age
	}
	return nil, 0
}

// Age returns how long ago a read began, and whether a claim may still go by what it has read.
func Age(began time.Time) (age time.Duration, fresh bool) {
	now := time.Now()
	// The clock that only rises may have stood still while the machine did; the other one may have been set back.
	risen, passed := now.Sub(began), now.Round(0).Sub(began.Round(0))
	return max(risen, passed), risen < Settling && passed < Settling && passed >= 0
}

// settled returns the error of a change, nil if there was nothing to change. If the rules are as they were to be, it first waits until no other
// process goes by those before.
func (b *Book) settled(err error) error {
	if err != nil && !errors.Is(err, errNothing) {
		return err
	}
	if !b.o.Alone {
		<-time.After(Settling)
	}
	return nil
}

// Forget forgets what is kept, so that it is read again.
func (b *Book) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = nil
}

// SetRule sets a rule of a job's path, or removes it if on is false; both are idempotent. It reports whether it has removed the job's
// last rule.
func (b *Book) SetRule(ctx context.Context, path string, kind Kind, on bool) (lifted bool, err error) {
	defer b.Forget()
	key := layout.RuleKey(path)
	_, err = b.o.Journal.Write(ctx, func(ctx context.Context, _ *store.Conflict) (journal.Change, error) {
		items, err := b.o.Store.Get(ctx, key)
		if err != nil {
			return journal.Change{}, layout.Failure("read a rule", err)
		}
		rules, cond := Rules{Path: path}, store.Absent
		if items[0] != nil {
			cond = store.VersionIs(items[0].Version)
			if err := layout.Decode(items[0], &rules); err != nil {
				return journal.Change{}, err
			}
		}
		if lifted = false; !rules.set(kind, on, b.o.Now().UTC()) {
			return journal.Change{}, errNothing
		}
		op := store.Put(store.Item{Key: key, Value: layout.Encode(rules)}, cond)
		if lifted = rules.State() == "run"; lifted {
			op = store.Delete(key, cond)
		}
		return change(typed.JobStateChanged{State: rules.State()}.Event(path), op), nil
	})
	return lifted, b.settled(err)
}

// A suspended queue is an item in the partition of the rules, so that a claim reads both at once. No entry is moved: claims skip the
// queue's lines. The item of a family of queues counts for all its members, also later ones. Tasks of a queue start while neither
// the queue nor its family is suspended.

// suspendedRoot begins the paths of suspended queues' items; the path of a job begins with a slash.
const suspendedRoot = "queue:"

// Suspend suspends a queue, or a family of queues by its name with {0}, or resumes it if on is false; both are idempotent. It reports
// whether it has changed anything.
func (b *Book) Suspend(ctx context.Context, name string, on bool) (changed bool, err error) {
	defer b.Forget()
	key := layout.RuleKey(suspendedRoot + name)
	_, err = b.o.Journal.Write(ctx, func(ctx context.Context, _ *store.Conflict) (journal.Change, error) {
		items, err := b.o.Store.Get(ctx, key)
		if err != nil {
			return journal.Change{}, layout.Failure("read whether a queue is suspended", err)
		}
		if (items[0] != nil) == on {
			return journal.Change{}, errNothing
		}
		e := event.Event{Type: "QueueResumed", Key: event.Key{Path: "Queue:/" + name}}
		if !on {
			return change(e, store.Delete(key, store.VersionIs(items[0].Version))), nil
		}
		e.Type = "QueueSuspended"
		since := layout.Encode(Rules{Path: suspendedRoot + name, Pause: b.o.Now().UTC()})
		return change(e, store.Put(store.Item{Key: key, Value: since}, store.Absent)), nil
	})
	return err == nil, layout.Failure("suspend a queue", b.settled(err))
}

// errNothing ends a write that has nothing to do.
var errNothing = errors.New("rule: nothing to write")

// change returns a change of one item with its event.
func change(e event.Event, op store.Op) journal.Change {
	return journal.Change{Events: []event.Event{e}, Ops: func(journal.Receipt) []store.Op { return []store.Op{op} }}
}

// preferRoot begins the paths of the markers, rules that say which lines are kept for instances.
const preferRoot = "prefer:"

// Keep writes the marker of a line that is kept for instances, with a version. Race: if a sweep removes the marker meanwhile, the task
// that is about to wait in the line loses its hint, but not its rank.
func (b *Book) Keep(ctx context.Context, l layout.Line, version int64) error {
	path := preferRoot + l.String()
	item := store.Item{Key: layout.RuleKey(path), Version: version, Value: layout.Encode(Rules{Path: path})}
	err := b.o.Apply(ctx, store.Put(item, store.Always))
	b.Forget()
	return layout.Failure("say that tasks prefer an instance", err)
}

// Unkept returns the operation that removes the marker of a line, under the condition that it has the version.
func Unkept(l layout.Line, version int64) store.Op {
	return store.Delete(layout.RuleKey(preferRoot+l.String()), store.VersionIs(version))
}
