package fileorder

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
)

// directory is what was seen of the files of one file order, by their names.
type directory map[string]sight

// sight is a file as it was seen.
type sight struct {
	size    int64
	changed time.Time
	since   time.Time // when it was first seen so
	asked   time.Time // when its order was started, or found to be there; zero: not yet
	failed  time.Time // when its order could not be started; zero: never
}

// candidate is a file that is steady.
type candidate struct {
	of   definition.FileOrder
	name string
	sight
}

func (c *candidate) path() string { return filepath.Join(c.of.Directory, c.name) }

const (
	// askAgain is how long a file whose order is known to be there is left alone.
	askAgain = 5 * time.Minute
	// tryAgain is how long a file is left alone whose order could not be started, so that those behind it have their turn.
	tryAgain = 10 * time.Second
	// startBatch is how many orders a pass starts at most, so that the files of others are put away meanwhile.
	startBatch = 100
	// filePath is the variable that holds the file's path.
	filePath = "scheduler_file_path"
)

// steadyFor returns how long a file must not have changed.
func steadyFor(f definition.FileOrder) time.Duration {
	return cmp.Or(f.Steady, definition.DefaultSteady)
}

// isLocal reports whether the files are those of a directory of this host.
func isLocal(f definition.FileOrder) bool { return strings.HasPrefix(f.Directory, "/") }

// matches reports whether a name is one of those that start orders.
func matches(f definition.FileOrder, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(f.Pattern, ".") {
		return false
	}
	ok, err := path.Match(cmp.Or(f.Pattern, "*"), name)
	return ok && err == nil
}

// scan looks at all directories, and returns the files that are steady, those that changed longest ago first; those whose orders could not
// be started come last.
func (w *Watcher) scan(orders []definition.FileOrder) []candidate {
	var steady []candidate
	before := w.seen
	w.seen = make(map[definition.FileOrder]directory, len(orders))
	for _, f := range orders {
		if !isLocal(f) {
			continue
		}
		now, err := w.look(f, before[f])
		if w.trouble(f.Directory, err); err != nil {
			continue
		}
		w.seen[f] = now
		for name, s := range now {
			if s.isDue(w.o.Now(), f) {
				steady = append(steady, candidate{f, name, s})
			}
		}
	}
	slices.SortFunc(steady, func(a, b candidate) int {
		return cmp.Or(a.failed.Compare(b.failed), a.changed.Compare(b.changed), cmp.Compare(a.path(), b.path()))
	})
	return steady
}

// isDue reports whether the order of a file is to be started: it is steady, and that was not tried a short time ago.
func (s *sight) isDue(now time.Time, f definition.FileOrder) bool {
	return now.Sub(s.since) >= steadyFor(f) && now.Sub(s.asked) >= askAgain && now.Sub(s.failed) >= tryAgain
}

// look lists a directory. What has changed since it was seen before was seen only now.
func (w *Watcher) look(f definition.FileOrder, before directory) (directory, error) {
	entries, err := os.ReadDir(f.Directory)
	if err != nil {
		return nil, err
	}
	now := make(directory, len(entries))
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !matches(f, entry.Name()) {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			continue // it has vanished
		}
		s := before[entry.Name()]
		if s.since.IsZero() || !s.is(info) {
			s = sight{size: info.Size(), changed: info.ModTime(), since: w.o.Now()}
		}
		now[entry.Name()] = s
	}
	return now, nil
}

// is reports whether a file is still as it was seen.
func (s *sight) is(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && info.Size() == s.size && info.ModTime().Equal(s.changed)
}

// start starts orders for the first of the files. A file whose order cannot be started does not keep the others; but after too many in
// a row, it may be the store.
func (w *Watcher) start(ctx context.Context, files []candidate) (more bool, failed error) {
	inRow := 0
	for i := range files[:min(len(files), startBatch)] {
		c := &files[i]
		err := w.startOne(ctx, c)
		if err == nil {
			inRow = 0
			continue
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", c.path(), err))
		c.failed = w.o.Now()
		w.seen[c.of][c.name] = c.sight
		if inRow++; inRow == mostInRow || ctx.Err() != nil {
			return false, failed
		}
	}
	return len(files) > startBatch, failed
}

// mostInRow is how many orders fail one after the other before a pass ends.
const mostInRow = 5

// startOne starts the order of a file, unless it is there. The file is looked at once more: it may have changed while others started.
func (w *Watcher) startOne(ctx context.Context, c *candidate) error {
	if info, err := os.Lstat(c.path()); err != nil || !c.is(info) {
		return nil //nolint:nilerr // the next look finds out what became of it
	}
	variables, err := json.Marshal(map[string]string{filePath: c.path()})
	if err != nil {
		return err
	}
	_, err = w.o.Orders.Add(ctx, nil, order.Request{Chain: c.of.Chain, ID: c.path(), Variables: variables, File: true, PutAway: true})
	switch {
	case errors.Is(err, order.ErrInvalid), errors.Is(err, order.ErrNoChain):
		w.o.Log.Warn("a file starts no order", "file", c.path(), "chain", c.of.Chain, "error", err)
	case err != nil && !errors.Is(err, order.ErrExists):
		return err
	}
	c.asked = w.o.Now()
	w.seen[c.of][c.name] = c.sight
	return nil
}
