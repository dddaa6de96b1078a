package layout_test

import (
	"encoding/json"
	"testing"

	"github.com/millrace/millrace/shared/queue/layout"
)

// The texts are in keys, in items and on the wire: they stay as they are.
func TestALineIsSpelledAsItIsStored(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line layout.Line
		text string
		item string // the entry's field
	}{
		{layout.Line{Queue: "main"}, "main", ``},
		{layout.Line{Queue: "a@b"}, "a@b", `,"ln":"a@b"`},
		{layout.Line{Queue: "main", Job: "/topics/a@/b"}, "main@/topics/a@/b", `,"ln":"main@/topics/a@/b"`},
		{layout.Line{Queue: "main", Job: "/<a>", Name: "Anna"}, "main@/<a>\nAnna", `,"ln":"main@/<a>\nAnna"`},
	} {
		if got := test.line.String(); got != test.text {
			t.Errorf("String of %#v = %q, want %q", test.line, got, test.text)
		}
		if got := layout.ParseLine(test.text); got != test.line {
			t.Errorf("parseLine(%q) = %#v, want %#v", test.text, got, test.line)
		}
		e := layout.Entry{UUID: "u", Of: 1, Job: "/j", Queue: "main"}
		e.SetLine(test.line)
		item := layout.Encode(e)
		if want := `{"id":"u","v":1,"j":"/j","q":"main"` + test.item + `}`; string(item) != want {
			t.Errorf("an entry in %q is %s, want %s", test.text, item, want)
		}
		var read layout.Entry
		if err := json.Unmarshal(item, &read); err != nil || read.Line() != test.line {
			t.Errorf("the line of %s = %#v, %v, want %#v", item, read.Line(), err, test.line)
		}
	}
}
