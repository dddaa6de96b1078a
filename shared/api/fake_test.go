package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// fakeJournal is a journal in memory that can be told to fail, to be torn and to hold given snapshots. The real journal is
// tested in its own package; here the HTTP surface is.
type fakeJournal struct {
	mu        sync.Mutex
	events    []event.Event
	once      map[string]journal.Receipt
	prints    map[string][32]byte
	floor     event.ID
	fail      error
	hold      chan struct{} // if not nil, Emit waits for it
	slow      time.Duration // each read takes so long
	changed   chan struct{}
	snapshots map[string][]object // by fold
	emits     int
}

// firstID is the first of the fake's ids.
const firstID = event.ID(1_478_257_655_827_000)

// object is one element of a snapshot.
type object struct{ key, value string }

func newFake() *fakeJournal {
	return &fakeJournal{
		once: map[string]journal.Receipt{}, prints: map[string][32]byte{}, changed: make(chan struct{}),
		snapshots: map[string][]object{},
	}
}

func (f *fakeJournal) Emit(ctx context.Context, events []event.Event, once *journal.Idempotency) (journal.Receipt, error) {
	if f.hold != nil {
		<-f.hold
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return journal.Receipt{}, f.fail
	}
	if once != nil {
		name := once.Scope + "\x00" + once.Key
		if receipt, seen := f.once[name]; seen {
			if f.prints[name] != once.Fingerprint {
				return journal.Receipt{}, journal.ErrIdempotencyMismatch
			}
			receipt.Replayed = true
			return receipt, nil
		}
	}
	f.emits++
	receipt := journal.Receipt{FirstID: firstID + event.ID(len(f.events)), Count: len(events)}
	for i, e := range events {
		e.ID = receipt.FirstID + event.ID(i)
		f.events = append(f.events, e)
	}
	if once != nil {
		name := once.Scope + "\x00" + once.Key
		f.once[name], f.prints[name] = receipt, once.Fingerprint
	}
	close(f.changed)
	f.changed = make(chan struct{})
	return receipt, nil
}

// close makes every call return ErrClosed, those of waiting readers too.
func (f *fakeJournal) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = journal.ErrClosed
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeJournal) read(r journal.Request) (journal.Answer, chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return journal.Answer{}, nil, f.fail
	}
	a := journal.Answer{LastEventID: r.After}
	if r.After < f.floor {
		a.Torn = true
		return a, nil, nil
	}
	for i := range f.events {
		e := &f.events[i]
		if e.ID <= r.After {
			continue
		}
		if r.Limit > 0 && len(a.Events) == r.Limit {
			break
		}
		a.LastEventID = e.ID
		if r.Match == nil || r.Match(e) {
			shown := *e
			if !r.Causes {
				shown.Cause, shown.By = 0, ""
			}
			a.Events = append(a.Events, shown)
		}
	}
	return a, f.changed, nil
}

func (f *fakeJournal) ReadAfter(ctx context.Context, r journal.Request) (journal.Answer, error) {
	if f.slow > 0 {
		select {
		case <-time.After(f.slow):
		case <-ctx.Done():
			return journal.Answer{}, ctx.Err()
		}
	}
	over := time.After(r.Timeout)
	asked := r.After
	for {
		a, changed, err := f.read(r)
		if err != nil || a.Torn || len(a.Events) > 0 || r.Timeout == 0 {
			return a, err
		}
		select {
		case <-changed:
		case <-over:
			a.LastEventID = max(a.LastEventID, asked)
			return a, nil
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

func (f *fakeJournal) ReadNewest(_ context.Context, r journal.Request) (journal.Answer, error) {
	limit := r.Limit
	r.Limit = 0
	a, _, err := f.read(r)
	slices.Reverse(a.Events)
	a.Events = slices.DeleteFunc(a.Events, func(e event.Event) bool { return r.Until > 0 && e.ID > r.Until })
	if limit > 0 && len(a.Events) > limit {
		a.Events = a.Events[:limit]
	}
	return a, err
}

func (f *fakeJournal) Follow(ctx context.Context, r journal.Request, idle time.Duration) iter.Seq2[journal.Answer, error] {
	return func(yield func(journal.Answer, error) bool) {
		for {
			r.Timeout = idle
			a, err := f.ReadAfter(ctx, r)
			if !yield(a, err) || err != nil || a.Torn {
				return
			}
			r.After = a.LastEventID
		}
	}
}

func (f *fakeJournal) SnapshotOf(_ context.Context, fold string, p journal.Part, each func(key string, value []byte)) (event.ID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return 0, f.fail
	}
	show(f.snapshots[fold], p, each)
	return firstID + event.ID(len(f.events)) - 1, nil
}

// show calls each for the objects of a part.
func show(objects []object, p journal.Part, each func(key string, value []byte)) {
	for _, o := range objects {
		begins := func(prefix string) bool { return strings.HasPrefix(o.key, prefix) }
		if (p.Prefixes == nil || slices.ContainsFunc(p.Prefixes, begins)) && p.Match(o.key) {
			each(o.key, []byte(o.value))
		}
	}
}

// Lineage knows no causes.
func (f *fakeJournal) Lineage(_ context.Context, id event.ID, _ int) (journal.Lineage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return journal.Lineage{}, f.fail
	}
	if id < f.floor {
		return journal.Lineage{}, journal.ErrEventGone
	}
	if !slices.ContainsFunc(f.events, func(e event.Event) bool { return e.ID == id }) {
		return journal.Lineage{}, journal.ErrNoEvent
	}
	return journal.Lineage{}, nil
}

// SnapshotAt shows as many objects as there were events up to the id.
func (f *fakeJournal) SnapshotAt(_ context.Context, fold string, at event.ID, p journal.Part, each func(key string, value []byte)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch newest := firstID + event.ID(len(f.events)) - 1; {
	case f.fail != nil:
		return f.fail
	case at < f.floor:
		return fmt.Errorf("%w: the oldest is %d", journal.ErrEvicted, f.floor)
	case at > newest:
		return fmt.Errorf("%w: the newest is %d", journal.ErrBeyond, newest)
	}
	show(f.snapshots[fold][:min(len(f.snapshots[fold]), int(max(0, at-firstID+1)))], p, each)
	return nil
}

func (f *fakeJournal) Stamp(atLeast event.ID) event.ID { return max(atLeast, firstID+1_000_000) }

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
