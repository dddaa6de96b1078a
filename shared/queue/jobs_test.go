package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// topics returns an engine for topics that this server runs, with these queues.
func topics(t *testing.T, names []string, queues ...definition.Queue) *bench {
	t.Helper()
	d := &definition.Set{Queues: queues}
	for _, name := range names {
		d.Jobs = append(d.Jobs, definition.Job{Path: queue.TopicPath(name), Target: definition.Target{Go: "f"}})
	}
	b := &bench{t: t, store: memory.New(memory.Options{}), clock: clockAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	b.journal = journal.Open(b.store, journal.Options{Now: b.clock.now, Folds: projection.Folds()})
	b.Queue = queue.Open(queue.Options{Store: b.store, Journal: b.journal, Definitions: fixed{d}, Now: b.clock.now})
	t.Cleanup(func() { _ = b.journal.Close() })
	return b
}

func (b *bench) add(topic string, change ...func(*queue.New)) task.ID {
	b.t.Helper()
	b.clock.advance(time.Millisecond)
	n := queue.New{Dialect: task.Job, Job: queue.TopicPath(topic)}
	for _, c := range change {
		c(&n)
	}
	return b.enqueue(n)[0].Task.ID
}

func (b *bench) end(l queue.Lease, r queue.Result) task.State {
	b.t.Helper()
	b.clock.advance(time.Millisecond)
	state, err := b.Complete(b.t.Context(), l.Token, r)
	if err != nil {
		b.t.Fatal(err)
	}
	return state
}

// events returns the events of a task, in order.
func (b *bench) events(id task.ID) []string {
	b.t.Helper()
	a, err := b.journal.ReadAfter(b.t.Context(), journal.Request{Match: func(e *event.Event) bool { return e.Key.TaskID == string(id) }})
	if err != nil {
		b.t.Fatal(err)
	}
	var told []string
	for i := range a.Events {
		told = append(told, a.Events[i].Type)
	}
	return told
}

// items counts the items in partitions of the table work whose name begins so.
func (b *bench) items(partition string) int {
	b.t.Helper()
	page, err := b.store.Query(b.t.Context(), store.Range{Table: store.Work, Partition: partition})
	if err != nil {
		b.t.Fatal(err)
	}
	return len(page.Items)
}

func TestRemoveWhileRunning(t *testing.T) {
	t.Parallel()
	b := topics(t, []string{"a"}, definition.Queue{Name: "q", Topics: []string{"a"}, MaxParallel: 1})
	id := b.add("a", func(n *queue.New) { n.Unique = "u" })
	lease := b.claim(1)[0]
	asked, done := b.StopRequested(lease.Token)
	defer done()
	if err := b.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
	default:
		t.Error("the worker was not told")
	}
	if _, err := b.Complete(t.Context(), lease.Token, queue.Result{Outcome: queue.OK}); !errors.Is(err, queue.ErrStale) {
		t.Errorf("a late completion: %v, want %v", err, queue.ErrStale)
	}
	if _, err := b.Heartbeat(t.Context(), lease.Token, queue.Beat{}); !errors.Is(err, queue.ErrStale) {
		t.Errorf("a late heartbeat: %v, want %v", err, queue.ErrStale)
	}
	got, err := b.Get(t.Context(), id)
	if err != nil || got.State != task.Dropped {
		t.Errorf("Get = %v, %v, want it dropped", got.State, err)
	}
	want := []string{"TaskAdded", "TaskStarted", "TaskEnded", "TaskClosed", "TaskRemoved"}
	if diff := cmp.Diff(want, b.events(id)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	// The slot and the unique key are free.
	if next := b.add("a", func(n *queue.New) { n.Unique = "u" }); next == id || len(b.claim(1)) != 1 {
		t.Errorf("the unique key or the place in the queue is still taken")
	}
	counts, err := b.Counts(t.Context(), "/topics/")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[task.State]int64{task.Running: 1, task.Dropped: 1, task.Ready: 0, task.Waiting: 0}, counts["/topics/a"]); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestRemoveFromHistory(t *testing.T) {
	t.Parallel()
	b := topics(t, []string{"a"})
	id := b.add("a", func(n *queue.New) { n.Payload = []byte(`"` + strings.Repeat("x", 1000) + `"`) })
	for range 2 { // first to history, then out of it
		if err := b.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Remove(t.Context(), id); !errors.Is(err, queue.ErrNoTask) {
		t.Errorf("Remove = %v, want %v", err, queue.ErrNoTask)
	}
	if page := b.list(view.JobListing{History: true, States: []task.State{task.Dropped}}); len(page) != 0 {
		t.Errorf("history = %v, want none", page)
	}
	if n := b.items("payload/" + id.UUID()); n != 0 {
		t.Errorf("%d payloads are left", n)
	}
}

// TestNoTaskHasATextThatIsNoID: whoever asks for it learns that.
func TestNoTaskHasATextThatIsNoID(t *testing.T) {
	t.Parallel()
	b := topics(t, []string{"a"})
	for _, id := range []task.ID{"", "x", task.ID(strings.Repeat("x", 40))} {
		_, got := b.Get(t.Context(), id)
		_, why := b.Why(t.Context(), id)
		_, stopped := b.Stop(t.Context(), id)
		_, again := b.Retry(t.Context(), nil, id)
		for name, err := range map[string]error{
			"Get": got, "Why": why, "Stop": stopped, "Retry": again, "Remove": b.Remove(t.Context(), id), "Drop": b.Drop(t.Context(), id),
		} {
			if !errors.Is(err, queue.ErrNoTask) {
				t.Errorf("%s(%q) = %v, want %v", name, id, err, queue.ErrNoTask)
			}
		}
		if s, err := b.Stored(t.Context(), id); err != nil || !s.Absent {
			t.Errorf("Stored(%q) = %v, %v, want none", id, s, err)
		}
	}
}

func TestSuccessLeavesNoHistoryUnlessKept(t *testing.T) {
	t.Parallel()
	b := topics(t, []string{"a", "kept"}, definition.Queue{Name: "k", Topics: []string{"kept"}, KeepJobs: true})
	gone, kept, window := b.add("a"), b.add("kept"), b.add("a", func(n *queue.New) { n.Unique, n.UniqueWindow = "w", time.Hour })
	leases := b.claim(10)
	for _, l := range leases {
		if _, err := b.Heartbeat(t.Context(), l.Token, queue.Beat{Lines: []tasklog.Line{{Message: "x"}}}); err != nil {
			t.Fatal(err)
		}
		if state := b.end(l, queue.Result{Outcome: queue.OK}); state != task.Succeeded {
			t.Errorf("state = %v", state)
		}
		_, err := b.Complete(t.Context(), l.Token, queue.Result{Outcome: queue.OK})
		if !errors.Is(err, queue.ErrStale) {
			t.Errorf("a second completion: %v, want %v", err, queue.ErrStale)
		}
	}
	for id, want := range map[task.ID]error{gone: queue.ErrNoTask, kept: nil, window: nil} {
		if _, err := b.Get(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("Get = %v, want %v", err, want)
		}
	}
	if b.items("log/"+gone.UUID()) != 0 || b.items("log/"+kept.UUID()) == 0 {
		t.Error("the log goes with its task, and only then")
	}
	if diff := cmp.Diff([]task.ID{window, kept}, b.list(view.JobListing{History: true, States: []task.State{task.Succeeded}})); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// list returns the ids of all pages of two.
func (b *bench) list(l view.JobListing) []task.ID {
	b.t.Helper()
	var ids []task.ID
	if l.Limit == 0 {
		l.Limit = 2
	}
	for {
		page, err := b.Jobs(b.t.Context(), l)
		if err != nil {
			b.t.Fatal(err)
		}
		for i := range page.Tasks {
			ids = append(ids, page.Tasks[i].ID)
		}
		if l.Cursor = page.Cursor; l.Cursor == "" {
			return ids
		}
	}
}

var (
	unfinished = []task.State{task.Waiting, task.Ready, task.Running}
	cancelled  = []task.State{task.Failed, task.Rejected, task.Stopped, task.Dropped}
)

func TestJobsAreListedOverAllTopics(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("t/%d", i))
	}
	b := topics(t, names)
	var all, ended []task.ID
	for i := range 160 {
		all = append(all, b.add(names[i%len(names)]))
	}
	if diff := cmp.Diff(all, b.list(view.JobListing{States: unfinished})); diff != "" {
		t.Errorf("unfinished (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]task.ID{all[7], all[47], all[87], all[127]}, b.list(view.JobListing{States: unfinished, Topic: "/topics/t/7"})); diff != "" {
		t.Errorf("of a topic (-want +got):\n%s", diff)
	}
	for _, i := range []int{5, 100, 3, 77, 78, 45} {
		b.clock.advance(time.Second)
		if err := b.Remove(t.Context(), all[i]); err != nil {
			t.Fatal(err)
		}
		ended = append([]task.ID{all[i]}, ended...)
	}
	if diff := cmp.Diff(ended, b.list(view.JobListing{History: true, States: cancelled})); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if got := b.list(view.JobListing{States: unfinished, Limit: 1000}); len(got) != 154 || slices.Contains(got, all[5]) {
		t.Errorf("%d are unfinished, want 154", len(got))
	}
	for _, cursor := range []string{"x", all[0].UUID() + "0", "00000000000000" + all[0].UUID()} {
		if _, err := b.Jobs(t.Context(), view.JobListing{Limit: 1, Cursor: cursor}); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

func TestARareMatchCostsPages(t *testing.T) {
	t.Parallel()
	b := topics(t, []string{"a"})
	var all []task.ID
	for range 300 {
		var news []queue.New
		for range queue.MaxBatch {
			news = append(news, queue.New{Dialect: task.Job, Job: "/topics/a"})
		}
		for _, added := range b.enqueue(news...) {
			all = append(all, added.Task.ID)
		}
	}
	rare := []task.ID{all[0], all[len(all)-100], all[len(all)-1]}
	l := view.JobListing{States: unfinished, Limit: 3, Match: func(t *task.Task) bool { return slices.Contains(rare, t.ID) }}
	page, err := b.Jobs(t.Context(), l)
	if err != nil || len(page.Tasks) != 1 || page.Cursor == "" {
		t.Fatalf("Jobs = %d, %q, %v, want the first and a cursor", len(page.Tasks), page.Cursor, err)
	}
	if diff := cmp.Diff(rare, b.list(l)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSuspend(t *testing.T) {
	t.Parallel()
	b := topics(t, []string{"a", "b"}, definition.Queue{Name: "q", Topics: []string{"a"}})
	id := b.add("a")
	for range 2 {
		if err := b.Suspend(t.Context(), "q", true); err != nil {
			t.Fatal(err)
		}
	}
	other := b.add("b")
	if leases := b.claim(10); len(leases) != 1 || leases[0].Task.ID != other {
		t.Errorf("%d leases, want that of the other queue", len(leases))
	}
	why, err := b.Why(t.Context(), id)
	if err != nil || why.Code != view.ReasonSuspended {
		t.Errorf("Why = %v, %v", why, err)
	}
	since, err := b.Suspended(t.Context())
	if err != nil || since["q"].IsZero() {
		t.Errorf("Suspended = %v, %v", since, err)
	}
	for range 2 {
		if err := b.Suspend(t.Context(), "q", false); err != nil {
			t.Fatal(err)
		}
	}
	if leases := b.claim(10); len(leases) != 1 || leases[0].Task.ID != id {
		t.Errorf("%d leases after the queue was resumed, want 1", len(leases))
	}
}

func TestPurge(t *testing.T) {
	t.Parallel()
	b := topics(t, []string{"a", "b"}, definition.Queue{Name: "q", Topics: []string{"a"}})
	b.add("a")
	running := b.claim(1)[0]
	for i := range 70 {
		b.add("a", func(n *queue.New) {
			if i%2 == 0 {
				n.NotBefore = b.clock.now().Add(time.Hour)
			}
			n.Unique = fmt.Sprint(i)
		})
	}
	other := b.add("b")
	if n, err := b.Purge(t.Context(), "q"); n != 70 || err != nil {
		t.Errorf("Purge = %d, %v, want 70", n, err)
	}
	if diff := cmp.Diff([]task.ID{running.Task.ID, other}, b.list(view.JobListing{States: unfinished})); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if got := b.list(view.JobListing{History: true, States: []task.State{task.Dropped}, Limit: 100}); len(got) != 70 {
		t.Errorf("%d are in the history, want 70", len(got))
	}
	if leases := b.claim(10); len(leases) != 1 || leases[0].Task.ID != other {
		t.Errorf("%d leases, want that of the other queue", len(leases))
	}
	b.end(running, queue.Result{Outcome: queue.OK})
}

// A purge whose write fails has dropped nothing, and counts nothing.
func TestAPurgeThatFailsCountsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := limited(t, 3, 1)
		close(s.first)
		s.away.Store(true)
		if n, err := q.Purge(t.Context(), "main"); n != 0 || !errors.Is(err, journal.ErrUnavailable) {
			t.Errorf("Purge = %d, %v, want 0 and %v", n, err, journal.ErrUnavailable)
		}
		s.away.Store(false)
		if n, err := q.Purge(t.Context(), "main"); n != 3 || err != nil {
			t.Errorf("Purge = %d, %v, want 3", n, err)
		}
	})
}
