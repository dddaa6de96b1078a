package queue

import (
	"encoding/json"
	"testing"
)

// The texts are in keys, in items and on the wire: they stay as they are.
func TestALineIsSpelledAsItIsStored(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line line
		text string
		item string // the entry's field
	}{
		{line{queue: "main"}, "main", ``},
		{line{queue: "a@b"}, "a@b", `,"ln":"a@b"`},
		{line{queue: "main", job: "/topics/a@/b"}, "main@/topics/a@/b", `,"ln":"main@/topics/a@/b"`},
		{line{queue: "main", job: "/<a>", name: "Anna"}, "main@/<a>\nAnna", `,"ln":"main@/<a>\nAnna"`},
	} {
		if got := test.line.String(); got != test.text {
			t.Errorf("String of %#v = %q, want %q", test.line, got, test.text)
		}
		if got := parseLine(test.text); got != test.line {
			t.Errorf("parseLine(%q) = %#v, want %#v", test.text, got, test.line)
		}
		e := entry{UUID: "u", Of: 1, Job: "/j", Queue: "main"}
		e.setLine(test.line)
		item := encode(e)
		if want := `{"id":"u","v":1,"j":"/j","q":"main"` + test.item + `}`; string(item) != want {
			t.Errorf("an entry in %q is %s, want %s", test.text, item, want)
		}
		var read entry
		if err := json.Unmarshal(item, &read); err != nil || read.line() != test.line {
			t.Errorf("the line of %s = %#v, %v, want %#v", item, read.line(), err, test.line)
		}
	}
}
