package event_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
)

// somePaths are the objects of the path tests.
var somePaths = []string{"/a", "/a/b", "/a/b/c", "/a/x/1", "/ab", "/b", "loose", "loose/part"}

func selected(q event.PathQuery) string {
	var paths []string
	for _, path := range somePaths {
		if q.Match(path) {
			paths = append(paths, path)
		}
	}
	return strings.Join(paths, " ")
}

var all = strings.Join(somePaths, " ")

func TestParsePath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ remainder, want, single string }{
		{"", all, ""},
		{"/", all, ""},
		{"/a", "/a", "/a"},
		{"a", "/a", "/a"},
		{"a/", "/a/b /a/b/c /a/x/1", ""},
		{"/a/", "/a/b /a/b/c /a/x/1", ""},
		{"/a/*", "/a/b", ""},
		{"/a/b/", "/a/b/c", ""},
		{"/*", "/a /ab /b loose", ""},
		{"*", "/a /ab /b loose", ""},
		{"/a/b|/a/x/", "/a/b /a/x/1", ""},
		{"a/b|a/x/|b", "/a/b /a/x/1 /b", ""},
		{"/a|/a/", "/a /a/b /a/b/c /a/x/1", ""},
		{"/a/*|/a/b/", "/a/b /a/b/c", ""},
		{"/a|/", all, ""},
		{"/none", "", "/none"},
		{"/loose", "loose", "/loose"},
		{"/loose/", "loose/part", ""},
	} {
		q, err := event.ParsePath(c.remainder)
		if err != nil {
			t.Errorf("ParsePath(%s) = %v", c.remainder, err)
			continue
		}
		if diff := cmp.Diff(c.want, selected(q)); diff != "" {
			t.Errorf("ParsePath(%s) selects (-want +got):\n%s", c.remainder, diff)
		}
		if single, ok := q.Single(); single != c.single || ok != (c.single != "") {
			t.Errorf("ParsePath(%s).Single() = %q, %t, want %q", c.remainder, single, ok, c.single)
		}
		if q.All() != (c.want == all) {
			t.Errorf("ParsePath(%s).All() = %t", c.remainder, q.All())
		}
		if q.Match("") != q.All() {
			t.Errorf("ParsePath(%s).Match(empty) = %t", c.remainder, q.Match(""))
		}
	}
}

func TestParsePathRefuses(t *testing.T) {
	t.Parallel()
	for remainder, want := range map[string]string{
		"a|":      `path: has an empty path beside "|": leave the "|" out`,
		"|a":      `path: has an empty path beside "|": leave the "|" out`,
		"a//b":    `path: "/a//b" has two slashes in a row: leave one out`,
		"//":      `path: "//" has two slashes in a row: leave one out`,
		"a*":      `path: "/a*" has a "*" that is not the whole last part: only "/folder/*" is possible`,
		"a/*/b":   `path: "/a/*/b" has a "*" that is not the whole last part: only "/folder/*" is possible`,
		"a/**":    `path: "/a/**" has a "*" that is not the whole last part: only "/folder/*" is possible`,
		"*/*":     `path: "/*/*" has a "*" that is not the whole last part: only "/folder/*" is possible`,
		"a\xff":   `path: "/a\xff" is not UTF-8`,
		"a*|b//c": `path: "/a*" has a "*" that is not the whole last part: only "/folder/*" is possible; path: "/b//c" has two slashes in a row: leave one out`,
	} {
		_, err := event.ParsePath(remainder)
		if event.ReasonOf(err) != event.Invalid {
			t.Errorf("ParsePath(%q) = %v, want Invalid", remainder, err)
			continue
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("ParsePath(%q) (-want +got):\n%s", remainder, diff)
		}
	}
}

func TestParsePathBody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want, single string }{
		{`{}`, all, ""},
		{` { } `, all, ""},
		{`{"path":"/"}`, all, ""},
		{`{"path":"/a/"}`, "/a/b /a/b/c /a/x/1", ""},
		{`{"path":"/a"}`, "/a", "/a"},
		{`{"path":"\u002fa"}`, "/a", "/a"},
		{`{"path":"/a/*"}`, "/a/b", ""},
		{`{"paths":["/a/b","/a/x/"]}`, "/a/b /a/x/1", ""},
		{` { "paths" : [ "/a/b" ] } `, "/a/b", "/a/b"},
		{`{"path":"/a|/b"}`, "", "/a|/b"},
	} {
		q, err := event.ParsePathBody([]byte(c.body))
		if err != nil {
			t.Errorf("ParsePathBody(%s) = %v", c.body, err)
			continue
		}
		if diff := cmp.Diff(c.want, selected(q)); diff != "" {
			t.Errorf("ParsePathBody(%s) selects (-want +got):\n%s", c.body, diff)
		}
		if single, _ := q.Single(); single != c.single {
			t.Errorf("ParsePathBody(%s).Single() = %q, want %q", c.body, single, c.single)
		}
	}
}

func TestParsePathBodyRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want string }{
		{``, `body: is empty: JSON is needed`},
		{`[]`, `body: must be an object, {} for everything, not an array`},
		{`null`, `body: must be an object, {} for everything, not null`},
		{`{"path":null}`, `body.path: must be a string, not null`},
		{`{"path":["/a"]}`, `body.path: must be a string, not an array`},
		{`{"path":"a"}`, `body.path: "a" does not begin with a slash: write "/a"`},
		{`{"path":""}`, `body.path: is empty: everything is "/"`},
		{`{"path":"/a//b"}`, `body.path: "/a//b" has two slashes in a row: leave one out`},
		{`{"paths":null}`, `body.paths: must be an array of strings, not null`},
		{`{"paths":"/a"}`, `body.paths: must be an array of strings, not a string`},
		{`{"paths":[]}`, `body.paths: is empty: give at least one path, or {} for everything`},
		{`{"paths":["/a",1,"b"]}`, `body.paths[1]: must be a string, not a number`},
		{`{"paths":["/a","b","*"]}`, `body.paths[1]: "b" does not begin with a slash: write "/b"; body.paths[2]: "*" does not begin with a slash: write "/*"`},
		{`{"path":"/a","paths":["/b"]}`, `body.paths: is given together with path: give one of them`},
		{`{"path":"/a","orderIds":[]}`, `body.orderIds: is unknown: a path query has path or paths only`},
		{`{"path":"/a","path":"/b"}`, `body.path: is not valid JSON, at offset 13 (line 1, column 14): duplicate object member name`},
		{`{"path":"/a"`, `body: is not valid JSON, at offset 12 (line 1, column 13): it ends too early`},
		{`{} {}`, `body: has more after the end of its JSON value, at offset 2 (line 1, column 3)`},
	} {
		_, err := event.ParsePathBody([]byte(c.body))
		if event.ReasonOf(err) != event.Invalid {
			t.Errorf("ParsePathBody(%s) = %v, want Invalid", c.body, err)
			continue
		}
		if diff := cmp.Diff(c.want, err.Error()); diff != "" {
			t.Errorf("ParsePathBody(%s) (-want +got):\n%s", c.body, diff)
		}
	}
}

func TestParsePathBodyLimit(t *testing.T) {
	t.Parallel()
	longest := "/" + strings.Repeat("ü", (256<<10-1)/2) + "a"
	for body, want := range map[string]string{
		`{"path":"` + longest[:len(longest)-1] + `"}`:         "",
		`{"path":"` + longest + `b"}`:                         "too large body.path: has 262145 bytes: at most 262144 are possible",
		`{"paths":["/a","` + longest + `b"]}`:                 "too large body.paths[1]: has 262145 bytes: at most 262144 are possible",
		`{"paths":["` + longest + `b",1]}`:                    "invalid body.paths[0]: has 262145 bytes: at most 262144 are possible; body.paths[1]: must be a string, not a number",
		`{"path":"` + strings.Repeat(`\u002f`, 50_000) + `"}`: `invalid body.path: "////////////////////////////////////////…" has two slashes in a row: leave one out`,
	} {
		got := ""
		if _, err := event.ParsePathBody([]byte(body)); err != nil {
			got = event.ReasonOf(err).String() + " " + err.Error()
		}
		if got != want {
			t.Errorf("ParsePathBody(%.40s…) = %s, want %s", body, got, want)
		}
	}
}

func TestQueryOfTooManyPaths(t *testing.T) {
	t.Parallel()
	most := strings.Repeat("/a|", event.MaxPaths-1) + "/a"
	if _, err := event.ParsePath(most); err != nil {
		t.Errorf("ParsePath(%d paths) = %v, want nil", event.MaxPaths, err)
	}
	if _, err := event.ParsePath(most + "|/b"); event.ReasonOf(err) != event.Invalid {
		t.Errorf("ParsePath(%d paths) = %v, want Invalid", event.MaxPaths+1, err)
	}
}
