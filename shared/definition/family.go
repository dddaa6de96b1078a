package definition

import "strings"

// A queue whose name has {0} is a family of queues: {0} stands for what a topic has where the queue's pattern has its
// wildcard, with . for each slash (seed 004). So {name: "mail-{0}", topics: ["mail/*"]} gives mail/a/b the queue mail-a.b.
const wildcard = "{0}"

// nameFor answers the name of the queue for a topic that one of its patterns means; ok is false where none does.
func (q *Queue) nameFor(topic string) (name string, ok bool) {
	for _, pattern := range q.Topics {
		if MatchTopic(pattern, topic) {
			return strings.ReplaceAll(q.Name, wildcard, restOf(pattern, topic)), true
		}
	}
	return "", false
}

// restOf answers what of a topic a pattern leaves open, as it stands in a name.
func restOf(pattern, topic string) string {
	rest := topic
	if root, kind := topicPatternRoot(pattern); root != "" {
		if rest = ""; kind != 0 {
			rest = strings.TrimPrefix(topic, root+"/")
		}
	}
	return strings.ReplaceAll(rest, "/", ".")
}

// member answers whether name is one of the family's queues.
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

// restIn answers what stands for {0} in a name, if the name is one of the family's.
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

// leavesOpen reports whether a pattern means a topic of which it leaves that open.
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

// FamilyOf answers the name, with its {0}, of the family that a queue is a member of; ok is false for a queue of none, and for
// one that is declared by its own name. The first family that fits is the queue's, as in [Set.QueueOf].
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

// family answers the declared queue that stands for one of that name; nil if none does.
func (x *index) family(name string) *Queue {
	for _, q := range x.ranked {
		if q.member(name) {
			return q
		}
	}
	return nil
}

// JSON answers the queue as the file has it.
func (q Queue) JSON() []byte { return encode(q) }
