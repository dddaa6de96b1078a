package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/upgrade"
)

// The errors of [Copy] that say what is wrong with the stores, to be compared with errors.Is. [upgrade.ErrIncomplete] says that an earlier
// copy into the target was not completed; [upgrade.ErrNewer] and [upgrade.ErrOlder] that the source has another layout.
var (
	ErrNothing  = errors.New("transfer: the store to copy from holds nothing")
	ErrNotEmpty = errors.New("transfer: the store to copy to is not empty; give one that nothing was written to")
	ErrInUse    = errors.New("transfer: the store to copy from is in use; stop all servers and functions that use it")
	ErrDiffers  = errors.New("transfer: the copy is not what was copied")
)

// Options of a copy.
type Options struct {
	From, To store.Portable // required; neither is used by anything else

	Again    bool               // begin anew where an earlier copy was not completed, and remove what it has left; default false
	Progress func(copied int64) // called after each 10,000 records with their number; default: none

	// Run is how many slots in a row share a partition of To, where processes share it: [journal.ShortRun], the default, or
	// [journal.PageRun].
	Run int64

	from int64 // is Run of From
}

// each is after how many records progress is told.
const each = 10_000

// Copied is what a copy consists of.
type Copied struct {
	Items      map[store.Table]int64 // by table
	Sequencers int64
	Bytes      int64            // of the items' values
	Journal    journal.Verified // of the copy
}

// Copy copies everything and verifies the copy: its journal by [journal.Journal.Verify], and by a sum over what else is in it. When it
// returns an error the source holds what it held, and a target that was empty is either still empty, or refused by every program until a copy
// into it is complete. It may be cut off anywhere.
func Copy(ctx context.Context, o Options) (Copied, error) {
	o.Run = cmp.Or(o.Run, journal.ShortRun)
	before, err := o.demandSource(ctx)
	if err != nil {
		return Copied{}, err
	}
	mark, err := o.begin(ctx)
	if err != nil {
		return Copied{}, err
	}
	copied, sum, err := o.copy(ctx)
	if err != nil {
		return copied, err
	}
	if copied.Journal, err = o.verify(ctx, before, sum); err != nil {
		return copied, err
	}
	return copied, upgrade.Complete(ctx, store.NewChecked(o.To), mark, o.Run)
}

// demandSource verifies the store to copy from.
func (o *Options) demandSource(ctx context.Context) (journal.Verified, error) {
	empty, err := isEmpty(ctx, o.From)
	switch {
	case errors.Is(err, store.ErrLocked):
		return journal.Verified{}, fmt.Errorf("%w: %w", ErrInUse, err)
	case err != nil:
		return journal.Verified{}, fmt.Errorf("transfer: read the store to copy from: %w", err)
	case empty:
		return journal.Verified{}, ErrNothing
	}
	if o.from, err = upgrade.Check(ctx, store.NewChecked(o.From), 0); err != nil {
		return journal.Verified{}, fmt.Errorf("transfer: the store to copy from: %w", err)
	}
	return verifyJournal(ctx, o.From, o.from)
}

// begin demands that the target is empty, and marks it.
func (o *Options) begin(ctx context.Context) (mark int64, err error) {
	to := store.NewChecked(o.To)
	if err := to.Ping(ctx); err != nil {
		return 0, fmt.Errorf("transfer: the store to copy to: %w", err)
	}
	marked, err := upgrade.Marked(ctx, to)
	if err != nil {
		return 0, err
	}
	if !marked {
		empty, err := isEmpty(ctx, o.To)
		if err != nil {
			return 0, fmt.Errorf("transfer: read the store to copy to: %w", err)
		}
		if !empty {
			return 0, ErrNotEmpty
		}
	}
	if mark, err = upgrade.Mark(ctx, to, marked && o.Again); err != nil || !marked {
		return mark, err
	}
	return mark, erase(ctx, o.To)
}

// isEmpty reports whether nothing was ever written to a store.
func isEmpty(ctx context.Context, s store.Portable) (bool, error) {
	for r, err := range s.Records(ctx) {
		if err != nil || !unused(r) {
			return false, err
		}
	}
	return true, nil
}

// unused reports whether a record is as good as none.
func unused(r *store.Record) bool { return r.Sequence != nil && *r.Sequence == store.Sequence{} }

// erase removes everything but the mark from a store.
func erase(ctx context.Context, s store.Portable) error {
	var last store.Range
	for r, err := range s.Records(ctx) {
		if err != nil {
			return fmt.Errorf("transfer: read what an earlier copy has left: %w", err)
		}
		at := store.Range{Table: r.Item.Key.Table, Partition: r.Item.Key.Partition}
		switch {
		case r.Sequence != nil:
			err = s.Load(ctx, []store.Record{{Item: store.Item{Key: r.Item.Key}, Sequence: &store.Sequence{}}})
		case at != last && !upgrade.IsMark(r.Item.Key):
			err, last = s.Remove(ctx, at), at
		}
		if err != nil {
			return fmt.Errorf("transfer: remove what an earlier copy has left: %w", err)
		}
	}
	return nil
}

// copy copies all records to where the target keeps them.
func (o *Options) copy(ctx context.Context) (copied Copied, s sum, err error) {
	copied.Items = map[store.Table]int64{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := newLoader(ctx, o.To)
	for r, err := range o.From.Records(ctx) {
		if err == nil {
			err = moved(r, o.To.Exclusive(), o.Run)
		}
		if errors.Is(err, errSkipped) {
			continue
		}
		if err == nil {
			err = l.add(r)
		}
		if err != nil {
			cancel()
			return copied, s, fmt.Errorf("transfer: %w", errors.Join(err, l.end()))
		}
		s.add(r)
		copied.count(r)
		if o.Progress != nil && l.records%each == 0 {
			o.Progress(l.records)
		}
	}
	if err := l.end(); err != nil {
		return copied, s, fmt.Errorf("transfer: %w", err)
	}
	return copied, s, nil
}

func (c *Copied) count(r *store.Record) {
	if r.Sequence != nil {
		c.Sequencers++
		return
	}
	c.Items[r.Item.Key.Table]++
	c.Bytes += int64(len(r.Item.Value))
}

var errSkipped = errors.New("transfer: a copy does without it")

// moved gives a record the key that it has in a copy.
func moved(r *store.Record, exclusive bool, run int64) (err error) {
	if r.Sequence != nil {
		if unused(r) {
			return errSkipped
		}
		return nil
	}
	at, kept := layout.Moved(r.Item.Key)
	if !kept || upgrade.IsMark(at) {
		return errSkipped
	}
	r.Item.Key, err = journal.Moved(at, exclusive, run)
	return err
}

// verify compares the copy with what was copied, and the source with what it was before.
func (o *Options) verify(ctx context.Context, before journal.Verified, want sum) (journal.Verified, error) {
	if after, err := verifyJournal(ctx, o.From, o.from); err != nil || after != before {
		return before, errors.Join(fmt.Errorf("%w: its journal has changed since the copy began", ErrInUse), err)
	}
	var got sum
	for r, err := range o.To.Records(ctx) {
		if err != nil {
			return before, fmt.Errorf("transfer: read the copy: %w", err)
		}
		if !upgrade.IsMark(r.Item.Key) && !unused(r) {
			got.add(r)
		}
	}
	if got != want {
		return before, fmt.Errorf("%w: it has %d records that stay, want %d, or others", ErrDiffers, got.records, want.records)
	}
	found, err := verifyJournal(ctx, o.To, o.Run)
	if err == nil && found != before {
		err = fmt.Errorf("%w: its journal has %+v, want %+v", ErrDiffers, found, before)
	}
	return found, err
}

func verifyJournal(ctx context.Context, s store.Store, run int64) (journal.Verified, error) {
	j := journal.Open(s, journal.Options{Run: run})
	found, err := j.Verify(ctx)
	return found, errors.Join(err, j.Close())
}
