package definition

import (
	"errors"
	"strings"
)

// topicRoot begins the paths of topics' jobs.
const topicRoot = "/topics/"

func topicOf(path string) (topic string, ok bool) { return strings.CutPrefix(path, topicRoot) }

// ValidTopic reports whether text is a topic, as in Sling's job handling: segments of letters, digits, _ and - separated
// by slashes, so many bytes that the path of its job has at most [MaxPath].
func ValidTopic(text string) bool {
	if text == "" || len(topicRoot)+len(text) > MaxPath {
		return false
	}
	after := byte('/')
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		case c == '/' && after != '/':
		default:
			return false
		}
		after = c
	}
	return after != '/'
}

// validTopicPattern reports whether text is a pattern for [MatchTopic].
func validTopicPattern(text string) bool {
	root, _ := topicPatternRoot(text)
	return text == "*" || ValidTopic(root)
}

// topicPatternRoot returns the topic above those that a pattern matches, and the wildcard at its end; of a pattern without
// one, the pattern and 0.
func topicPatternRoot(pattern string) (root string, kind byte) {
	if pattern == "" {
		return "", 0
	}
	switch kind = pattern[len(pattern)-1]; kind {
	case '*', '.':
		return strings.TrimSuffix(pattern[:len(pattern)-1], "/"), kind
	}
	return pattern, 0
}

// MatchTopic reports whether a queue with that pattern takes the topic, as in Sling's job handling: "a/b" matches that
// topic alone, "a/*" and "a*" those at any depth below a, "a/." and "a." the direct children of a, "*" all.
func MatchTopic(pattern, topic string) bool {
	if pattern == "*" {
		return true
	}
	root, kind := topicPatternRoot(pattern)
	if kind == 0 {
		return topic == pattern
	}
	below, ok := strings.CutPrefix(topic, root+"/")
	return ok && below != "" && (kind == '*' || !strings.Contains(below, "/"))
}

// Match reports whether a pattern of weights or of an instance's jobs matches the path: "/a/b" that path alone, "/a/*" the
// direct children of /a, "/a/**" all below it; never /a itself.
func Match(pattern, path string) bool {
	root, deep := strings.CutSuffix(pattern, "**")
	if !deep {
		var direct bool
		if root, direct = strings.CutSuffix(pattern, "*"); !direct {
			return pattern == path
		}
	}
	below, ok := strings.CutPrefix(path, root)
	return ok && below != "" && (deep || !strings.Contains(below, "/"))
}

var errPattern = errors.New("a pattern ends in /* for one level or in /** for all below, and has no other *")

// checkPattern returns an error if pattern is not one for [Match]; the part before the wildcard may be empty.
func checkPattern(pattern string) error {
	root := strings.TrimSuffix(strings.TrimSuffix(pattern, "*"), "*")
	if pattern == "" || strings.Contains(root, "*") || root != pattern && root != "" && !strings.HasSuffix(root, "/") {
		return errPattern
	}
	return nil
}

// ValidPattern returns an error if pattern is not one of an instance's jobs: a pattern for [Match] that begins with a
// slash.
func ValidPattern(pattern string) error {
	if !strings.HasPrefix(pattern, "/") {
		return errors.New("a pattern of jobs begins with a slash")
	}
	return checkPattern(pattern)
}

// Weight returns how many turns a fairness key has for another's one: the weight of exactly that key; otherwise that of
// the longest pattern that matches it (see [Match]), one for direct children before one for any depth; otherwise 1.
func (q Queue) Weight(key string) int {
	if weight, exact := q.Weights[key]; exact {
		return weight
	}
	weight, nearest := 1, -1
	for pattern, w := range q.Weights {
		if !strings.HasSuffix(pattern, "*") || !Match(pattern, key) {
			continue
		}
		near := 2 * len(strings.TrimRight(pattern, "*"))
		if !strings.HasSuffix(pattern, "**") {
			near++
		}
		if near > nearest {
			weight, nearest = w, near
		}
	}
	return weight
}
