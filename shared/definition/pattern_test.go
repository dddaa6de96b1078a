package definition_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/definition"
)

// demandMatches demands that each pattern matches those of the names, in their order, that stand beside it.
func demandMatches(t *testing.T, match func(pattern, name string) bool, names []string, patterns map[string]string) {
	t.Helper()
	for pattern, want := range patterns {
		var matched []string
		for _, name := range names {
			if match(pattern, name) {
				matched = append(matched, name)
			}
		}
		if got := strings.Join(matched, " "); got != want {
			t.Errorf("%q means %q, want %q", pattern, got, want)
		}
	}
}

func TestMatchTopic(t *testing.T) {
	t.Parallel()
	demandMatches(t, definition.MatchTopic, []string{"a", "b", "ab", "a/b", "a/b/c", "ab/c", "b/a"}, map[string]string{
		"a": "a", "a/b": "a/b", "*": "a b ab a/b a/b/c ab/c b/a", "a/*": "a/b a/b/c", "a*": "a/b a/b/c", "a/.": "a/b", "a.": "a/b",
		"a/b/*": "a/b/c", "ab.": "ab/c", "c*": "", "": "", ".": "",
	})
}

func TestMatch(t *testing.T) {
	t.Parallel()
	demandMatches(t, definition.Match, []string{"/a", "/a/b", "/a/b/c", "/ab", "k"}, map[string]string{
		"/a": "/a", "/a/*": "/a/b", "/a/**": "/a/b /a/b/c", "/*": "/a /ab", "/**": "/a /a/b /a/b/c /ab", "*": "k",
		"**": "/a /a/b /a/b/c /ab k", "k": "k", "/b/**": "",
	})
}

func TestWeight(t *testing.T) {
	t.Parallel()
	q := definition.Queue{Weights: map[string]int{"/a/b": 2, "/a/*": 3, "/a/**": 4, "/**": 5, "k": 6}}
	for key, want := range map[string]int{"/a/b": 2, "/a/c": 3, "/a/c/d": 4, "/a": 5, "/x/y": 5, "k": 6, "l": 1, "": 1} {
		if got := q.Weight(key); got != want {
			t.Errorf("Weight(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestValidTopic(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string]bool{
		"a": true, "a/b-C_9": true, "": false, "/a": false, "a/": false, "a//b": false, "a b": false, "a.b": false, "a/*": false, "ä": false,
		strings.Repeat("a", 492): true, strings.Repeat("a", 493): false,
	} {
		if got := definition.ValidTopic(topic); got != want {
			t.Errorf("ValidTopic(%q) = %t, want %t", topic, got, want)
		}
	}
}
