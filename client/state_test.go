package client_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

func TestStateFoldsEventsAsTheServerDoes(t *testing.T) {
	t.Parallel()
	key := func(path string) event.Key { return event.Key{Path: path} }
	state := client.StateOf(client.Snapshot{EventID: 10, Objects: []client.Object{
		{Key: key("/b"), EventID: 9, LastType: "Made", Fields: []byte(`"n":1,"m":{"x":[1]}`)},
		{Key: key("/gone"), EventID: 10, LastType: "Made"},
	}})
	for _, e := range []event.Event{
		{ID: 11, Type: "Moved", Key: key("/b"), Fields: []byte(`"to":"here","lastTyp\u0065":"mine","n":2`)},
		{ID: 12, Type: "PartRemoved", Key: key("/gone")},
		{ID: 13, Type: "Made", Key: key("/a")},
		{ID: 14, Type: "Ticked"},
		{ID: 15, Type: "OrderAdded", Key: key("/chain,1")},
	} {
		if err := state.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	want := []client.Object{
		{Key: key("/a"), EventID: 13, LastType: "Made"},
		{Key: key("/b"), EventID: 11, LastType: "Moved", Fields: []byte(`"n":2,"m":{"x":[1]},"to":"here"`)},
	}
	if diff := cmp.Diff(want, state.Objects()); diff != "" {
		t.Error(diff)
	}
	reordered := want[1]
	reordered.Fields = []byte(`"to":"here","n":2,"m":{"x":[1]}`)
	if !reordered.Equal(want[1]) || want[0].Equal(want[1]) {
		t.Error("Equal is wrong about the order of fields or about different objects")
	}
}
