package event_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
)

// What the server writes is scanned as it is parsed.
func TestScanSeq(t *testing.T) {
	t.Parallel()
	for _, c := range seedSeqs {
		text := c.seq.AppendJSON(nil, true)
		got, ok := event.ScanSeq(text)
		if diff := cmp.Diff(c.seq, got); !ok || diff != "" {
			t.Errorf("ScanSeq(%s) = %v (-want +got):\n%s", text, ok, diff)
		}
		for n := range text {
			if _, ok := event.ScanSeq(text[:n]); ok {
				t.Errorf("ScanSeq takes %s", text[:n])
			}
		}
	}
}

func TestScanEvent(t *testing.T) {
	t.Parallel()
	for _, e := range []event.Event{
		{ID: 1, Type: "A"},
		{ID: event.MaxID, Type: "A", Key: event.Key{Path: "/a"}, Fields: []byte(`"x":{"}":["\\\"}]",1]},"y":"\\"`)},
		{ID: 3, Type: "A", Key: event.Key{Path: "/a", TaskID: "7"}, Fields: []byte(`"x":""`)},
	} {
		text := e.AppendJSON(nil, true)
		got, ok := event.ScanEvent(text)
		if diff := cmp.Diff(e, got); !ok || diff != "" {
			t.Errorf("ScanEvent(%s) = %v (-want +got):\n%s", text, ok, diff)
		}
	}
	for _, text := range []string{
		``, `{}`, `{"eventId":1}`, `{"eventId":1,"TYPE":""}`, `{"eventId":1,"TYPE":"A",}`, `{"eventId":1,"TYPE":"A"}}`, `{"TYPE":"A"}`,
		`{"eventId":-1,"TYPE":"A"}`, `{"eventId":99999999999999999,"TYPE":"A"}`, `{"eventId":1,"key":"\u0041","TYPE":"A"}`,
		`{"eventId":1,"TYPE":"A","x":"}`, `{"eventId":1,"TYPE":"A","x":"\"}`, `{"eventId":1, "TYPE":"A"}`, `{"eventId":1,"TYPE":"A","x":[{}`,
		`{"eventId":1,"TYPE":"A","key":"/a"}`, `{"eventId":1,"TYPE":"A","x":[1,"y"],"TYPE":"A"}`, `{"eventId":1,"TYPE":"A","x":1,"\u006bey":"A"}`,
	} {
		if e, ok := event.ScanEvent([]byte(text)); ok {
			t.Errorf("ScanEvent(%s) = %v", text, e)
		}
	}
}

// What both take, they take for the same.
func FuzzScanSeq(f *testing.F) {
	for _, c := range seedSeqs {
		f.Add(c.seq.AppendJSON(nil, true))
	}
	f.Add([]byte(`{"TYPE":"NonEmpty","eventId":1,"eventSnapshots":[{"eventId":1,"key":{"jobPath":"/a","taskId":"1"},"TYPE":"b","c":["}"]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := event.ScanSeq(text)
		want, err := event.ParseSeq(text)
		if !ok || err != nil || strings.ContainsAny(string(text), " \t\r\n") {
			return
		}
		if !cmp.Equal(want, got) {
			t.Fatalf("%s is scanned as %v and parsed as %v", text, got, want)
		}
	})
}
