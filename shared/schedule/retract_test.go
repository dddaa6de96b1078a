package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/schedule"
	"github.com/millrace/millrace/shared/task"
)

// leaving makes ticks ahead and calls act at 12:00:25, when those of :10 and :20 are due, the first of them runs, and those of :30
// to :15 of the next minute were made.
func leaving(t *testing.T, alone bool, act func(b *bed, s definition.Schedule)) *bed {
	t.Helper()
	b := setup(t)
	if !alone {
		b.store = shared{b.store}
	}
	s := every("s", "0/10 * * * * ?")
	b.declare(s)
	b.Scheduler = b.open(b.clock)
	if _, err := b.Make(t.Context(), b.now.Add(75*time.Second)); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(25 * time.Second)
	if leases, err := b.queue.Claim(t.Context(), queue.Claimer{Queues: []string{definition.MainQueue}}, 1); err != nil || len(leases) != 1 {
		t.Fatalf("Claim = %v, %v", leases, err)
	}
	act(b, s)
	return b
}

// declare puts schedules in force.
func (b *bed) declare(schedules ...definition.Schedule) {
	b.sets.set = &definition.Set{Schedules: schedules, Jobs: b.sets.set.Jobs}
}

func (b *bed) try(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// Ticks that were made ahead are withdrawn by a suspension, a removal or another expression; those that are due, or run, stay. A
// tick that was withdrawn can be made again when it is due after all.
func TestTicksMadeAheadLeave(t *testing.T) {
	t.Parallel()
	due := []string{"01 12:00:10", "01 12:00:20"}
	every20 := every("s", "5/20 * * * * ?")
	for name, test := range map[string]struct {
		act  func(b *bed, s definition.Schedule)
		want []string
	}{
		"suspended": {func(b *bed, _ definition.Schedule) { b.try(b.Suspend(t.Context(), "s", true)) }, due},
		"suspended and resumed": {func(b *bed, _ definition.Schedule) {
			b.try(b.Suspend(t.Context(), "s", true))
			b.now = b.now.Add(10 * time.Second)
			b.try(b.Suspend(t.Context(), "s", false))
			_, err := b.Make(t.Context(), b.now.Add(25*time.Second))
			b.try(err)
		}, append(due[:2:2], "01 12:00:40", "01 12:00:50", "01 12:01:00")},
		"removed": {func(b *bed, _ definition.Schedule) {
			b.declare()
			b.try(b.Redeclared(t.Context()))
		}, due},
		"removed by another process": {func(b *bed, s definition.Schedule) {
			b.declare(every("other", "0 0 0 1 1 ?"))
			_, err := b.open(b.clock).Make(t.Context(), b.now)
			b.try(err)
		}, due},
		"removed and declared again": {func(b *bed, s definition.Schedule) {
			b.declare()
			b.try(b.Redeclared(t.Context()))
			b.now = b.now.Add(10 * time.Minute)
			b.declare(s)
			_, err := b.Make(t.Context(), b.now.Add(10*time.Second))
			b.try(err)
		}, append(due[:2:2], "01 12:10:30")},
		"another expression": {func(b *bed, _ definition.Schedule) {
			b.declare(every20)
			_, err := b.Make(t.Context(), b.now.Add(40*time.Second))
			b.try(err)
		}, append(due[:2:2], "01 12:00:45", "01 12:01:05")},
		"another payload": {func(b *bed, s definition.Schedule) {
			s.Payload = json.RawMessage(`"new"`)
			b.declare(s)
			_, err := b.Make(t.Context(), b.now.Add(10*time.Second))
			b.try(err)
			for _, tick := range b.ticks(job)[2:] {
				if string(tick.Payload) != `"new"` {
					b.t.Errorf("a tick has the payload %s, want the new one", tick.Payload)
				}
			}
		}, append(due[:2:2], "01 12:00:30")},
	} {
		for way, alone := range map[string]bool{"alone": true, "shared": false} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				b := leaving(t, alone, test.act)
				if diff := cmp.Diff(test.want, b.created(job)); diff != "" {
					t.Errorf("ticks (-want +got):\n%s", diff)
				}
				before := len(b.created(job))
				b.now = b.now.Add(5 * time.Minute) // no tick is left that would be made again
				leases, err := b.queue.Claim(t.Context(), queue.Claimer{Queues: []string{definition.MainQueue}}, 20)
				if err != nil || len(leases) != before-1 {
					t.Errorf("%d ticks run later, %v, want %d", len(leases), err, before-1)
				}
			})
		}
	}
}

// A process that makes ticks while another suspends the schedule withdraws them.
func TestTicksMadeBesideASuspensionLeave(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := every("s", "0/10 * * * * ?")
	b.declare(s)
	if _, err := b.Make(t.Context(), b.now.Add(15*time.Second)); err != nil {
		t.Fatal(err)
	}
	beside := &besides{Queue: b.queue, act: func() { b.try(b.Suspend(t.Context(), "s", true)) }}
	if _, err := b.openOn(beside, b.clock).Make(t.Context(), b.now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := b.created(job); len(got) != 0 {
		t.Errorf("ticks %q of a schedule that is suspended", got)
	}
}

// perishing is an engine of a process that dies as soon as it has added tasks.
type perishing struct{ *queue.Queue }

var errDied = errors.New("died")

func (e perishing) Enqueue(ctx context.Context, once *queue.Once, news ...queue.New) (queue.Enqueued, error) {
	_, err := e.Queue.Enqueue(ctx, once, news...)
	return queue.Enqueued{}, errors.Join(errDied, err)
}

// A process makes ticks and dies before it has noted them: they leave with a suspension too.
func TestTicksThatNobodyHasNotedLeave(t *testing.T) {
	t.Parallel()
	for _, cron := range []string{"0/10 * * * * ?", "@every 10s"} {
		b := setup(t)
		b.declare(every("s", cron))
		if _, err := b.Make(t.Context(), b.now.Add(15*time.Second)); err != nil {
			t.Fatal(err)
		}
		before := b.created(job)
		b.now = b.now.Add(25 * time.Second)
		if _, err := b.openOn(perishing{b.queue}, b.clock).Make(t.Context(), b.now.Add(schedule.Ahead)); !errors.Is(err, errDied) {
			t.Fatalf("Make = %v", err)
		}
		if made := b.created(job); len(made) <= len(before) {
			t.Fatalf("%s: no tick was made by the process that died: %q", cron, made)
		}
		b.try(b.Suspend(t.Context(), "s", true))
		for _, tick := range b.ticks(job) {
			if tick.NotBefore > b.now.UnixMicro() {
				t.Errorf("%s: a tick at %v of a schedule that is suspended", cron, time.UnixMicro(tick.NotBefore).UTC())
			}
		}
	}
}

// A process that does not know the newest definitions yet does not withdraw the ticks that were made by them.
func TestAProcessThatIsBehindLeavesSchedulesAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	catalog := definition.OpenCatalog(definition.CatalogOptions{Store: b.store, Journal: b.journal, Now: b.clock})
	put := func(schedules ...definition.Schedule) *definition.Set {
		t.Helper()
		_, err := catalog.Apply(t.Context(), &definition.Set{Schedules: schedules, Jobs: b.sets.set.Jobs}, definition.FromFile)
		b.try(err)
		set, err := catalog.Refresh(t.Context())
		b.try(err)
		return set
	}
	old := put(every("s", "0/10 * * * * ?"), every("t", "0 0 0 1 1 ?"))
	b.sets.set = put(every("s", "0/20 * * * * ?"), every("u", "0/20 * * * * ?"))
	if _, err := b.Make(t.Context(), b.now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	want := b.created(job)
	b.sets.set = old
	if _, err := b.open(b.clock).Make(t.Context(), b.now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.created(job)); diff != "" || len(want) != 6 {
		t.Errorf("ticks after a look by the old definitions (-want +got):\n%s", diff)
	}
}

// A tick's task is created when it is made and ordered by the time at which it is to run.
func TestWhenATickWasMadeAndIsToRun(t *testing.T) {
	t.Parallel()
	b := setup(t, every("s", "0 0 * * * ?"))
	b.try(b.made(b.now))
	b.now = time.Date(2026, 3, 1, 12, 59, 10, 0, time.UTC)
	b.try(b.made(b.now.Add(time.Minute)))
	if _, err := b.Backfill(t.Context(), nil, "s", b.now.Add(-6*time.Hour), b.now.Add(-5*time.Hour)); err != nil {
		t.Fatal(err)
	}
	type times struct{ Created, RunAt string }
	text := func(micro int64) string { return time.UnixMicro(micro).UTC().Truncate(time.Second).Format("15:04:05") }
	var got []times
	for _, tick := range b.ticks(job) {
		got = append(got, times{text(tick.Created), text(tick.NotBefore)})
		if (tick.State == task.Waiting) != (tick.NotBefore > b.now.UnixMicro()) {
			t.Errorf("the tick of %s is %s", text(tick.NotBefore), tick.State)
		}
	}
	want := []times{{"12:59:10", "07:00:00"}, {"12:59:10", "13:00:00"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ticks (-want +got):\n%s", diff)
	}
}
