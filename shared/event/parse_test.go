package event_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
)

func TestParseEventReadsWhatAppendJSONWrites(t *testing.T) {
	t.Parallel()
	for _, want := range []event.Event{
		{ID: 1478257656624001, Type: "OrderStepStarted", Key: event.Key{Path: "/aFolder/test-ax,117"}, Fields: []byte(`"nodeId":"BB","taskId":"9"`)},
		{ID: event.MaxID, Type: "TaskStarted", Key: event.Key{Path: "/JOB", TaskID: "4711"}},
		{ID: 1, Type: "FileBasedAdded", Key: event.Key{Path: "Job:/TEST"}},
		{ID: 1, Type: "SchedulerStateChanged", Fields: []byte(`"state":"running"`)},
		{Type: "Paid", Key: event.Key{Path: "\"\\\n\u0001😀"}, Fields: []byte(`"a":{"key":1},"b":[{"TYPE":2}]`)},
	} {
		text := want.AppendJSON(nil, true)
		got, err := event.ParseEvent(text)
		if err != nil {
			t.Errorf("ParseEvent(%s) = %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParseEvent(%s) (-want +got):\n%s", text, diff)
		}
		var unmarshalled event.Event
		if err := json.Unmarshal(text, &unmarshalled); err != nil || !cmp.Equal(want, unmarshalled) {
			t.Errorf("json.Unmarshal(%s) = %v, %v", text, unmarshalled, err)
		}
	}
}

func TestParseEventRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                           "event: is empty: JSON is needed",
		`[]`:                         "event: must be an object, not an array",
		`{}`:                         "event.TYPE: is missing or empty",
		`{"TYPE":""}`:                "event.TYPE: is missing or empty",
		`{"TYPE":null}`:              "event.TYPE: must be a string, not null",
		`{"TYPE":"a","eventId":"1"}`: `event.eventId: "1" is not an EventId: a whole number from 0 to 2^53`,
		`{"TYPE":"a","eventId":1.5}`: `event.eventId: 1.5 is not an EventId: a whole number from 0 to 2^53`,
		`{"TYPE":"a","eventId":-1}`:  `event.eventId: -1 is not an EventId: a whole number from 0 to 2^53`,
		`{"TYPE":"a","eventId":9007199254740993}`:       `event.eventId: 9007199254740993 is not an EventId: a whole number from 0 to 2^53`,
		`{"TYPE":"a","key":1}`:                          "event.key: must be an object, not a number",
		`{"TYPE":"a","key":{"jobPath":"/a"}}`:           "event.key.taskId: is missing or empty, in the key of a task",
		`{"TYPE":"a","key":{"jobPath":1,"taskId":"1"}}`: "event.key.jobPath: must be a string, not a number",
		`{"TYPE":"a","a":1,"a":2}`:                      "event.a: is not valid JSON, at offset 18 (line 1, column 19): duplicate object member name",
	} {
		_, err := event.ParseEvent([]byte(text))
		if event.ReasonOf(err) != event.Invalid {
			t.Errorf("ParseEvent(%s) = %v, want Invalid", text, err)
			continue
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("ParseEvent(%s) (-want +got):\n%s", text, diff)
		}
	}
	var e event.Event
	if err := json.Unmarshal([]byte(`{"TYPE":1}`), &e); event.ReasonOf(err) != event.Invalid {
		t.Errorf("json.Unmarshal = %v, want Invalid", err)
	}
}
