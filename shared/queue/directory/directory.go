package directory

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/lock"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// Directory is one process's access to the names of the lines in which tasks wait, or did a while ago. Its methods may be called
// concurrently.
type Directory struct {
	o     Options
	mu    lock.Mutex
	names map[layout.Line]bool  // that were read, or registered since
	noted map[layout.Line]int64 // when this process registered them, in microseconds since 1970
	read  int64                 // when names was read, in microseconds since 1970; 0: never
}

// Options of a Directory. All are required.
type Options struct {
	Store   store.Store
	Apply   func(ctx context.Context, ops ...store.Op) error // writes operations without the journal
	Now     func() time.Time
	Created func() int64  // the time in microseconds since 1970; each call returns a later one
	Quiet   time.Duration // how long an empty line must have had no addition before it is forgotten
	Alone   bool          // the process has the store to itself: what was read once is kept
	Log     *slog.Logger
}

// New returns a Directory.
func New(o Options) *Directory {
	return &Directory{o: o, mu: lock.New(), noted: map[layout.Line]int64{}}
}

// reread is the age, in microseconds, after which the directory is read again.
const reread = 10_000_000

// constant reports whether a line is always in the directory, without an item.
func constant(l layout.Line) bool {
	return l == layout.Line{Queue: definition.MainQueue} || l == layout.Line{Queue: definition.SyncQueue} || l == layout.Line{Queue: definition.EventQueue}
}

// Register adds a line to the directory before a task waits in it. What this process has registered holds for a while.
func (d *Directory) Register(ctx context.Context, l layout.Line) error {
	if constant(l) || d.notedWithin(l, d.o.Now().UnixMicro(), d.registered()) {
		return nil
	}
	return d.registerAnew(ctx, l)
}

func (d *Directory) registerAnew(ctx context.Context, l layout.Line) error {
	noted, name := d.o.Created(), l.String()
	item := store.Item{Key: layout.Key(layout.PartitionLines, store.Fit(name)), Version: noted, Value: []byte(name)}
	if err := d.o.Apply(ctx, store.Put(item, store.Always)); err != nil {
		return layout.Failure("register a line", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(l)
	d.noted[l] = noted
	return nil
}

// notedWithin reports whether this process has registered a line less than within microseconds ago.
func (d *Directory) notedWithin(l layout.Line, now, within int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, noted := d.noted[l]
	return noted && now-at < within && at-now < within // clocks may be set back
}

func (d *Directory) add(l layout.Line) {
	if d.names == nil {
		d.names = map[layout.Line]bool{{Queue: definition.SyncQueue}: true, {Queue: definition.EventQueue}: true, {Queue: definition.MainQueue}: true}
	}
	d.names[l] = true
}

// Know adds lines that another process has registered, and tells of before this one reads the directory again.
func (d *Directory) Know(lines ...layout.Line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range lines {
		d.add(l)
	}
}

// drop forgets a line.
func (d *Directory) drop(l layout.Line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.names, l)
	delete(d.noted, l)
}

// Lines returns the names of all lines that tasks may wait in.
func (d *Directory) Lines(ctx context.Context) ([]layout.Line, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.o.Now().UnixMicro()
	if d.read != 0 && d.current() {
		return slices.SortedFunc(maps.Keys(d.names), layout.CompareLines), nil
	}
	d.names = nil
	d.add(layout.Line{Queue: definition.MainQueue})
	for item, err := range store.All(ctx, d.o.Store, store.Range{Table: store.Work, Partition: layout.PartitionLines}) {
		if err != nil {
			d.read = 0
			return nil, layout.Failure("read the lines", err)
		}
		d.add(layout.ParseLine(string(item.Value)))
	}
	d.read = now
	return slices.SortedFunc(maps.Keys(d.names), layout.CompareLines), nil
}

// Known returns the lines as they were read last, without a read; none if they are to be read again.
func (d *Directory) Known() []layout.Line {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read == 0 || !d.current() {
		return nil
	}
	return slices.SortedFunc(maps.Keys(d.names), layout.CompareLines)
}

// Of returns the lines of a queue, also those that were registered just now. It costs a read, unless the process is alone.
func (d *Directory) Of(ctx context.Context, queue string) ([]layout.Line, error) {
	if d.o.Alone {
		all, err := d.Lines(ctx)
		return slices.DeleteFunc(all, func(l layout.Line) bool { return l.Queue != queue }), err
	}
	lines := []layout.Line{{Queue: queue}}
	r := store.Range{Table: store.Work, Partition: layout.PartitionLines, From: store.Fit(queue), To: store.Fit(queue + "@0")} // "@0" is next to "@/"
	for item, err := range store.All(ctx, d.o.Store, r) {
		if err != nil {
			return nil, layout.Failure("read the lines of a queue", err)
		}
		if l := layout.ParseLine(string(item.Value)); l.Queue == queue && l.ForInstances() {
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// current reports whether the names that were read still hold.
func (d *Directory) current() bool {
	return d.o.Alone || d.o.Now().UnixMicro() <= d.read+min(reread, d.registered())
}
