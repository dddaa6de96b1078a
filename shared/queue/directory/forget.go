package directory

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// An empty line is forgotten after Options.Quiet without an addition, so that claims and sweeps read the lines in which tasks wait
// now, not all that ever were. Its item in the directory says when it was registered last. A process that adds to a line has
// registered it less than a sixth of Quiet ago, by its own clock, and registers it again if its write took long. So between the last
// addition that relies on a registration and the time at which the line is forgotten, most of Quiet passes: more than clocks differ,
// and than a write takes.

// registered returns how long, in microseconds, a process relies on its registration of a line.
func (d *Directory) registered() int64 { return (d.o.Quiet / 6).Microseconds() }

// Confirm registers a line again after an addition that took so long that the line may have been forgotten.
func (d *Directory) Confirm(ctx context.Context, l layout.Line) {
	if l.Name != "" || constant(l) || d.notedWithin(l, d.o.Now().UnixMicro(), 2*d.registered()) {
		return
	}
	if err := d.registerAnew(ctx, l); err != nil {
		d.o.Log.Warn("a task that waits may be found late", "line", l.String(), "error", err)
	}
}

// Forget forgets the lines that are empty and were not registered for Options.Quiet. It costs a read of each such line.
func (d *Directory) Forget(ctx context.Context) (forgotten int, err error) {
	quiet := func(item *store.Item, now time.Time) bool { return item.Version < now.Add(-d.o.Quiet).UnixMicro() }
	var date time.Time
	for item, err := range store.All(ctx, d.o.Store, store.Range{Table: store.Work, Partition: layout.PartitionLines}) {
		if err != nil {
			return forgotten, layout.Failure("read the lines", err)
		}
		if !quiet(item, d.o.Now()) {
			continue
		}
		if date.IsZero() { // so that a clock that runs ahead forgets no line that others have just registered
			if date, err = d.o.Store.Date(ctx); err != nil {
				return forgotten, layout.Failure("ask for the date", err)
			}
		}
		if !quiet(item, date) {
			continue
		}
		done, err := d.forgetLine(ctx, item)
		if err != nil {
			return forgotten, err
		}
		if done {
			forgotten++
		}
	}
	return forgotten, nil
}

// forgetLine forgets one line if it is empty. Race: a process that registers it meanwhile has changed the item's version; an entry
// that was added without that, by a write that took long, is seen by the second look.
func (d *Directory) forgetLine(ctx context.Context, item *store.Item) (forgotten bool, err error) {
	l := layout.ParseLine(string(item.Value))
	if empty, err := d.isEmpty(ctx, l); err != nil || !empty {
		return false, err
	}
	op := store.Delete(item.Key, store.VersionIs(item.Version))
	err = d.o.Apply(ctx, op)
	if store.AsConflict(err) != nil {
		return false, nil
	}
	if err != nil {
		return false, layout.Failure("forget a line", err)
	}
	d.drop(l)
	empty, err := d.isEmpty(ctx, l)
	if err != nil || !empty {
		return false, errors.Join(err, d.registerAnew(ctx, l))
	}
	return true, nil
}

// isEmpty reports whether nothing waits in a line.
func (d *Directory) isEmpty(ctx context.Context, l layout.Line) (bool, error) {
	page, err := d.o.Store.Query(ctx, store.Range{Table: store.Work, Partition: layout.ReadyPartition(l), Limit: 1})
	return err == nil && len(page.Items) == 0, layout.Failure("read a line", err)
}
