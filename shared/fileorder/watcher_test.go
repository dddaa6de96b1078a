package fileorder_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/fileorder"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

type declared struct{ set *definition.Set }

func (d *declared) Current(context.Context) (*definition.Set, error) { return d.set, nil }
func (d *declared) Refresh(context.Context) (*definition.Set, error) { return d.set, nil }

// shared is a store that other processes might use too.
type shared struct{ store.Store }

func (shared) Exclusive() bool { return false }

// bench is a watcher of the directory in, whose files are moved to out, with the chain /c of one step.
type bench struct {
	*fileorder.Watcher
	t       *testing.T
	in, out string
	sets    *declared
	orders  *order.Engine
	queue   *queue.Queue
	journal *journal.Journal
	now     time.Time
	seen    event.ID
}

func setup(t *testing.T, s store.Store, change func(*definition.FileOrder)) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{t: t, in: filepath.Join(dir, "in"), out: filepath.Join(dir, "out"), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, d := range []string{b.in, b.out} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f := definition.FileOrder{Chain: "/c", Directory: b.in, Pattern: "*.csv", Steady: 5 * time.Second, Done: definition.FileDone{MoveTo: b.out}}
	if change != nil {
		change(&f)
	}
	b.sets = &declared{&definition.Set{
		Jobs:       []definition.Job{{Path: "/j", Target: definition.Target{Go: "f"}}},
		JobChains:  []definition.JobChain{{Path: "/c", Nodes: []definition.Node{{ID: "A", Job: "/j", Next: "good", Error: "bad"}, {ID: "good"}, {ID: "bad"}}}},
		FileOrders: []definition.FileOrder{f},
	}}
	now := func() time.Time { return b.now }
	b.journal = journal.Open(s, journal.Options{Now: now, Folds: projection.Folds()})
	b.orders = order.Open(order.Options{Store: s, Definitions: b.sets, Now: now})
	b.queue = queue.Open(queue.Options{Store: s, Journal: b.journal, Definitions: b.sets, Now: now, Steps: b.orders})
	b.orders.Use(b.queue)
	t.Cleanup(func() { _ = b.queue.Close(); _ = b.journal.Close() })
	b.restart(b.orders)
	return b
}

// onBoth runs a test with a store of this process alone, and with one that it shares.
func onBoth(t *testing.T, change func(*definition.FileOrder), test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Parallel()
	for name, s := range map[string]store.Store{"alone": memory.New(memory.Options{}), "shared": shared{memory.New(memory.Options{})}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, setup(t, s, change))
		})
	}
}

// restart replaces the watcher by one that has seen nothing yet.
func (b *bench) restart(orders fileorder.Orders) {
	b.Watcher = fileorder.Open(fileorder.Options{Orders: orders, Definitions: b.sets, Now: func() time.Time { return b.now }})
}

// pass looks at the directory until there is nothing to do at once.
func (b *bench) pass() {
	b.t.Helper()
	for more := true; more; {
		var err error
		if more, err = b.Pass(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
}

// settle lets the files that are there be steady.
func (b *bench) settle() {
	b.t.Helper()
	b.pass()
	b.now = b.now.Add(5 * time.Second)
	b.pass()
}

func (b *bench) write(name, text string, age time.Duration) string {
	b.t.Helper()
	path := filepath.Join(b.in, name)
	at := b.now.Add(-age)
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// run runs all steps that wait; it returns the names of their files.
func (b *bench) run() (files []string) {
	b.t.Helper()
	for {
		leases, err := b.queue.Claim(b.t.Context(), queue.Claimer{Instance: "i"}, 1)
		if err != nil {
			b.t.Fatal(err)
		}
		if len(leases) == 0 {
			return files
		}
		files = append(files, filepath.Base(leases[0].Task.Order.ID))
		if _, err := b.queue.Complete(b.t.Context(), leases[0].Token, queue.Result{Outcome: queue.OK}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// events returns the new events of orders: types and names of files.
func (b *bench) events() string {
	b.t.Helper()
	all, err := b.journal.ReadAfter(b.t.Context(), journal.Request{After: b.seen, Limit: 10_000})
	if err != nil {
		b.t.Fatal(err)
	}
	var words []string
	for i := range all.Events {
		e := &all.Events[i]
		switch b.seen = e.ID; e.Type {
		case event.OrderAdded, event.OrderSuspended, event.OrderResumed, event.OrderFinished, event.OrderRemoved:
			words = append(words, fmt.Sprintf("%s:%s", e.Type, filepath.Base(e.Key.Path)))
		}
	}
	return strings.Join(words, " ")
}

func (b *bench) want(events ...string) {
	b.t.Helper()
	if got, want := b.events(), strings.Join(events, " "); got != want {
		b.t.Errorf("events:\n%s\nwant:\n%s", got, want)
	}
}

// holds compares the names in a directory.
func (b *bench) holds(dir string, names ...string) {
	b.t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, names) {
		b.t.Errorf("%s has %q, want %q", filepath.Base(dir), got, names)
	}
}

func (b *bench) act(name string, kind order.ActKind) {
	b.t.Helper()
	if err := b.orders.Act(b.t.Context(), "/c", filepath.Join(b.in, name), order.Act{Kind: kind}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) is(name, state string) projection.OrderOverview {
	b.t.Helper()
	o, err := b.orders.Get(b.t.Context(), "/c", filepath.Join(b.in, name))
	if err != nil || o.State.Type != state {
		b.t.Errorf("the order of %s is %s, %v, want %s", name, o.State.Type, err, state)
	}
	return o
}

func TestSteadyFilesStartOrdersOldestFirst(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.write("b.csv", "1", time.Hour)
		b.write("a.csv", "1", time.Minute)
		b.write("c.csv", "1", 2*time.Hour)
		b.write("d.csv", "1", time.Hour)
		b.settle()
		b.want("OrderAdded:c.csv", "OrderAdded:b.csv", "OrderAdded:d.csv", "OrderAdded:a.csv")
		o := b.is("c.csv", projection.Due)
		if want := fmt.Sprintf(`{"scheduler_file_path":%q}`, filepath.Join(b.in, "c.csv")); string(o.Variables) != want {
			t.Errorf("the variables are %s, want %s", o.Variables, want)
		}
		if got := b.run(); !slices.Equal(got, []string{"c.csv", "b.csv", "d.csv", "a.csv"}) {
			t.Errorf("steps ran for %q", got)
		}
		b.is("c.csv", projection.WaitingForResource)
		b.pass()
		b.holds(b.in)
		b.holds(b.out, "a.csv", "b.csv", "c.csv", "d.csv")
		if got := strings.Count(b.events(), "OrderFinished"); got != 4 {
			t.Errorf("%d orders have finished, want 4", got)
		}
		b.settle()
		b.want()
	})
}

// What grows, changes, vanishes or does not count starts nothing.
func TestFilesThatAreNotSteadyStartNothing(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.write("grows.csv", "1", time.Hour)
		vanishes := b.write("vanishes.csv", "1", time.Hour)
		b.write("touched.csv", "1", time.Hour)
		b.write("other.txt", "1", time.Hour)
		b.write(".hidden.csv", "1", time.Hour)
		target := b.write("target", "1", time.Hour)
		if err := errors.Join(os.Symlink(target, filepath.Join(b.in, "link.csv")), os.Mkdir(filepath.Join(b.in, "dir.csv"), 0o700)); err != nil {
			t.Fatal(err)
		}
		b.pass()
		b.now = b.now.Add(4 * time.Second)
		b.write("grows.csv", "12", time.Hour)
		b.write("touched.csv", "1", time.Minute)
		if err := os.Remove(vanishes); err != nil {
			t.Fatal(err)
		}
		b.pass()
		b.now = b.now.Add(4 * time.Second)
		b.pass()
		b.want()
		b.now = b.now.Add(time.Second)
		b.pass()
		b.want("OrderAdded:grows.csv", "OrderAdded:touched.csv")
	})
}

// meddler changes the directory at the first order that is added.
type meddler struct {
	fileorder.Orders
	change func()
}

func (m *meddler) Add(ctx context.Context, once *journal.Idempotency, r order.Request) (order.Added, error) {
	if m.change != nil {
		m.change()
		m.change = nil
	}
	return m.Orders.Add(ctx, once, r)
}

// A file that changes or vanishes after it was found steady starts nothing either.
func TestFilesAreLookedAtOnceMore(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.write("a.csv", "1", 3*time.Hour)
		b.write("grows.csv", "1", 2*time.Hour)
		vanishes := b.write("vanishes.csv", "1", time.Hour)
		b.restart(&meddler{b.orders, func() {
			b.write("grows.csv", "12", 2*time.Hour)
			_ = os.Remove(vanishes)
		}})
		b.settle()
		b.want("OrderAdded:a.csv")
		b.settle()
		b.want("OrderAdded:grows.csv")
	})
}

func TestAFileIsRemoved(t *testing.T) {
	onBoth(t, func(f *definition.FileOrder) { f.Done = definition.FileDone{Remove: true} }, func(t *testing.T, b *bench) {
		b.write("a.csv", "1", 0)
		b.settle()
		b.restart(b.orders)
		b.settle() // starts none twice
		b.run()
		b.settle()
		b.want("OrderAdded:a.csv", "OrderFinished:a.csv")
		b.holds(b.in)
		b.write("a.csv", "1", 0) // the same name, and even the same time
		b.settle()
		b.want("OrderAdded:a.csv")
	})
}

// A file that has gone before its order's end lets the order finish.
func TestAFileThatVanishesWhileItsOrderRuns(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, b *bench) {
		path := b.write("a.csv", "1", 0)
		b.settle()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		b.run()
		b.pass()
		b.want("OrderAdded:a.csv", "OrderFinished:a.csv")
		b.holds(b.out)
	})
}

// An order whose file cannot be moved is blacklisted. Resumed, it tries again, and finishes whatever comes of it.
func TestAFileThatCannotBeMoved(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.write("a.csv", "1", 0)
		b.write("b.csv", "1", 0)
		b.settle()
		b.run()
		if err := os.Remove(b.out); err != nil {
			t.Fatal(err)
		}
		b.events()
		b.pass()
		for _, name := range []string{"a.csv", "b.csv"} {
			b.is(name, projection.Blacklisted)
		}
		if got := strings.Count(b.events(), event.OrderSuspended); got != 2 {
			t.Errorf("%d orders were suspended, want 2", got)
		}
		b.settle()
		b.want()
		b.act("a.csv", order.Resume)
		b.pass()
		b.want("OrderResumed:a.csv", "OrderFinished:a.csv")
		if err := os.Mkdir(b.out, 0o700); err != nil {
			t.Fatal(err)
		}
		b.act("b.csv", order.Resume)
		b.pass()
		b.want("OrderResumed:b.csv", "OrderFinished:b.csv")
		b.holds(b.out, "b.csv")
		b.settle()
		b.want("OrderAdded:a.csv") // its file is there still
	})
}

// An order that is suspended at its end keeps its file until it is resumed.
func TestASuspendedOrderKeepsItsFile(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.write("a.csv", "1", 0)
		b.settle()
		b.run()
		b.act("a.csv", order.Suspend) // before its file is put away
		b.pass()
		b.is("a.csv", projection.Blacklisted)
		b.holds(b.in, "a.csv")
		b.act("a.csv", order.Resume)
		b.pass()
		b.holds(b.out, "a.csv")
		b.want("OrderAdded:a.csv", "OrderSuspended:a.csv", "OrderSuspended:a.csv", "OrderResumed:a.csv", "OrderFinished:a.csv")
	})
}

// An order at its end goes back into its chain with its file.
func TestAnOrderGoesBackFromItsEnd(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.write("a.csv", "1", 0)
		b.settle()
		b.run()
		b.act("a.csv", order.Reset)
		b.pass()
		b.holds(b.in, "a.csv")
		if got := b.run(); len(got) != 1 {
			t.Errorf("steps ran for %q, want a.csv once more", got)
		}
		b.pass()
		b.holds(b.out, "a.csv")
		b.want("OrderAdded:a.csv", "OrderFinished:a.csv")
	})
}

// Where no file order says any more what becomes of a file, the file stays and the order is blacklisted.
func TestAFileOrderThatIsNotDeclaredAnyMore(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, b *bench) {
		b.write("a.csv", "1", 0)
		b.settle()
		b.run()
		b.sets.set.FileOrders = nil
		b.pass()
		b.is("a.csv", projection.Blacklisted)
		b.act("a.csv", order.Resume)
		b.pass()
		b.want("OrderAdded:a.csv", "OrderSuspended:a.csv", "OrderResumed:a.csv", "OrderFinished:a.csv")
		b.holds(b.in, "a.csv")
	})
}

func TestAFileReplacesAnotherInTheDirectoryOfThoseDone(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, b *bench) {
		for _, text := range []string{"first", "second"} {
			b.write("a.csv", text, 0)
			b.settle()
			b.run()
			b.pass()
			if got, err := os.ReadFile(filepath.Join(b.out, "a.csv")); string(got) != text || err != nil {
				t.Errorf("out/a.csv is %q, %v, want %q", got, err, text)
			}
		}
	})
}
