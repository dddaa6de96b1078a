package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/schedule"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// declared is the set in force, until a test puts another in its place.
type declared struct{ set *definition.Set }

func (d *declared) Current(context.Context) (*definition.Set, error) { return d.set, nil }

// bed is a scheduler on a store, with a clock set by hand.
type bed struct {
	t       *testing.T
	store   store.Store
	journal *journal.Journal
	queue   *queue.Queue
	sets    *declared
	now     time.Time
	*schedule.Scheduler
}

const job = "/job"

func setup(t *testing.T, schedules ...definition.Schedule) *bed {
	t.Helper()
	b := &bed{t: t, store: memory.New(memory.Options{}), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	b.sets = &declared{&definition.Set{
		Schedules: schedules,
		Jobs:      []definition.Job{{Path: job, Target: definition.Target{Go: "f"}}},
		Sources: map[string]definition.Source{"s": {
			Target: definition.Target{Go: "f"}, Collections: []definition.Collection{{Name: "c", Schedule: "* * * * * ?"}, {Name: "d"}},
		}},
	}}
	b.journal = journal.Open(b.store, journal.Options{Now: b.clock, Folds: projection.Folds()})
	t.Cleanup(func() { _ = b.journal.Close() })
	b.queue = queue.Open(queue.Options{Store: b.store, Journal: b.journal, Definitions: b.sets, Now: b.clock})
	b.Scheduler = b.open(b.clock)
	return b
}

func (b *bed) clock() time.Time { return b.now }

// open returns the scheduler of one more process, with a clock of its own.
func (b *bed) open(now func() time.Time) *schedule.Scheduler { return b.openOn(b.queue, now) }

// openOn is open, with an engine of its own.
func (b *bed) openOn(q schedule.Engine, now func() time.Time) *schedule.Scheduler {
	return schedule.Open(schedule.Options{Store: b.store, Journal: b.journal, Queue: q, Definitions: b.sets, Now: now})
}

// besides is an engine that calls a function once tasks were added.
type besides struct {
	*queue.Queue
	act func()
}

func (e *besides) Enqueue(ctx context.Context, once *queue.Once, news ...queue.New) (queue.Enqueued, error) {
	answer, err := e.Queue.Enqueue(ctx, once, news...)
	if e.act != nil {
		e.act()
		e.act = nil
	}
	return answer, err
}

// made makes the ticks that fall due until a time.
func (b *bed) made(until time.Time) error {
	_, err := b.Make(b.t.Context(), until)
	return err
}

// look makes the ticks that fall due in the next minute.
func (b *bed) look() schedule.Made {
	b.t.Helper()
	made, err := b.Make(b.t.Context(), b.now.Add(time.Minute))
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

// ticks returns the tasks of a group, in the order of their ticks.
func (b *bed) ticks(group string) (all []task.Task) {
	b.t.Helper()
	for l := (view.Listing{Group: group, Limit: 1000}); ; {
		page, err := b.queue.List(b.t.Context(), l)
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, page.Tasks...)
		if l.Cursor = page.Cursor; l.Cursor == "" {
			return all
		}
	}
}

// created returns the times of a group's ticks, in order.
func (b *bed) created(group string) (times []string) {
	b.t.Helper()
	for _, t := range b.ticks(group) {
		times = append(times, time.UnixMicro(t.ID.Time()).UTC().Format("02 15:04:05"))
	}
	return times
}

// events returns the journal's events of a schedule, by type and fields.
func (b *bed) events(name string) (all []string) {
	b.t.Helper()
	answer, err := b.journal.ReadAfter(b.t.Context(), journal.Request{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range answer.Events {
		if e.Key == (event.Key{Path: "Schedule:/" + name}) {
			all = append(all, e.Type+" "+string(e.Fields))
		}
	}
	return all
}

func every(name, cron string, change ...func(*definition.Schedule)) definition.Schedule {
	s := definition.Schedule{Name: name, Cron: cron, Job: job, Payload: json.RawMessage(`{"n":1}`)}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestTicksOfTheComingMinuteAreTasksThatWaitForTheirTime(t *testing.T) {
	t.Parallel()
	b := setup(t, every("s", "0/20 * * * * ?"))
	b.look()
	want := []string{"01 12:00:20", "01 12:00:40", "01 12:01:00"}
	if diff := cmp.Diff(want, b.created(job)); diff != "" {
		t.Errorf("ticks (-want +got):\n%s", diff)
	}
	b.now = b.now.Add(20 * time.Second)
	leases, err := b.queue.Claim(t.Context(), queue.Claimer{}, 10)
	started := 0
	for _, l := range leases {
		if l.Task.Job == job {
			started++
		}
	}
	if err != nil || started != 1 {
		t.Errorf("Claim after 20 s started %d ticks, %v, want 1", started, err)
	}
}

func TestTenAtOnceMakeEachTickOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, every("s", "* * * * * ?", func(s *definition.Schedule) { s.Misfire = schedule.MisfireAll }))
	b.look()
	for range 5 {
		b.now = b.now.Add(time.Minute)
		var group sync.WaitGroup
		for i := range 10 {
			now := b.now.Add(time.Duration(i) * 3 * time.Second)
			other := b.open(func() time.Time { return now })
			group.Go(func() {
				if _, err := other.Make(t.Context(), now.Add(time.Minute)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	b.now = b.now.Add(27 * time.Second)
	b.look() // of those at once any may have won, and the others have yielded
	times := b.created(job)
	seen := map[string]bool{}
	for _, at := range times {
		if seen[at] {
			t.Errorf("the tick of %s was made twice", at)
		}
		seen[at] = true
	}
	if want := 6*60 + 27; len(times) != want {
		t.Errorf("%d ticks, want %d: one for each second up to the latest look's end", len(times), want)
	}
}

// dying is a store whose process ends with its nth call: before the store gets it, or after, when the response is lost.
type dying struct {
	store.Store
	mu   sync.Mutex
	left int
	lost bool
}

var errDead = fmt.Errorf("%w: the process is dead", store.ErrUnavailable)

// spend reports whether this call is made, and whether its response arrives.
func (d *dying) spend() (made, heard bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left--
	return d.left > 0 || d.left == 0 && d.lost, d.left > 0
}

func (d *dying) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	if _, heard := d.spend(); !heard {
		return nil, errDead
	}
	return d.Store.Get(ctx, keys...)
}

func (d *dying) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if _, heard := d.spend(); !heard {
		return store.Page{}, errDead
	}
	return d.Store.Query(ctx, r)
}

func (d *dying) Write(ctx context.Context, w store.Write) error {
	made, heard := d.spend()
	if !made {
		return errDead
	}
	if err := d.Store.Write(ctx, w); err != nil || heard {
		return err
	}
	return errDead
}

func (d *dying) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	if _, heard := d.spend(); !heard {
		return store.Ticket{}, errDead
	}
	return d.Store.Reserve(ctx, key, ids, now)
}

// A process that makes ticks may end between any two calls to the store, or before a response arrives: the next look makes the
// missing ticks, and none twice.
func TestKilledBetweenAnyTwoCalls(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		for calls := 1; ; calls++ {
			b := setup(t, every("s", "0/7 * * * * ?"), every("u", "0/20 * * * * ?", func(s *definition.Schedule) { s.Job = "/sources/s/d" }))
			b.look()
			b.now = b.now.Add(time.Minute)
			d := &dying{Store: b.store, left: calls, lost: lost}
			j := journal.Open(d, journal.Options{Now: b.clock, Folds: projection.Folds()})
			q := queue.Open(queue.Options{Store: d, Journal: j, Definitions: b.sets, Now: b.clock})
			dead := schedule.Open(schedule.Options{Store: d, Journal: j, Queue: q, Definitions: b.sets, Now: b.clock})
			_, err := dead.Make(t.Context(), b.now.Add(time.Minute))
			_ = j.Close()
			b.look()
			if got, want := len(b.created(job)), 18; got != want {
				t.Fatalf("killed at call %d (answer lost: %v): %d ticks, want %d: %q", calls, lost, got, want, b.created(job))
			}
			if err == nil {
				break // it came to its end
			}
		}
	}
}

func TestACollectionTicksWhenItsTurnComesAndOverlapsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.look()
	claim := func() []queue.Lease {
		t.Helper()
		leases, err := b.queue.Claim(t.Context(), queue.Claimer{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		return leases
	}
	b.now = b.now.Add(time.Second)
	first := claim()
	if len(first) != 1 {
		t.Fatalf("%d tasks started after a second, want 1", len(first))
	}
	b.now = b.now.Add(time.Second)
	if second := claim(); len(second) != 0 {
		t.Errorf("%d tasks started while the one before runs, want none", len(second))
	}
	byHand, err := b.queue.Enqueue(t.Context(), nil, queue.SyncTask("s", "c", 300))
	if err != nil || !byHand.Tasks[0].Existing || byHand.Tasks[0].Task.ID != first[0].Task.ID {
		t.Errorf("a request by hand = %+v, %v, want the task that runs", byHand, err)
	}
	if _, err := b.queue.Complete(t.Context(), first[0].Token, queue.Result{Outcome: queue.OK}); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(time.Second)
	if third := claim(); len(third) != 1 || third[0].Task.Priority != schedule.PriorityBySchedule {
		t.Errorf("after the end %d tasks started, want the next tick", len(third))
	}
	b.told(t, "ScheduleFired", "ScheduleDue", "ScheduleSkipped", "ScheduleDue")
}

// Ticks of a collection that are asked for together run one after the other.
func TestABackfillOfACollection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made, err := b.Backfill(t.Context(), nil, "sources/s/c", b.now.Add(-4*time.Second), b.now)
	if err != nil || made.Ticks != 5 {
		t.Fatalf("%d ticks, %v, want 5", made.Ticks, err)
	}
	for n := range made.Ticks {
		leases, err := b.queue.Claim(t.Context(), queue.Claimer{}, 1)
		if err != nil || len(leases) != 1 {
			t.Fatalf("%d ticks run as the tick %d, %v", len(leases), n, err)
		}
		if _, err := b.queue.Complete(t.Context(), leases[0].Token, queue.Result{Outcome: queue.OK}); err != nil {
			t.Fatal(err)
		}
	}
}

// told compares the types of the events of the collection.
func (b *bed) told(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, e := range b.events("sources/s/c") {
		name, _, _ := strings.Cut(e, " ")
		got = append(got, name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A tick that nobody claims is the one task of its collection from its time on, and those after it are dropped at theirs.
func TestADueTickIsTheOneTaskOfItsCollection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.look()
	byHand := func() queue.Added {
		t.Helper()
		e, err := b.queue.Enqueue(t.Context(), nil, queue.SyncTask("s", "c", 300))
		if err != nil {
			t.Fatal(err)
		}
		return e.Tasks[0]
	}
	later := func() {
		t.Helper()
		b.now = b.now.Add(time.Second)
		if _, err := b.queue.Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	later()
	tick := byHand()
	if !tick.Existing || tick.Task.Schedule == "" {
		t.Fatalf("a request by hand = %+v, want the tick that is due", tick)
	}
	later()
	if again := byHand(); again.Task.ID != tick.Task.ID {
		t.Errorf("a request by hand = %+v, want the tick that was due first", again)
	}
	b.told(t, "ScheduleFired", "ScheduleDue", "ScheduleSkipped")
	if _, err := b.queue.Stop(t.Context(), tick.Task.ID); err != nil {
		t.Fatal(err)
	}
	mine := byHand()
	if mine.Existing {
		t.Errorf("a request by hand = %+v, want a task of its own, since the tick was stopped", mine)
	}
	later()
	b.told(t, "ScheduleFired", "ScheduleDue", "ScheduleSkipped", "ScheduleSkipped")
	leases, err := b.queue.Claim(t.Context(), queue.Claimer{}, 10)
	if err != nil || len(leases) != 1 || leases[0].Task.ID != mine.Task.ID {
		t.Errorf("%v are started, %v, want the task that was asked for", leases, err)
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	for overlap, want := range map[string]struct{ Together, Later int }{
		"": {3, 0}, schedule.OverlapAllow: {3, 0}, schedule.OverlapSkip: {1, 0}, schedule.OverlapQueue: {1, 1},
	} {
		t.Run("overlap "+overlap, func(t *testing.T) {
			t.Parallel()
			b := setup(t, every("s", "0/20 * * * * ?", func(s *definition.Schedule) { s.Overlap = overlap }))
			b.look()
			b.now = b.now.Add(time.Minute)
			running, err := b.queue.Claim(t.Context(), queue.Claimer{Queues: []string{definition.MainQueue}}, 10)
			if err != nil || len(running) != want.Together {
				t.Fatalf("%d ticks run at once, %v, want %d", len(running), err, want.Together)
			}
			if _, err := b.queue.Complete(t.Context(), running[0].Token, queue.Result{Outcome: queue.OK}); err != nil {
				t.Fatal(err)
			}
			next, err := b.queue.Claim(t.Context(), queue.Claimer{Queues: []string{definition.MainQueue}}, 10)
			if err != nil || len(next) != want.Later {
				t.Errorf("%d ticks run after the first has ended, %v, want %d", len(next), err, want.Later)
			}
		})
	}
}

func TestSuspendResumeTriggerBackfill(t *testing.T) {
	t.Parallel()
	b := setup(t, every("s", "0 0 * * * ?"))
	ctx := t.Context()
	b.look()
	if err := b.Suspend(ctx, "s", true); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(3 * time.Hour)
	b.look()
	if got := b.created(job); len(got) != 0 {
		t.Errorf("ticks of a suspended schedule: %q", got)
	}
	if err := errors.Join(b.Suspend(ctx, "s", false), b.Suspend(ctx, "s", false)); err != nil {
		t.Fatal(err)
	}
	b.look()
	if got := b.created(job); len(got) != 0 {
		t.Errorf("ticks that passed meanwhile were made up for: %q", got)
	}
	st, err := b.Get(ctx, "s")
	if err != nil || len(st.Next) != 5 || !st.Next[0].Equal(b.now.Add(time.Hour)) {
		t.Errorf("Get = %+v, %v", st, err)
	}
	if _, err := b.Trigger(ctx, nil, "s"); err != nil || len(b.created(job)) != 1 {
		t.Errorf("Trigger: %v, tasks %q", err, b.created(job))
	}
	n, err := b.Backfill(ctx, nil, "s", b.now.Add(-2*time.Hour), b.now)
	again, againErr := b.Backfill(ctx, nil, "s", b.now.Add(-2*time.Hour), b.now)
	if n.Ticks != 3 || again.Ticks != 0 || err != nil || againErr != nil || len(b.created(job)) != 4 {
		t.Errorf("Backfill = %+v and %+v, %v, %v, tasks %q, want both ends, and once", n, again, err, againErr, b.created(job))
	}
	for name, r := range map[string][2]time.Time{
		"backwards": {b.now, b.now.Add(-time.Hour)}, "future": {b.now, b.now.Add(time.Hour)},
		"empty": {b.now.Add(-30 * time.Minute), b.now.Add(-20 * time.Minute)}, "huge": {b.now.AddDate(-1, 0, 0), b.now},
	} {
		if _, err := b.Backfill(ctx, nil, "s", r[0], r[1]); !errors.Is(err, schedule.ErrRange) {
			t.Errorf("Backfill(%s) = %v, want %v", name, err, schedule.ErrRange)
		}
	}
	if _, err := b.Get(ctx, "nope"); !errors.Is(err, schedule.ErrNoSchedule) {
		t.Errorf("Get(unknown) = %v, want %v", err, schedule.ErrNoSchedule)
	}
}

// As in Dark, a cron handler that never ran is due; then it is due an interval after it ran last, and ticks that were missed are
// not made.
func TestACronHandlerCountsFromItsLastRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	handler := definition.Handler{Canvas: "c", Space: "CRON", Name: "h", Interval: "Every 1hr", Target: definition.Target{Go: "f"}}
	b.sets.set = &definition.Set{Handlers: []definition.Handler{handler}}
	b.look()
	var group sync.WaitGroup
	for i := range 4 { // several processes find out at once that it never ran
		now := b.now.Add(time.Duration(i) * time.Second)
		other := b.open(func() time.Time { return now })
		group.Go(func() {
			if _, err := other.Make(t.Context(), now.Add(time.Minute)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, later := range []time.Duration{59 * time.Minute, 2 * time.Minute, 5*time.Hour + 30*time.Minute, 59 * time.Minute} {
		b.now = b.now.Add(later)
		b.look()
	}
	want := []string{"01 12:00:00", "01 13:00:00", "01 14:00:00", "01 19:31:00"}
	if diff := cmp.Diff(want, b.created(handler.Path())); diff != "" {
		t.Errorf("ticks (-want +got):\n%s", diff)
	}
}

func TestADateFiresOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, definition.Schedule{Name: "s", Date: time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC), Job: job})
	before, err := b.Get(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		b.look()
		b.now = b.now.Add(time.Minute)
	}
	if diff := cmp.Diff([]string{"01 12:30:00"}, b.created(job)); diff != "" {
		t.Errorf("ticks (-want +got):\n%s", diff)
	}
	after, err := b.Get(t.Context(), "s")
	if want := "it never fires again: its only time was 2026-03-01T12:30:00Z"; err != nil || len(before.Warnings) != 0 ||
		len(after.Warnings) != 1 || after.Warnings[0] != want {
		t.Errorf("warnings before %q and after %q, %v, want none and %q", before.Warnings, after.Warnings, err, want)
	}
}

func TestOneBrokenScheduleStopsNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t, every("bad", "nonsense"), every("zone", "@hourly", func(s *definition.Schedule) { s.Timezone = "No/Where" }),
		every("good", "0/30 * * * * ?"))
	b.look()
	if got := b.created(job); len(got) != 2 {
		t.Errorf("ticks %q, want the good schedule's two", got)
	}
}

// counting is a store that counts calls.
type counting struct {
	store.Store
	mu              sync.Mutex
	queries, writes int
}

func (c *counting) Query(ctx context.Context, r store.Range) (store.Page, error) {
	c.mu.Lock()
	c.queries++
	c.mu.Unlock()
	return c.Store.Query(ctx, r)
}

func (c *counting) Write(ctx context.Context, w store.Write) error {
	c.mu.Lock()
	c.writes++
	c.mu.Unlock()
	return c.Store.Write(ctx, w)
}

// Schedules that do not fire are read together: 10,000 of them in pages, and nothing is written.
func TestTenThousandSchedulesThatRestCostOneReading(t *testing.T) {
	t.Parallel()
	schedules := make([]definition.Schedule, 10_000)
	for i := range schedules {
		schedules[i] = every(fmt.Sprintf("s%05d", i), "0 0 0 1 1 ?")
	}
	b := setup(t)
	b.sets.set = &definition.Set{Schedules: schedules}
	b.look() // stores when each began
	c := &counting{Store: b.store}
	b.store = c
	s := b.open(b.clock)
	if _, err := s.Make(t.Context(), b.now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if c.writes != 0 || c.queries > 4 {
		t.Errorf("%d writes and %d queries, want none and at most 4", c.writes, c.queries)
	}
}
