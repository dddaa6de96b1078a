package definition

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/strict"
)

// Writer appends events together with changes of items; a [journal.Journal] is one.
type Writer interface {
	Write(ctx context.Context, prepare journal.Prepare) (journal.Receipt, error)
}

// CatalogOptions are the options of a [Catalog].
type CatalogOptions struct {
	Store   store.Store      // required
	Journal Writer           // required; on the same store
	Now     func() time.Time // default time.Now
	Age     time.Duration    // how old the set that [Catalog.Current] returns may be; 0: 5 s

	// Changed is called with the changes that this catalog has made, once they are in force; default: none.
	Changed func(context.Context, Changes)
}

// Catalog is the catalog of definitions: it keeps the set that is in force, in the store. Its methods may be called
// concurrently, and by many processes.
type Catalog struct {
	store   *store.Checked
	journal Writer
	now     func() time.Time
	age     time.Duration
	changed func(context.Context, Changes)

	newest  atomic.Pointer[reading]
	reading sync.Mutex
	editing chan struct{} // full while a change is being written: one of two concurrent changes would have to start over
}

// reading is a set and when it was read.
type reading struct {
	entry
	at time.Time
}

// Origin says where a set comes from. Only the server's own file may declare commands: see [FileOnly].
type Origin uint8

// The origins: the HTTP API, and the server's own file.
const (
	FromAPI Origin = iota
	FromFile
)

// OpenCatalog returns a catalog. It reads nothing yet.
func OpenCatalog(o CatalogOptions) *Catalog {
	b := &Catalog{store: store.NewChecked(o.Store), journal: o.Journal, now: o.Now, age: o.Age, changed: o.Changed, editing: make(chan struct{}, 1)}
	if b.now == nil {
		b.now = time.Now
	}
	if b.age == 0 {
		b.age = 5 * time.Second
	}
	return b
}

// Current returns the set in force, or the one that was in force some seconds ago, see [CatalogOptions]. The first call reads
// it; later calls do not wait while one of them reads it again.
func (b *Catalog) Current(ctx context.Context) (*Set, error) {
	known := b.newest.Load()
	if known == nil {
		return b.Refresh(ctx)
	}
	if b.now().Sub(known.at) < b.age || !b.reading.TryLock() {
		return known.set, nil
	}
	defer b.reading.Unlock()
	return b.read(ctx)
}

// Refresh reads and returns the set that is in force now. Use it for names that the current one lacks.
func (b *Catalog) Refresh(ctx context.Context) (*Set, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	return b.read(ctx)
}

// read must not be called concurrently, so that an older set does not replace a newer one.
func (b *Catalog) read(ctx context.Context) (*Set, error) {
	began := b.now()
	e, err := b.load(ctx, b.newest.Load())
	if err != nil {
		return nil, err
	}
	b.newest.Store(&reading{e, began})
	return e.set, nil
}

// Apply replaces the set in force, all of it or nothing, and appends the events of the changes. A set equal to the one in
// force changes nothing. File orders are those of the set in force unless from is [FromFile]. The error is a [*strict.Error] for a set that [Read] would refuse, [*FileOnly] for new commands
// unless from is [FromFile], or one of the journal's. Unless from is [FromFile], new dates that have passed are refused
// too.
func (b *Catalog) Apply(ctx context.Context, set *Set, from Origin) (Changes, error) {
	return b.Edit(ctx, from, func(inForce *Set) (*Set, error) { return set.from(from, inForce), nil })
}

// Edit is [Catalog.Apply] of the set that change makes of the one in force. The function change must not modify its argument;
// it is called again if a concurrent edit was faster, and its error ends the edit.
func (b *Catalog) Edit(ctx context.Context, from Origin, change func(inForce *Set) (*Set, error)) (Changes, error) {
	return b.apply(ctx, from, func(e entry) (entry, error) {
		set, err := change(e.set)
		e.set = set
		return e, err
	})
}

// ApplyFile applies what the server's file declares, unless that is what the file declared when it was applied last: so
// changes made through the API since then survive a restart. A file without declarations counts as applied in the
// beginning.
func (b *Catalog) ApplyFile(ctx context.Context, set *Set) (Changes, error) {
	digest := set.digest()
	return b.apply(ctx, FromFile, func(e entry) (entry, error) {
		if e.file != digest {
			e.set, e.file = set, digest
		}
		return e, nil
	})
}

// Plan returns what [Catalog.Apply] would change, or its error, and changes nothing.
func (b *Catalog) Plan(ctx context.Context, set *Set, from Origin) (Changes, error) {
	inForce, err := b.Refresh(ctx)
	if err != nil {
		return Changes{}, err
	}
	return b.plan(inForce, set.from(from, inForce), from)
}

// from returns the set with the file orders that it gets from where it comes.
func (s *Set) from(from Origin, inForce *Set) *Set {
	if from == FromFile || len(s.FileOrders)+len(inForce.FileOrders) == 0 {
		return s
	}
	return s.withFileOrders(inForce.FileOrders)
}

// plan returns the changes if they are allowed. A server's file may have dates that have passed, since it stays in use
// after them.
func (b *Catalog) plan(inForce, set *Set, from Origin) (Changes, error) {
	if !set.sound {
		if _, err := Read("definitions", set.JSON()); err != nil {
			return Changes{}, err
		}
	}
	if missing := set.lostChains(); len(missing) > 0 {
		return Changes{}, &FileOnly{missing}
	}
	before, after := inForce.objects(), set.objects()
	if from != FromFile {
		if commands := newCommands(before, after); len(commands) > 0 {
			return Changes{}, &FileOnly{commands}
		}
		if past := pastDates(before, after, b.now()); len(past) > 0 {
			return Changes{}, &strict.Error{Name: "definitions", Mistakes: past}
		}
	}
	return diff(before, after), nil
}

// apply writes the entry that change makes of the one in force.
func (b *Catalog) apply(ctx context.Context, from Origin, change func(entry) (entry, error)) (Changes, error) {
	select {
	case b.editing <- struct{}{}:
		defer func() { <-b.editing }()
	case <-ctx.Done():
		return Changes{}, ctx.Err()
	}
	var changes Changes
	var after entry
	began := b.now()
	receipt, err := b.journal.Write(ctx, func(ctx context.Context, _ *store.Conflict) (journal.Change, error) {
		before, err := b.load(ctx, b.newest.Load())
		if err != nil {
			return journal.Change{}, err
		}
		after, err = change(before)
		if err != nil {
			return journal.Change{}, err
		}
		if changes, err = b.plan(before.set, after.set, from); err != nil {
			return journal.Change{}, err
		}
		if after.file == before.file && changes.Empty() && after.set.Equal(before.set) {
			return journal.Change{}, errUnchanged
		}
		change, parts, err := after.change(before, changes.events(after.set))
		after.parts = parts
		return change, err
	})
	switch {
	case err == errUnchanged: //nolint:errorlint // it is ours and is not wrapped
		return changes, nil
	case err != nil:
		return Changes{}, fmt.Errorf("definition: apply: %w", err)
	}
	after.set, after.version = after.set.copy(), receipt.Position
	after.set.sound, after.set.revision = true, after.version
	b.learn(&reading{after, began})
	if b.changed != nil {
		b.changed(ctx, changes)
	}
	return changes, nil
}

// learn makes r the newest known set, unless a newer one is known.
func (b *Catalog) learn(r *reading) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if known := b.newest.Load(); known == nil || known.version < r.version {
		b.newest.Store(r)
	}
}
