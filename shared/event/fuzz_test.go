package event_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
)

// What ParseEvents accepts keeps its meaning: it is rendered as JSON that means what the body meant, and is parsed back to
// the same events.
func FuzzParseEvents(f *testing.F) {
	for _, body := range []string{
		`[{"TYPE":"Paid","key":"/shop/1","amount":12.50,"by":{"a":[1,null]}}]`, ` [ { "TYPE" : "a" , "\u0061\"" : "\\" } , {"TYPE":"a"} ] `,
		`[{"TYPE":null}]`, `[{"TYPE":"a","TYPE":"a"}]`, `[1,"",{},[]]`, `[{"k\u0065y":"x","T":-0.0e+1}]`, "[{\"TYPE\":\"a\",\"b\":\"\xff\"}]",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		events, err := event.ParseEvents(body)
		if err != nil {
			if event.ReasonOf(err) == 0 || err.Error() == "" {
				t.Fatalf("ParseEvents = %v, want an Error with problems", err)
			}
			return
		}
		rendered := event.AppendEvents(nil, events, true)
		if diff := cmp.Diff(anyOf(t, body), anyOf(t, rendered)); diff != "" {
			t.Fatalf("%s means something else than %s:\n%s", rendered, body, diff)
		}
		again, err := event.ParseEvents(rendered)
		if err != nil || !slices.EqualFunc(events, again, sameEvent) {
			t.Fatalf("ParseEvents(%s) = %v, %v, want %v", rendered, again, err, events)
		}
	})
}

func sameEvent(a, b event.Event) bool { return cmp.Equal(a, b) }

// anyOf decodes JSON with numbers as they are written.
func anyOf(t *testing.T, text []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("encoding/json refuses %s: %v", text, err)
	}
	return v
}

func FuzzParseEvent(f *testing.F) {
	for _, text := range []string{
		`{"eventId":1,"key":"/a","TYPE":"b","c":1}`, `{"TYPE":"b","key":{"jobPath":"/a","taskId":"1"}}`, `{"TYPE":"b","key":{}}`, `{"eventId":1e3,"TYPE":""}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := event.ParseEvent(text)
		if err != nil {
			return
		}
		rendered := e.AppendJSON(nil, true)
		again, err := event.ParseEvent(rendered)
		if err != nil || !cmp.Equal(e, again) {
			t.Fatalf("ParseEvent(%s) = %v, %v, want %v", rendered, again, err, e)
		}
	})
}

func FuzzParseSeq(f *testing.F) {
	for _, c := range seedSeqs {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := event.ParseSeq(text)
		if err != nil {
			return
		}
		rendered := s.AppendJSON(nil, true)
		again, err := event.ParseSeq(rendered)
		if s.Kind != event.Empty {
			s.LastEventID = 0 // is not written
		}
		if err != nil || !cmp.Equal(s, again) {
			t.Fatalf("ParseSeq(%s) = %v, %v, want %v", rendered, again, err, s)
		}
	})
}

// A list selects exactly what its elements select one by one.
func FuzzParseReturn(f *testing.F) {
	for _, list := range []string{"Event", "OrderEvent,Paid", "CustomEvent,OrderStarted", "OrderOverview", "OrderStatisticsChanged", "OrderX", ",", "a,é"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		s, err := event.ParseReturn(list)
		if err != nil {
			return
		}
		for _, name := range someTypes {
			want := false
			for _, element := range strings.Split(list, ",") {
				one, err := event.ParseReturn(element)
				if err != nil {
					t.Fatalf("ParseReturn accepts %q, but of it not %q: %v", list, element, err)
				}
				want = want || one.Match(name)
			}
			if got := s.Match(name); got != want {
				t.Fatalf("ParseReturn(%q).Match(%s) = %t, want %t", list, name, got, want)
			}
		}
	})
}

// A query selects what a literal reading of the rules selects.
func FuzzParsePath(f *testing.F) {
	for _, c := range [][2]string{{"/a/", "/a/b"}, {"/a/*|b", "/a/b/c"}, {"", ""}, {"*", "x"}, {"/a,1", "/a,1"}, {"a//b", "/"}, {"/é/", "/é/x"}} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, remainder, object string) {
		q, err := event.ParsePath(remainder)
		if err != nil {
			return
		}
		want := remainder == ""
		for _, path := range strings.Split(remainder, "|") {
			want = want || selects("/"+strings.TrimPrefix(path, "/"), object)
		}
		if got := q.Match(object); got != want {
			t.Fatalf("ParsePath(%q).Match(%q) = %t, want %t", remainder, object, got, want)
		}
		if single, ok := q.Single(); ok && !q.Match(single) {
			t.Fatalf("ParsePath(%q) does not match its single %q", remainder, single)
		}
	})
}

// selects is the table of [event.PathQuery], read literally.
func selects(path, object string) bool {
	if path == "/" {
		return true
	}
	object = "/" + strings.TrimPrefix(object, "/")
	if folder, ok := strings.CutSuffix(path, "*"); ok {
		rest, below := strings.CutPrefix(object, folder)
		return below && rest != "" && !strings.Contains(rest, "/")
	}
	if strings.HasSuffix(path, "/") {
		return len(object) > len(path) && strings.HasPrefix(object, path)
	}
	return object == path
}

// A body with one path without "|" selects what a URL with that path selects.
func FuzzParsePathBody(f *testing.F) {
	for _, body := range []string{`{}`, `{"path":"/a/"}`, `{"paths":["/a","/b/*"]}`, `{"path":1}`, `{"paths":[]}`, `{"x":[{}],"path":"/"}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := event.ParsePathBody(body)
		if err != nil {
			if event.ReasonOf(err) != event.Invalid || !strings.HasPrefix(err.Error(), "body") {
				t.Fatalf("ParsePathBody(%s) = %v, want Invalid at the body", body, err)
			}
			return
		}
		if single, ok := q.Single(); ok && !strings.Contains(single, "|") {
			same, err := event.ParsePath(single)
			if again, _ := same.Single(); err != nil || again != single {
				t.Fatalf("ParsePath(%q) = %v, want a query for that path", single, err)
			}
		}
	})
}

// What is accepted is not negative, and is formatted such that it is parsed back exactly.
func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"60", "111.5", "1h2m3s", "200ms", "7d", "PT0.123S", "P1DT2H", "P1Y", ".1", "-1", "9223372036.854775807", "P2W"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := event.ParseDuration(text)
		if err != nil {
			return
		}
		if d < 0 {
			t.Fatalf("ParseDuration(%q) = %v, which is negative", text, d)
		}
		if again, err := event.ParseDuration(event.FormatDuration(d)); again != d || err != nil {
			t.Fatalf("ParseDuration(%q) = %v, but ParseDuration(%s) = %v, %v", text, d, event.FormatDuration(d), again, err)
		}
	})
}

func FuzzCheckEmittable(f *testing.F) {
	for _, name := range []string{"Paid", "OrderX", "", "9", "é", "a b", "Event", "a_.-:9"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if event.CheckEmittable(name) != nil {
			return
		}
		if s, err := event.ParseReturn(name); err != nil || !s.Match(name) {
			t.Fatalf("%q can be emitted, but not asked for: %v", name, err)
		}
	})
}
