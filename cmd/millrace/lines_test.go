package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
)

func TestLinesComeInBatches(t *testing.T) {
	t.Parallel()
	large := `{"TYPE":"B","pad":"` + strings.Repeat("x", 200<<10) + `"}` + "\n"
	tests := map[string]struct {
		input string
		batch int
		want  []int // events of each batch
	}{
		"nothing":        {"\n \n", 3, nil},
		"one":            {`{"TYPE":"A"}`, 3, []int{1}},
		"full batches":   {strings.Repeat("{\"TYPE\":\"A\"}\r\n", 6), 3, []int{3, 3}},
		"a rest":         {strings.Repeat("{\"TYPE\":\"A\"}\n\n", 4), 3, []int{3, 1}},
		"large events":   {strings.Repeat(large, 9), 100, []int{4, 4, 1}},
		"one at a time":  {strings.Repeat("{\"TYPE\":\"A\"}\n", 2), 1, []int{1, 1}},
		"without an end": {"{\"TYPE\":\"A\"}\n{\"TYPE\":\"A\"}", 5, []int{2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []int
			for l := newLines(strings.NewReader(test.input), "input", test.batch); ; {
				events, err := l.next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, len(events))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLinesNameTheLineAtFault(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"no JSON": "{", "no type": `{"key":"/a"}`, "two values": `{"TYPE":"A"},{"TYPE":"B"}`, "own id": `{"TYPE":"A","eventId":1}`,
		"built in": `{"TYPE":"OrderAdded"}`, "null": "null", "too long": `{"TYPE":"A","pad":"` + strings.Repeat("x", maxLine) + `"}`,
	} {
		l := newLines(strings.NewReader("{\"TYPE\":\"A\"}\n\n"+line+"\n"), "input", 100)
		if events, err := l.next(); err == nil || !strings.HasPrefix(err.Error(), "input, line 3: ") {
			t.Errorf("%s: next = %v, %v, want an error that begins with input, line 3", name, events, err)
		}
	}
}

func TestEventOfArguments(t *testing.T) {
	t.Parallel()
	got, err := eventOf("ParcelMoved", "/parcels/17", []string{"to=", `note=a "b" = c`, "weight:=2.5", `tags:=["x", 1]`})
	if err != nil {
		t.Fatal(err)
	}
	want := event.Event{
		Type: "ParcelMoved", Key: event.Key{Path: "/parcels/17"},
		Fields: []byte(`"to":"","note":"a \"b\" = c","weight":2.5,"tags":["x",1]`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, field := range []string{"", "novalue", "=text", ":=1", "n:=", "n:={", `n:=1,"TYPE":"B"`, "TYPE=B", "eventId:=4"} {
		if e, err := eventOf("A", "", []string{field}); statusOf(err) != statusUsage {
			t.Errorf("eventOf(%q) = %+v, %v, want a usage error", field, e, err)
		}
	}
}
