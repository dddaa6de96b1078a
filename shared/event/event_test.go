package event_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
)

// An id is a time stamp in microseconds.
func TestIDEncodesTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2016, 11, 4, 11, 7, 35, 827_000_999, time.FixedZone("", 3600))
	id := event.IDAt(at)
	if want := event.ID(1478254055827000); id != want {
		t.Errorf("IDAt(%v) = %d, want %d", at, id, want)
	}
	if diff := cmp.Diff("2016-11-04T10:07:35.827Z", id.Time().Format(time.RFC3339Nano)); diff != "" {
		t.Errorf("Time (-want +got):\n%s", diff)
	}
	if event.MaxID != 9007199254740992 {
		t.Errorf("MaxID = %d, want 2^53", event.MaxID)
	}
}

func TestEventAppendJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		e             event.Event
		with, without string
	}{
		{
			"order event of the seed",
			event.Event{ID: 1478257656624001, Type: "OrderStepStarted", Key: event.Key{Path: "/aFolder/test-ax,117"}, Fields: []byte(`"nodeId":"BB","taskId":"9"`)},
			`{"eventId":1478257656624001,"key":"/aFolder/test-ax,117","TYPE":"OrderStepStarted","nodeId":"BB","taskId":"9"}`,
			`{"eventId":1478257656624001,"TYPE":"OrderStepStarted","nodeId":"BB","taskId":"9"}`,
		},
		{
			"task event",
			event.Event{ID: 7, Type: "TaskStarted", Key: event.Key{Path: "/JOB", TaskID: "4711"}},
			`{"eventId":7,"key":{"jobPath":"/JOB","taskId":"4711"},"TYPE":"TaskStarted"}`,
			`{"eventId":7,"TYPE":"TaskStarted"}`,
		},
		{
			"scheduler event has no key",
			event.Event{ID: 7, Type: "SchedulerClosed"},
			`{"eventId":7,"TYPE":"SchedulerClosed"}`, `{"eventId":7,"TYPE":"SchedulerClosed"}`,
		},
		{
			"without id, as a client emits it",
			event.Event{Type: "Paid", Key: event.Key{Path: "a\"b\n\x01ü😀\xff"}},
			`{"key":"a\"b\n\u0001ü😀` + "\ufffd" + `","TYPE":"Paid"}`, `{"TYPE":"Paid"}`,
		},
	} {
		if diff := cmp.Diff(c.with, string(c.e.AppendJSON(nil, true))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.without, string(c.e.AppendJSON(nil, false))); diff != "" {
			t.Errorf("%s, without key (-want +got):\n%s", c.name, diff)
		}
		marshalled, err := json.Marshal(c.e)
		if err != nil || !json.Valid(marshalled) {
			t.Errorf("%s: json.Marshal = %s, %v", c.name, marshalled, err)
		}
		if size := c.e.Size(); size < len(c.with)-20 {
			t.Errorf("%s: Size = %d, but the JSON has %d bytes", c.name, size, len(c.with))
		}
	}
}

func TestEventAppendJSONDoesNotAllocate(t *testing.T) {
	seq := seqOf(t, 10)
	seq.Events[0].Key.TaskID = "9"
	dst := make([]byte, 0, 2*len(seq.AppendJSON(nil, true)))
	if n := testing.AllocsPerRun(100, func() { seq.AppendJSON(dst, true) }); n != 0 {
		t.Errorf("AppendJSON allocates %v times, want 0", n)
	}
}
