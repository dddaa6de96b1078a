package definition

import "strings"

// A queue whose name has {0} is a family of queues, as in Sling's job handling: {0} stands for the part of a topic that
// the wildcard of the queue's pattern matches, with . for each slash. So {name: "mail-{0}", topics: ["mail/*"]} puts
// mail/a/b into the queue mail-a.b.
const wildcard = "{0}"

// nameFor returns the name of the queue for a topic that one of its patterns matches; ok is false if none does.
func (q *Queue) nameFor(topic string) (name string, ok bool) {
	for _, pattern := range q.Topics {
		if MatchTopic(pattern, topic) {
			return strings.ReplaceAll(q.Name, wildcard, restOf(pattern, topic)), true
		}
	}
	return "", false
}

// restOf returns the part of a topic that the wildcard of a pattern matches, in the form used in a name; of a pattern
// without wildcard, "".
func restOf(pattern, topic string) string {
	rest := topic
	if root, kind := topicPatternRoot(pattern); root != "" {
		if rest = ""; kind != 0 {
			rest = strings.TrimPrefix(topic, root+"/")
		}
	}
	return strings.ReplaceAll(rest, "/", ".")
}

// member reports whether name is one of the family's queues.
func (q *Queue) member(name string) bool {
	rest, ok := q.restIn(name)
	if !ok || strings.Contains(name, "/") || name == SyncQueue || name == EventQueue || name == MainQueue {
		return false
	}
	for _, pattern := range q.Topics {
		if leavesOpen(pattern, rest) {
			return true
		}
	}
	return false
}

// restIn returns what stands for {0} in a name, if the name is of the family's form.
func (q *Queue) restIn(name string) (rest string, ok bool) {
	n := strings.Count(q.Name, wildcard)
	if n == 0 {
		return "", false
	}
	before, _, _ := strings.Cut(q.Name, wildcard)
	open := len(name) - (len(q.Name) - n*len(wildcard))
	if open < 0 || open%n != 0 || !strings.HasPrefix(name, before) {
		return "", false
	}
	rest = name[len(before) : len(before)+open/n]
	return rest, strings.ReplaceAll(q.Name, wildcard, rest) == name
}

// leavesOpen reports whether a pattern matches a topic with that rest in the place of its wildcard.
func leavesOpen(pattern, rest string) bool {
	root, kind := topicPatternRoot(pattern)
	if kind == 0 {
		return rest == ""
	}
	if root != "" {
		root += "/"
	}
	topic := root + strings.ReplaceAll(rest, ".", "/")
	return MatchTopic(pattern, topic) && ValidTopic(topic)
}

// FamilyOf returns the name, with its {0}, of the family that a queue belongs to; ok is false for a queue of no family,
// and for one that is declared by its own name. If several families fit, the first counts, as in [Set.QueueOf].
func (s *Set) FamilyOf(name string) (family string, ok bool) {
	index := s.indexed()
	if _, own := index.queues[name]; own {
		return "", false
	}
	q := index.family(name)
	if q == nil {
		return "", false
	}
	return q.Name, true
}

// family returns the declared queue whose family a name belongs to, or nil.
func (x *index) family(name string) *Queue {
	for _, q := range x.ranked {
		if q.member(name) {
			return q
		}
	}
	return nil
}

// JSON returns the queue as JSON in the form of the file.
func (q Queue) JSON() []byte { return encode(q) }
