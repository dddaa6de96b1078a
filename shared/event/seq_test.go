package event_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
)

// seedSeqs are the variants with their JSON; the events are those of an example of JobScheduler's event API.
var seedSeqs = []struct {
	seq  event.Seq
	text string
}{
	{
		event.Seq{Kind: event.NonEmpty, EventID: 1478257702567000, Events: []event.Event{
			{ID: 1478257656606001, Type: "OrderStepEnded", Key: event.Key{Path: "/aFolder/test-ax,117"}, Fields: []byte(`"nodeTransition":{"TYPE":"Success"}`)},
			{ID: 1478257656606004, Type: "OrderNodeChanged", Key: event.Key{Path: "/aFolder/test-ax,117"}, Fields: []byte(`"fromNodeId":"A","nodeId":"BB"`)},
		}},
		`{"TYPE":"NonEmpty","eventId":1478257702567000,"eventSnapshots":[` +
			`{"eventId":1478257656606001,"key":"/aFolder/test-ax,117","TYPE":"OrderStepEnded","nodeTransition":{"TYPE":"Success"}},` +
			`{"eventId":1478257656606004,"key":"/aFolder/test-ax,117","TYPE":"OrderNodeChanged","fromNodeId":"A","nodeId":"BB"}]}`,
	},
	{
		event.Seq{Kind: event.Empty, EventID: 1478257702567000, LastEventID: 1478257656606004},
		`{"TYPE":"Empty","eventId":1478257702567000,"lastEventId":1478257656606004}`,
	},
	{
		event.Seq{Kind: event.Empty, EventID: 1478257702567000},
		`{"TYPE":"Empty","eventId":1478257702567000,"lastEventId":0}`,
	},
	{
		event.Seq{Kind: event.Torn, EventID: 1478257702567000},
		`{"TYPE":"Torn","eventId":1478257702567000}`,
	},
}

func TestSeqAppendJSON(t *testing.T) {
	t.Parallel()
	for _, c := range seedSeqs {
		got := c.seq.AppendJSON([]byte("before "), true)
		if diff := cmp.Diff("before "+c.text, string(got)); diff != "" {
			t.Errorf("AppendJSON (-want +got):\n%s", diff)
		}
	}
}

func TestSeqAppendJSONWithoutKeys(t *testing.T) {
	t.Parallel()
	seq := event.Seq{Kind: event.NonEmpty, EventID: 3, Events: []event.Event{{ID: 2, Type: "Paid", Key: event.Key{Path: "/a"}}}}
	want := `{"TYPE":"NonEmpty","eventId":3,"eventSnapshots":[{"eventId":2,"TYPE":"Paid"}]}`
	if diff := cmp.Diff(want, string(seq.AppendJSON(nil, false))); diff != "" {
		t.Errorf("AppendJSON (-want +got):\n%s", diff)
	}
}

func TestParseSeq(t *testing.T) {
	t.Parallel()
	for _, c := range seedSeqs {
		got, err := event.ParseSeq([]byte(c.text))
		if err != nil {
			t.Errorf("ParseSeq(%s) = %v", c.text, err)
		}
		if diff := cmp.Diff(c.seq, got); diff != "" {
			t.Errorf("ParseSeq(%s) (-want +got):\n%s", c.text, diff)
		}
	}
	if _, err := event.ParseSeq([]byte(`{"TYPE":"Torn","eventId":1,"later":{"a":[1]}}`)); err != nil {
		t.Errorf("ParseSeq with an unknown member = %v, want nil", err)
	}
}

func TestParseSeqRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{`:                                   "answer: is not valid JSON, at offset 1 (line 1, column 2): it ends too early",
		`[]`:                                  "answer: must be an object, not an array",
		`{}`:                                  "answer.TYPE: is missing",
		`{"TYPE":"Half"}`:                     `answer.TYPE: is "Half": NonEmpty, Empty and Torn are known`,
		`{"TYPE":7}`:                          "answer.TYPE: must be a string, not a number",
		`{"TYPE":"NonEmpty"}`:                 "answer.eventSnapshots: has 0 events, in an answer of TYPE NonEmpty",
		`{"TYPE":"Empty","lastEventId":null}`: "answer.lastEventId: null is not an EventId: a whole number from 0 to 2^53",
		`{"TYPE":"NonEmpty","eventSnapshots":{}}`:                        "answer.eventSnapshots: must be an array, not an object",
		`{"TYPE":"NonEmpty","eventSnapshots":[{"TYPE":"a"},{"TYPE":1}]}`: "answer.eventSnapshots[1].TYPE: must be a string, not a number",
		`{"TYPE":"Torn","eventSnapshots":[{"TYPE":"a"}]}`:                "answer.eventSnapshots: has 1 events, in an answer of TYPE Torn",
	} {
		_, err := event.ParseSeq([]byte(text))
		if event.ReasonOf(err) != event.Invalid {
			t.Errorf("ParseSeq(%s) = %v, want Invalid", text, err)
			continue
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("ParseSeq(%s) (-want +got):\n%s", text, diff)
		}
	}
}
