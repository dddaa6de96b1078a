package queue_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// flood adds tasks of a job, a hundred a second, with priorities from 0 to 4, and returns them.
func (b *bench) flood(job string, n int) (all []task.Task) {
	b.t.Helper()
	for i := range n {
		all = append(all, b.enqueue(queue.New{Dialect: task.Job, Job: job, Priority: int64(i * 7 % 5)})[0].Task)
		b.clock.advance(10 * time.Millisecond)
	}
	return all
}

// parts returns in how many parts of a line something waits, as it is in the store.
func (b *bench) parts(l layout.Line) (n int) {
	b.t.Helper()
	for _, part := range layout.ReadyParts(l, layout.MostParts) {
		for item, err := range store.All(b.t.Context(), b.store, store.Range{Table: store.Work, Partition: part}) {
			if err != nil {
				b.t.Fatal(err)
			}
			if !layout.IsSignpost(item) {
				n++
				break
			}
		}
	}
	return n
}

// signpost returns in how many parts a line is said to lie.
func (b *bench) signpost(l layout.Line) layout.Signpost {
	b.t.Helper()
	post, _, err := layout.LoadSignpost(b.t.Context(), b.store, l)
	if err != nil {
		b.t.Fatal(err)
	}
	return post
}

func idsOf(all []task.Task) []task.ID {
	var names []task.ID
	for i := range all {
		names = append(names, all[i].ID)
	}
	return names
}

var mainLine = layout.Line{Queue: "main"}

// A line to which much is added lies in parts. Whatever process claims starts the tasks in exact order, however many it wants at once.
func TestALineInPartsKeepsItsOrder(t *testing.T) {
	t.Parallel()
	for _, want := range []int{1, 7, 15} {
		b := setupWith(t, ways()).another()
		all := b.flood("/plain", 600)
		if n := b.parts(mainLine); n != 4 {
			t.Fatalf("the tasks wait in %d parts, want 4", n)
		}
		slices.SortStableFunc(all, func(x, y task.Task) int { return cmp.Compare(y.Priority, x.Priority) })
		var started []task.Task
		for p := b.another(); len(started) < len(all); {
			leases := p.claim(want)
			if len(leases) == 0 {
				t.Fatalf("a claim finds nothing after %d of %d tasks", len(started), len(all))
			}
			for i := range leases {
				started = append(started, leases[i].Task)
			}
		}
		if !slices.Equal(idsOf(started), idsOf(all)) {
			t.Errorf("claims of %d start tasks of a line in parts in another order", want)
		}
		b.demandClaim(1, 0, "all were started")
	}
}

// throttled is a shared store that refuses some reads.
type throttled struct {
	shared
	next int // how many of the next ones
}

func (s *throttled) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	if s.next > 0 {
		s.next--
		return nil, store.ErrBusy
	}
	return s.shared.Get(ctx, keys...)
}

// A line to which a process adds a hundred tasks a second has four parts, and twice as many each time the store turns out to be busy.
func TestALineGrowsWhileTheStoreIsBusy(t *testing.T) {
	t.Parallel()
	base := setupWith(t, ways())
	s := &throttled{shared: shared{base.store}}
	b := base.over(s, base.clock)
	for _, want := range []int{4, 8, 16, 16} {
		b.flood("/plain", 300)
		if post := b.signpost(mainLine); post.Write != want {
			t.Fatalf("the line lies in %d parts, want %d", post.Write, want)
		}
		s.next = 6
		if _, err := b.Patient().Get(t.Context(), layout.SignpostKey(mainLine)); err != nil {
			t.Fatal(err)
		}
	}
}

// Tasks of a group that lie in parts are listed by creation, page by page, from either end and between times, with those that do not.
func TestTasksInPartsAreListedByCreation(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	all := b.flood("/plain", 500)
	if all[0].ID.Spread() || !all[499].ID.Spread() {
		t.Fatalf("the first and the last task lie in parts: %t, %t; want the last only", all[0].ID.Spread(), all[499].ID.Spread())
	}
	for _, newest := range []bool{false, true} {
		for from, to := range map[int]int{0: 499, 100: 450, 480: 490} {
			want := idsOf(all[from : to+1])
			if newest {
				slices.Reverse(want)
			}
			l := view.Listing{Group: "/plain", Limit: 90, Newest: newest, From: time.UnixMicro(all[from].Created), To: time.UnixMicro(all[to].Created)}
			var got []task.ID
			for {
				page, err := b.another().List(t.Context(), l)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, idsOf(page.Tasks)...)
				if l.Cursor = page.Cursor; l.Cursor == "" {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("tasks %d to %d, newest first %t: %d are listed, or not by creation; want %d", from, to, newest, len(got), len(want))
			}
		}
	}
	last := all[499].ID
	if found, err := b.another().Get(t.Context(), last); err != nil || found.ID != last {
		t.Errorf("Get = %v, %v", found.ID, err)
	}
}

// Nobody who looks at a line misses what waits in its parts.
func TestWhatLooksAtALineFindsItsParts(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	all := b.flood("/plain", 500)
	p := b.another()
	first := slices.MinFunc(all, func(x, y task.Task) int { return cmp.Compare(y.Priority, x.Priority) })
	if why, err := p.Why(t.Context(), first.ID); err != nil || why.Code != view.ReasonNext {
		t.Errorf("why = %+v, %v, want that it is the next", why, err)
	}
	if swept, err := p.Sweep(t.Context()); err != nil || swept.Notified != 16 {
		t.Errorf("a sweep sends %d notices, %v, want 16", swept.Notified, err)
	}
	if dropped, err := p.Purge(t.Context(), "main"); err != nil || dropped != len(all) {
		t.Errorf("%d tasks are purged, %v, want %d", dropped, err, len(all))
	}
	if n := b.parts(mainLine); n != 0 {
		t.Errorf("entries are left in %d parts", n)
	}
}

// A line that is quiet gives its parts up: first those for new entries, then, when they have been empty for long, all.
func TestAQuietLineGivesItsPartsUp(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	all := b.flood("/plain", 500)
	later := func() {
		t.Helper()
		b.clock.advance(31 * time.Minute)
		if _, err := b.another().Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if post := b.signpost(mainLine); post.Write != 4 || post.Read != 4 {
		t.Fatalf("the line's signpost says %+v, want 4 parts", post)
	}
	later()
	if post := b.signpost(mainLine); post.Write != 1 || post.Read != 4 {
		t.Errorf("after a while the signpost says %+v, want one part for new entries, and 4 that may have some", post)
	}
	later()
	if post := b.signpost(mainLine); post.Read != 4 {
		t.Errorf("the signpost says %+v while tasks wait in the parts", post)
	}
	if added := b.enqueue(queue.New{Dialect: task.Job, Job: "/plain"})[0].Task; added.ID.Spread() {
		t.Error("a task of a quiet line lies in parts")
	}
	for range len(all) + 1 {
		b.demandClaim(1, 1, "tasks wait")
	}
	later()
	if post := b.signpost(mainLine); post.Read != 1 {
		t.Errorf("the signpost of an empty line says %+v", post)
	}
	b.enqueue(queue.New{Dialect: task.Job, Job: "/plain"})
	b.another().demandClaim(1, 1, "a task waits")
}

// Queues with an order of their own have one part, and so has a store that one process has to itself, or that has no partitions.
func TestWhatStaysInOnePart(t *testing.T) {
	t.Parallel()
	b := setupWith(t, ways()).another()
	for job, name := range map[string]string{"/strict": "strict", "/fair/a": "fair"} {
		b.flood(job, 500)
		if n := b.parts(layout.Line{Queue: name}); n != 1 {
			t.Errorf("the queue %s lies in %d parts", name, n)
		}
	}
	alone := setupWith(t, ways())
	alone.flood("/plain", 500)
	one := setupWith(t, ways()).another()
	one.Queue = queue.Open(queue.Options{Store: one.store, Journal: one.journal, Definitions: fixed{ways()}, Now: one.clock.now, OnePart: true})
	one.flood("/plain", 500)
	for name, b := range map[string]*bench{"alone": alone, "without partitions": one} {
		if n := b.parts(mainLine); n != 1 {
			t.Errorf("%s: the line lies in %d parts", name, n)
		}
	}
}

// A claim of a quiet line costs a read of its head, as it did before lines had parts; one of a line in 4 parts costs the heads of these.
func TestPartsAreReadOnlyWhereTheyAre(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ tasks, queries int }{{20, 1}, {500, 4}} {
		b := setupWith(t, ways()).another()
		b.flood("/plain", test.tasks)
		heads := &heads{Store: b.store}
		b.store = heads
		p := b.another()
		p.claim(1) // a process learns of the parts
		heads.n = 0
		p.claim(1)
		if heads.n != test.queries {
			t.Errorf("a claim behind %d tasks reads %d parts, want %d", test.tasks, heads.n, test.queries)
		}
	}
}

// heads counts queries of the parts of the queue main.
type heads struct {
	store.Store
	mu sync.Mutex // parts are read side by side
	n  int
}

// Query counts.
func (h *heads) Query(ctx context.Context, r store.Range) (store.Page, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, part := range layout.ReadyParts(mainLine, layout.MostParts) {
		if r.Partition == part {
			h.n++
		}
	}
	return h.Store.Query(ctx, r)
}
