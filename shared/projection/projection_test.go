package projection_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
)

// fold applies events, numbered from 1, and returns a key's element; "" if there is none.
func fold(f journal.Fold, key string, events ...event.Event) string {
	var state journal.State
	for i := range events {
		events[i].ID = event.ID(i + 1)
		f.Apply(&state, &events[i])
	}
	value := state.Get(key)
	if f.Show != nil && value != nil {
		value = f.Show(nil, key, value)
	}
	return string(value)
}

func custom(name, fields string) event.Event {
	return event.Event{Type: name, Key: event.Key{Path: "/k"}, Fields: []byte(fields)}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		events []event.Event
		want   string
	}{
		{"fields are merged, the newest wins, in the order of their appearance",
			[]event.Event{custom("A", `"a":1,"b":{"x":[1,"}"]}`), custom("B", `"c":null,"a":"new"`)},
			`{"TYPE":"ObjectOverview","key":"/k","eventId":2,"lastType":"B","a":"new","b":{"x":[1,"}"]},"c":null}`},
		{"a type that ends in Removed removes", []event.Event{custom("A", `"a":1`), custom("ARemoved", ``)}, ``},
		{"and the object comes back with its next event, anew",
			[]event.Event{custom("A", `"a":1`), custom("ARemoved", ``), custom("A", `"b":2`)},
			`{"TYPE":"ObjectOverview","key":"/k","eventId":3,"lastType":"A","b":2}`},
		{"an event without fields", []event.Event{custom("A", ``)},
			`{"TYPE":"ObjectOverview","key":"/k","eventId":1,"lastType":"A"}`},
		{"an overview's own members are its own", []event.Event{custom("A", `"lastType":"x","a":1`), custom("B", ``)},
			`{"TYPE":"ObjectOverview","key":"/k","eventId":2,"lastType":"B","a":1}`},
		{"names and values with quotes, colons and commas",
			[]event.Event{custom("A", `"q\",:":"a\\","n":-1.5e3`), custom("B", `"q\",:":"\",x"`)},
			`{"TYPE":"ObjectOverview","key":"/k","eventId":2,"lastType":"B","q\",:":"\",x","n":-1.5e3}`},
		{"a name is what it means, however it is spelled",
			[]event.Event{custom("A", `"café":1`), custom("A", `"caf\u00e9":2`), custom("A", `"c\u0061f\u00e9":3`)},
			`{"TYPE":"ObjectOverview","key":"/k","eventId":3,"lastType":"A","café":3}`},
		{"so are an overview's own", []event.Event{custom("A", `"lastTyp\u0065":"x","a":1`), custom("B", ``)},
			`{"TYPE":"ObjectOverview","key":"/k","eventId":2,"lastType":"B","a":1}`},
		{"built-in events say nothing of objects", []event.Event{{Type: "OrderStarted", Key: event.Key{Path: "/k"}}}, ``},
		{"events without a key neither", []event.Event{{Type: "A", Fields: []byte(`"a":1`)}}, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := fold(projection.Objects(), "/k", tt.events...)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got != "" && !json.Valid([]byte(got)) {
				t.Errorf("%s is not JSON", got)
			}
		})
	}
}

// What programs that told names apart by their spelling have stored has each member once when it is shown, and after the next event.
func TestStoredObjectsInTwoSpellings(t *testing.T) {
	t.Parallel()
	const stored = `{"TYPE":"ObjectOverview","key":"/k","eventId":1,"lastType":"A","café":3,"n":"\n","caf\u00e9":2,"lastTyp\u0065":"x","\u0061":{"a":1,"\u0062":2}}`
	var state journal.State
	state.Put("/k", []byte(stored))
	for _, step := range []struct{ fields, want string }{
		{"", `{"TYPE":"ObjectOverview","key":"/k","eventId":1,"lastType":"A","café":3,"n":"\n","a":{"a":1,"\u0062":2}}`},
		{`"caf\u00e9":4`, `{"TYPE":"ObjectOverview","key":"/k","eventId":2,"lastType":"B","café":4,"n":"\n","a":{"a":1,"\u0062":2}}`},
	} {
		if e := custom("B", step.fields); step.fields != "" {
			e.ID = 2
			projection.Objects().Apply(&state, &e)
		}
		if diff := cmp.Diff(step.want, string(projection.Objects().Show(nil, "/k", state.Get("/k")))); diff != "" {
			t.Errorf("after %q (-want +got):\n%s", step.fields, diff)
		}
	}
}

// FuzzObjects: for any JSON in the fields, the element is JSON that contains them.
func FuzzObjects(f *testing.F) {
	f.Add(`{"a":1,"b":"x"}`, `{"a":[{"c":"]"}]}`)
	f.Add(`{"":{}}`, `{"\"":"\\\\"}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		var events []event.Event
		merged := map[string]any{}
		for _, text := range []string{first, second} {
			var fields map[string]any
			if json.Unmarshal([]byte(text), &fields) != nil || fields == nil {
				return
			}
			compact, err := json.Marshal(fields) // compact and without duplicates, as on the journal
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, custom("A", string(compact[1:len(compact)-1])))
			for name, value := range fields {
				merged[name] = value
			}
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(fold(projection.Objects(), "/k", events...)), &got); err != nil {
			t.Fatal(err)
		}
		for name, own := range map[string]any{"TYPE": "ObjectOverview", "key": "/k", "eventId": 2.0, "lastType": "A"} {
			merged[name] = own
		}
		if diff := cmp.Diff(merged, got); diff != "" {
			t.Errorf("%s then %s (-want +got):\n%s", first, second, diff)
		}
	})
}

func TestOtherKinds(t *testing.T) {
	t.Parallel()
	file := func(state, key string) event.Event {
		return event.Event{Type: "FileBased" + state, Key: event.Key{Path: key}}
	}
	ofTask := func(name string) event.Event { return event.Event{Type: name, Key: event.Key{Path: "/j", TaskID: "7"}} }
	paused := typed.JobStateChanged{State: "pause"}.Event("/j")
	tests := []struct {
		fold   journal.Fold
		key    string
		events []event.Event
		want   string
	}{
		{projection.Jobs(), "/j", []event.Event{{Type: "JobStateChanged", Key: event.Key{Path: "/j"}, Fields: []byte(`"state":"running"`)}},
			`{"TYPE":"JobOverview","path":"/j","state":"running"}`},
		{projection.Jobs(), "/j", []event.Event{file("Added", "Job:/j")}, `{"TYPE":"JobOverview","path":"/j","fileBasedState":"Added","state":"run"}`},
		{projection.Jobs(), "/j", []event.Event{file("Added", "Job:/j"), file("Activated", "Job:/j"), paused, file("Replaced", "Job:/j")},
			`{"TYPE":"JobOverview","path":"/j","fileBasedState":"Replaced","state":"pause"}`},
		{projection.Jobs(), "/j", []event.Event{file("Added", "Job:/j"), file("Removed", "Job:/j")}, ``},
		{projection.Jobs(), "/j", []event.Event{file("Added", "Job:/j"), paused, file("Removed", "Job:/j")},
			`{"TYPE":"JobOverview","path":"/j","state":"pause"}`},
		{projection.Jobs(), "/j", []event.Event{file("Added", "Job:/j"), file("Removed", "Job:/j"), ofTask("TaskAdded")},
			`{"TYPE":"JobOverview","path":"/j","state":"run"}`},
		{projection.Jobs(), "/j", []event.Event{ofTask("TaskAdded"), file("Added", "Job:/j"), ofTask("TaskAdded")},
			`{"TYPE":"JobOverview","path":"/j","fileBasedState":"Added","state":"run"}`},
		{projection.Jobs(), "/j", []event.Event{ofTask("TaskStarted"), ofTask("TaskClosed"), file("Added", "JobChain:/j")}, ``},
		{projection.Tasks(), "/j,k\x007,8", []event.Event{{Type: "TaskStarted", Key: event.Key{Path: "/j,k", TaskID: "7,8"}}},
			`{"TYPE":"TaskOverview","taskId":"7,8","jobPath":"/j,k","state":"Started"}`},
		{projection.Tasks(), "/j\x007", []event.Event{
			{Type: "TaskStarted", Key: event.Key{Path: "/j", TaskID: "7"}}, {Type: "TaskClosed", Key: event.Key{Path: "/j", TaskID: "7"}}}, ``},
		{projection.FileBased(), "Job:/j", []event.Event{{Type: "FileBasedAdded", Key: event.Key{Path: "Job:/j"}}},
			`{"TYPE":"FileBasedOverview","path":"Job:/j","fileBasedState":"Added"}`},
		{projection.FileBased(), "Job:/j", []event.Event{
			{Type: "FileBasedAdded", Key: event.Key{Path: "Job:/j"}}, {Type: "FileBasedRemoved", Key: event.Key{Path: "Job:/j"}}}, ``},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, fold(tt.fold, tt.key, tt.events...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.fold.Name, diff)
		}
	}
}
