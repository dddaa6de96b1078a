package upgrade

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// Layout is the version of the layout that this program reads and writes, and Since the first release that does.
const (
	Layout = 3
	Since  = "0.3.0"
)

// The errors of [Check] that say that this program and the store do not fit, to be compared with errors.Is. Their texts name both
// layouts, and what to do.
var (
	ErrNewer = errors.New("upgrade: the store was written by a newer Millrace")
	ErrOlder = errors.New("upgrade: the store was written by an older Millrace")
)

// stored is the value of the item that says which layout a store has.
type stored struct {
	Layout int    `json:"layout"`
	Since  string `json:"since"` // the first release that reads it

	// Run is how many slots of the journal in a row share a partition where processes share the store; 0: [journal.LongRun].
	Run int64 `json:"run,omitempty"`

	// Copying says that the store is a copy which is not complete. Its Layout is then 0, which no program reads.
	Copying bool `json:"copying,omitempty"`
}

var key = store.Key{Table: store.Journal, Partition: "layout", Sort: "0"}

// Check demands that a store has this program's layout, and notes it in one that is new. It returns how many slots in a row share a
// partition, for [journal.Journal.Lay]: in one that is new as many as begins says, [journal.ShortRun] or [journal.PageRun]. The error is [ErrNewer] or
// [ErrOlder] if the store has another, [ErrIncomplete] if it is a copy that is not complete, and otherwise the store's. It is called once by
// each process, before anything else uses the store. It costs one read, in a store that is new two more and a write, and in one of an older
// layout a write.
//
// Layout 2 is layout 1 with more places: tasks and ready entries that are in none of these stay where they are. Layout 3 is layout 2 with
// leases that are parts of their tasks: those that are items stay so. Slots share partitions in shorter runs in stores that begin with it;
// others keep the long ones, since a slot has one place.
func Check(ctx context.Context, s store.Store, begins int64) (run int64, err error) {
	found, err := read(ctx, s)
	if found == nil && err == nil {
		found, err = begin(ctx, s, begins)
	}
	if err == nil && 1 <= found.Layout && found.Layout < Layout {
		found, err = note(ctx, s, store.VersionIs(int64(found.Layout)), found.Run)
	}
	switch {
	case err != nil:
		return 0, err
	case found.Copying:
		return 0, ErrIncomplete
	case found.Layout > Layout:
		return 0, fmt.Errorf("%w: its layout is %d, and this program reads %d: start Millrace %s or a later one", ErrNewer, found.Layout, Layout, found.Since)
	case found.Layout < Layout:
		return 0, fmt.Errorf("%w: its layout is %d, of Millrace %s, and this program reads %d", ErrOlder, found.Layout, found.Since, Layout)
	}
	return cmp.Or(found.Run, journal.LongRun), nil
}

// read returns which layout a store has; nil: it does not say.
func read(ctx context.Context, s store.Store) (*stored, error) {
	items, err := s.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("upgrade: read the layout: %w", err)
	}
	if items[0] == nil {
		return nil, nil
	}
	found := &stored{}
	if err := json.Unmarshal(items[0].Value, found); err != nil {
		return nil, fmt.Errorf("%w: the layout is %.100q: %w", store.ErrDamaged, items[0].Value, err)
	}
	return found, nil
}

// begin notes the layout of a store that does not say it, and returns it, or what another process has noted meanwhile. Without it a
// store that processes share and that holds events is of a time before layouts had versions, when slots had other keys; where a process
// has it to itself, the layout was the same. Race: what others have noted is read after the journal, to which they append afterwards.
func begin(ctx context.Context, s store.Store, run int64) (*stored, error) {
	begun, err := journal.Begun(ctx, s)
	if err != nil {
		return nil, err
	}
	if found, err := read(ctx, s); found != nil || err != nil {
		return found, err
	}
	if begun && !s.Exclusive() {
		return &stored{Layout: 0, Since: "before 0.1.0"}, nil
	}
	return note(ctx, s, store.Absent, run)
}

// note notes this program's layout, and returns it, or what another process has noted meanwhile.
func note(ctx context.Context, s store.Store, cond store.Condition, run int64) (*stored, error) {
	own := &stored{Layout: Layout, Since: Since, Run: run}
	value, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	item := store.Item{Key: key, Version: Layout, Value: value}
	err = s.Write(ctx, store.Write{Token: rand.Text(), Ops: []store.Op{store.Put(item, cond)}})
	switch {
	case store.AsConflict(err) != nil:
		return read(ctx, s)
	case errors.Is(err, store.ErrDenied): // who may write nothing here leaves it to those who may
		found, err := read(ctx, s)
		if found != nil {
			own.Run = found.Run
		}
		return own, err
	case err != nil:
		return nil, fmt.Errorf("upgrade: note the layout: %w", err)
	}
	return own, nil
}
