package fileorder

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
)

// Orders are the orders of files; an [order.Engine] is one.
type Orders interface {
	Add(ctx context.Context, once *journal.Idempotency, r order.Request) (order.Added, error)
	Unfiled(ctx context.Context, after string, limit int) (orders []order.Unfiled, next string, err error)
	MarkFile(ctx context.Context, u order.Unfiled, mark string) (counts string, err error)
	FileMark(ctx context.Context, chain, id string) (mark string, waits bool, err error)
	Filed(ctx context.Context, u order.Unfiled, away bool) (finished bool, err error)
}

// Definitions returns the set in force.
type Definitions interface {
	Current(ctx context.Context) (*definition.Set, error)
}

// Options of a Watcher. Orders and Definitions are required.
type Options struct {
	Orders      Orders
	Definitions Definitions
	Now         func() time.Time // default: time.Now
	Log         *slog.Logger     // default: discards
}

// Watcher looks after the directories of all file orders. It is for one goroutine.
type Watcher struct {
	o        Options
	seen     map[definition.FileOrder]directory
	troubles map[string]string // what was logged last of each directory
	filed    string            // how far the list of files that are to be put away was gone through
}

// Open returns a Watcher.
func Open(o Options) *Watcher {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Watcher{o: o, seen: map[definition.FileOrder]directory{}, troubles: map[string]string{}}
}

// How long Run pauses: between looks at directories, or less where files must be steady for less; and where no file orders are declared.
const (
	pause      = time.Second
	leastPause = 50 * time.Millisecond
	idlePause  = 10 * time.Second
)

// Run looks after the directories until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		more, err := w.Pass(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			w.o.Log.Warn("not all directories of file orders were looked at; it is tried again", "error", err)
		}
		if more && err == nil {
			timer.Reset(0)
			continue
		}
		timer.Reset(w.pause(ctx))
	}
}

// pause returns how long to wait before the next pass.
func (w *Watcher) pause(ctx context.Context) time.Duration {
	set, err := w.o.Definitions.Current(ctx)
	if err != nil {
		return pause
	}
	next := idlePause
	for _, f := range set.FileOrders {
		next = min(next, pause, max(leastPause, steadyFor(f)/2))
	}
	return next
}

// Pass puts away the files of orders that are at their ends, and starts orders for files that are steady, some at a time: more says
// that there is more to do at once.
func (w *Watcher) Pass(ctx context.Context) (more bool, err error) {
	set, err := w.o.Definitions.Current(ctx)
	if err != nil {
		return false, err
	}
	moreToFile, notFiled := w.putAway(ctx, set.FileOrders)
	moreToStart, notStarted := w.start(ctx, w.scan(set.FileOrders))
	return moreToFile || moreToStart, errors.Join(notFiled, notStarted)
}

// trouble logs what is wrong with a directory, once; nil: nothing is.
func (w *Watcher) trouble(directory string, err error) {
	if err == nil {
		delete(w.troubles, directory)
		return
	}
	if text := err.Error(); w.troubles[directory] != text {
		w.troubles[directory] = text
		w.o.Log.Warn("the directory of a file order cannot be read", "directory", directory, "error", err)
	}
}
