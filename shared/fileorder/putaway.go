package fileorder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
)

// fileBatch is how many files are put away together, so that they share writes of the store and flushes of the directories.
const fileBatch = 64

// filing is the putting away of one order's file.
type filing struct {
	order.Unfiled
	of   definition.FileOrder
	keep error // why the file stays; nil: it is away

	failed   error // why it is not known what became of it: it is tried again
	finished bool
}

// putAway puts away the files of some orders that are at their ends. One that fails does not keep the others.
func (w *Watcher) putAway(ctx context.Context, orders []definition.FileOrder) (more bool, failed error) {
	waiting, next, failed := w.o.Orders.Unfiled(ctx, w.filed, fileBatch)
	w.filed = next
	all := filings(waiting, filepath.IsAbs)
	for i := range all {
		all[i].of, all[i].keep = find(orders, &all[i].Unfiled)
	}
	each(all, func(f *filing) error { return w.mark(ctx, f) })
	changed := map[string][]*filing{}
	for i := range all {
		if f := &all[i]; f.failed == nil && f.keep == nil && f.Mark != "" {
			f.keep = away(f.of.Done, f.ID, f.Mark, func(directory string) { changed[directory] = append(changed[directory], f) })
		}
	}
	for directory, of := range changed {
		if err := flush(directory); err != nil {
			for _, f := range of {
				f.failed = errors.Join(f.failed, err)
			}
		}
	}
	each(all, func(f *filing) error { return f.finish(ctx, w.o.Orders, w.o.Log) })
	for i := range all {
		if f := &all[i]; f.finished {
			delete(w.seen[f.of], filepath.Base(f.ID))
		}
	}
	return next != "", errors.Join(failed, failures(all))
}

// filings returns those of some orders whose files this process can reach, which is told by the order's id.
func filings(waiting []order.Unfiled, reaches func(id string) bool) (all []filing) {
	for _, u := range waiting {
		if reaches(u.ID) {
			all = append(all, filing{Unfiled: u})
		}
	}
	return all
}

// failures returns why it is not known of some files what became of them.
func failures(all []filing) (failed error) {
	for i := range all {
		if f := &all[i]; f.failed != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", f.ID, f.failed))
		}
	}
	return failed
}

var errNoOrder = errors.New("no file order is declared any more that says what to do with it")

// find returns the file order that started an order.
func find(orders []definition.FileOrder, u *order.Unfiled) (definition.FileOrder, error) {
	directory, name := filepath.Split(u.ID)
	for _, f := range orders {
		if f.Chain == u.Chain && isLocal(f) && filepath.Clean(f.Directory) == filepath.Clean(directory) && matches(f, name) {
			return f, nil
		}
	}
	return definition.FileOrder{}, errNoOrder
}

// mark notes which file is to be put away. Where there is none, the mark stays empty.
func (w *Watcher) mark(ctx context.Context, f *filing) error {
	if f.keep != nil || f.Suspended {
		return nil
	}
	info, err := os.Lstat(f.ID)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.Mode().IsRegular():
		f.Mark = "" // it has gone
		return nil
	case err != nil:
		f.keep = err
		return nil
	case f.Mark != "":
		return nil
	}
	f.Mark, err = w.o.Orders.MarkFile(ctx, f.Unfiled, markOf(info))
	return err
}

// markOf tells a file from others that come to its path later.
func markOf(info fs.FileInfo) string {
	return fmt.Sprintf("%d bytes, changed at %d", info.Size(), info.ModTime().UnixNano())
}

// finish ends the order. Its file, or one that comes under the same name, may start another then.
func (f *filing) finish(ctx context.Context, orders Orders, log *slog.Logger) error {
	finished, err := orders.Filed(ctx, f.Unfiled, f.keep == nil)
	if err != nil {
		return err
	}
	if f.keep != nil && log != nil {
		log.Warn("the file of an order could not be put away", "file", f.ID, "chain", f.Chain, "finished", finished, "error", f.keep)
	}
	f.finished = finished
	return nil
}

// each calls do for all at once that have not failed.
func each(all []filing, do func(*filing) error) {
	var group sync.WaitGroup
	for i := range all {
		if f := &all[i]; f.failed == nil {
			group.Go(func() { f.failed = do(f) })
		}
	}
	group.Wait()
}
