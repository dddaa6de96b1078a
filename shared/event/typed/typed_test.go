package typed_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/task"
)

var one = event.Key{Path: "/sources/S/C", TaskID: "S_C_019b76da-a800-7005-8000-000000000001"}

// golden has every event as it is on the journal, byte for byte: followers and stored journals depend on it.
var golden = []struct {
	of   any
	want string // its type and fields
}{
	{typed.TaskAdded{Queue: "main", Priority: -7}, `TaskAdded "queue":"main","priority":-7`},
	{typed.TaskAdded{Queue: "a \"b\"\\\t<&>é\u2028\u2029\U0001F600", Priority: 1 << 62, NotBefore: 1767225601000000},
		`TaskAdded "queue":"a \"b\"\\\t<&>é\u2028\u2029😀","priority":4611686018427387904,"notBefore":"2026-01-01T00:00:01.000000Z"`},
	{typed.TaskStarted{Attempt: 1}, `TaskStarted "attempt":1`},
	{typed.TaskStarted{Attempt: 12, Instance: "worker/0123"}, `TaskStarted "attempt":12,"instance":"worker/0123"`},
	{typed.TaskEnded{Outcome: typed.OK}, `TaskEnded "returnCode":0,"outcome":"ok"`},
	{typed.TaskEnded{Outcome: typed.Lost}, `TaskEnded "outcome":"lost"`},
	{typed.TaskEnded{Outcome: typed.Again, RetryAt: 1}, `TaskEnded "outcome":"again","retryAt":"1970-01-01T00:00:00.000001Z"`},
	{typed.TaskEnded{Outcome: typed.Failed, ReturnCode: -3, RetryAt: 1767225600123456},
		`TaskEnded "returnCode":-3,"outcome":"failed","retryAt":"2026-01-01T00:00:00.123456Z"`},
	{typed.TaskClosed{State: task.Rejected}, `TaskClosed "state":"rejected"`},
	{typed.TaskRemoved{}, `TaskRemoved `},
	{typed.TaskRemoved{State: task.Succeeded}, `TaskRemoved "state":"succeeded"`},
	{typed.JobStateChanged{State: "run"}, `JobStateChanged "state":"run"`},
	{typed.StreamAppended{Name: `ü "n"`, Sequence: 3, ID: "i", Producer: "p"},
		`StreamAppended "name":"ü \"n\"","sequence":3,"id":"i","producer":"p"`},
	{typed.ScheduleFired{Ticks: 2, From: at(1), At: at(2)},
		`ScheduleFired "ticks":2,"from":"2026-01-01T00:00:01.000000Z","at":"2026-01-01T00:00:02.000000Z"`},
	{typed.ScheduleDue{At: 1767225601000000}, `ScheduleDue "at":"2026-01-01T00:00:01.000000Z"`},
	{typed.ScheduleMissed{From: at(1), To: at(2), Misfire: "once"},
		`ScheduleMissed "from":"2026-01-01T00:00:01.000000Z","to":"2026-01-01T00:00:02.000000Z","misfire":"once"`},
	{typed.ScheduleSkipped{At: 1767225601000000, Reason: "the one before was still running"},
		`ScheduleSkipped "at":"2026-01-01T00:00:01.000000Z","reason":"the one before was still running"`},
}

// at returns a time that is not in UTC.
func at(second int64) time.Time {
	return time.Unix(1767225600+second, 0).In(time.FixedZone("", 3600))
}

// written returns the event of a type of the package.
func written(of any) event.Event {
	switch of := of.(type) {
	case interface{ Event(event.Key) event.Event }:
		return of.Event(one)
	case interface{ Event(string) event.Event }:
		return of.Event("n")
	}
	panic(of)
}

// read returns what the package reads of an event; nil if the program reads none of its type.
func read(e *event.Event) any {
	switch e.Type {
	case event.TaskAdded:
		return typed.ReadTaskAdded(e)
	case event.TaskStarted:
		return typed.ReadTaskStarted(e)
	case event.TaskEnded:
		return typed.ReadTaskEnded(e)
	case event.TaskClosed:
		return typed.ReadTaskClosed(e)
	case event.TaskRemoved:
		return typed.ReadTaskRemoved(e)
	case event.JobStateChanged:
		return typed.ReadJobStateChanged(e)
	case event.StreamAppended:
		return typed.ReadStreamAppended(e)
	}
	return nil
}

func TestEventsKeepTheirForm(t *testing.T) {
	t.Parallel()
	for _, g := range golden {
		got := written(g.of)
		if diff := cmp.Diff(g.want, got.Type+" "+string(got.Fields)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", g.of, diff)
		}
		key := one
		switch event.FamilyOf(got.Type) {
		case event.JobEvent, event.StreamEvent:
			key = event.Key{Path: "n"}
		case event.CustomEvent:
			key = event.Key{Path: "Schedule:/n"}
		}
		if got.Key != key || got.ID != 0 {
			t.Errorf("%s has the key %v and the id %d, want %v and 0", got.Type, got.Key, got.ID, key)
		}
	}
}

func TestEventsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	for _, g := range golden {
		e := written(g.of)
		if read(&e) == nil {
			continue
		}
		if diff := cmp.Diff(g.of, read(&e)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", g.want, diff)
		}
		const unknown = `"x":{"state":"running","outcome":["ok"]},"y":"\",\"attempt\":7"`
		if len(e.Fields) > 0 {
			e.Fields = append(append([]byte(unknown+","), e.Fields...), `,"z":null`...)
		} else {
			e.Fields = []byte(unknown)
		}
		if diff := cmp.Diff(g.of, read(&e)); diff != "" {
			t.Errorf("%s, with fields that are not known (-want +got):\n%s", g.want, diff)
		}
	}
}

// Fields of wrong types are left out, and what is no JSON does no harm.
func TestWrongFieldsAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{
		`"queue":7,"priority":"high","notBefore":true,"attempt":1.5,"instance":{},"returnCode":null,"outcome":[],"retryAt":"soon","state":1,"name":0`,
		`"state`, `"state":`, `"state":"`, `state`, `:`, `,`, `"`, `\`, `"\`, `{`, `"attempt":9999999999999999999`,
	} {
		for _, kind := range slices.Concat(event.TypesOf(event.TaskEvent), []string{event.JobStateChanged, event.StreamAppended}) {
			got, none := read(&event.Event{Type: kind, Fields: []byte(fields)}), read(&event.Event{Type: kind})
			if diff := cmp.Diff(none, got); diff != "" {
				t.Errorf("%s of %s (-want +got):\n%s", kind, fields, diff)
			}
		}
	}
}

// Folds read every event of tasks, so that reading must not allocate more than the texts that it returns.
func TestReadingIsCheap(t *testing.T) {
	e := typed.TaskEnded{Outcome: typed.Failed, ReturnCode: 3, RetryAt: 1767225600123456}.Event(one)
	c := typed.TaskClosed{State: task.Succeeded}.Event(one)
	if n := testing.AllocsPerRun(100, func() { typed.ReadTaskEnded(&e); typed.ReadTaskClosed(&c) }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestWritingIsCheap(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		typed.TaskEnded{Outcome: typed.Failed, ReturnCode: 3, RetryAt: 1767225600123456}.Event(one)
	}); n > 1 {
		t.Errorf("%v allocations, want one, of the fields", n)
	}
}
