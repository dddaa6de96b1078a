package event_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
)

func TestCause(t *testing.T) {
	t.Parallel()
	type parts struct {
		ID       event.ID
		Position int64
		Before   int
	}
	for name, test := range map[string]struct {
		cause event.Cause
		want  parts
	}{
		"none":                {0, parts{}},
		"an id":               {event.CausedBy(1_478_257_655_827_000), parts{ID: 1_478_257_655_827_000}},
		"the largest id":      {event.CausedBy(event.MaxID), parts{ID: event.MaxID}},
		"no id":               {event.CausedBy(0), parts{}},
		"a position":          {event.CausedAt(7), parts{Position: 7}},
		"no position":         {event.CausedAt(0), parts{}},
		"below all positions": {event.CausedAt(-1), parts{}},
		"the one before":      {event.CausedBefore(1), parts{Before: 1}},
		"far before":          {event.CausedBefore(10_000), parts{Before: 10_000}},
	} {
		if diff := cmp.Diff(test.want, parts{test.cause.ID(), test.cause.Position(), test.cause.Before()}); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// What a server shows with its cause, a client reads back.
func TestOriginInJSON(t *testing.T) {
	t.Parallel()
	key := event.Key{Path: "/k"}
	for name, test := range map[string]struct {
		event event.Event
		want  string
	}{
		"both":         {event.Event{ID: 9, Type: "T", Key: key, Fields: []byte(`"n":1`), Cause: event.CausedBy(8), By: `c"i`}, `{"eventId":9,"key":"/k","TYPE":"T","cause":8,"by":"c\"i","n":1}`},
		"cause":        {event.Event{ID: 9, Type: "T", Cause: event.CausedBy(8)}, `{"eventId":9,"TYPE":"T","cause":8}`},
		"actor":        {event.Event{ID: 9, Type: "T", By: "ci"}, `{"eventId":9,"TYPE":"T","by":"ci"}`},
		"a built-in":   {event.Event{ID: 9, Type: event.TaskEnded, By: "ci", Fields: []byte(`"outcome":"ok"`)}, `{"eventId":9,"TYPE":"TaskEnded","by":"ci","outcome":"ok"}`},
		"neither":      {event.Event{ID: 9, Type: "T", Fields: []byte(`"n":1`)}, `{"eventId":9,"TYPE":"T","n":1}`},
		"similar ones": {event.Event{ID: 9, Type: "T", Fields: []byte(`"nearby":1,"because":{"cause":2}`)}, `{"eventId":9,"TYPE":"T","nearby":1,"because":{"cause":2}}`},
	} {
		text := string(test.event.AppendJSON(nil, true))
		if text != test.want {
			t.Errorf("%s: %s, want %s", name, text, test.want)
		}
		if size := test.event.Size(); size < len(text)-2 { // but for the escape
			t.Errorf("%s: has the size %d, and %d bytes", name, size, len(text))
		}
		read, err := event.ParseEvent([]byte(text))
		if err == nil {
			err = read.TakeOrigin()
		}
		if diff := cmp.Diff(test.event, read); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
		}
	}
}

func TestTakeOriginOfWhatIsNone(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{`"cause":"x"`, `"cause":0`, `"cause":9007199254740993`, `"cause":1.5`, `"by":1`} {
		e := event.Event{Type: "T", Fields: []byte(fields)}
		if err := e.TakeOrigin(); err == nil {
			t.Errorf("%s is taken: %+v", fields, e)
		}
	}
}

func TestLastOf(t *testing.T) {
	t.Parallel()
	a, b := event.Key{Path: "/j", TaskID: "a"}, event.Key{Path: "/j", TaskID: "b"}
	events := []event.Event{{ID: 1, Key: a}, {ID: 2, Key: a}, {ID: 3, Key: b}}
	for key, want := range map[event.Key]event.ID{a: 2, b: 3, {Path: "/j"}: 0} {
		if got := event.LastOf(events, key); got != want {
			t.Errorf("LastOf(%v) = %d, want %d", key, got, want)
		}
	}
}
