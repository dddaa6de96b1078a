package local

import "github.com/millrace/millrace/shared/bell"

// waiting is how many rings wait for each queue, and whose turn it is.
type waiting struct {
	counts map[string]int // of queues with at least one
	turns  []string       // the keys of counts, each once; next from head on
	head   int
}

// maxRings is how many rings wait for a queue at most: more than a process has workers, who look for more work whenever they
// have found some. Otherwise whoever wakes beside a large backlog would take a ring for each of its tasks first.
const maxRings = 4096

func (w *waiting) empty() bool { return len(w.counts) == 0 }

func (w *waiting) add(queue string, n int) {
	if w.counts == nil {
		w.counts = map[string]int{}
	}
	if w.counts[queue] == 0 {
		w.turns = append(w.turns, queue)
	}
	w.counts[queue] = min(w.counts[queue]+n, maxRings)
}

// take answers up to limit rings, one of each queue in turn.
func (w *waiting) take(limit int) []bell.Ring {
	var rings []bell.Ring
	for len(rings) < limit && !w.empty() {
		queue := w.next()
		rings = append(rings, bell.Ring{Queue: queue})
		if w.counts[queue]--; w.counts[queue] == 0 {
			delete(w.counts, queue)
			continue
		}
		w.turns = append(w.turns, queue)
	}
	return rings
}

// next takes the queue whose turn it is out of turns, whose front it reclaims once that is the larger part.
func (w *waiting) next() string {
	queue := w.turns[w.head]
	w.turns[w.head] = ""
	if w.head++; w.head > len(w.turns)/2 {
		w.turns = w.turns[:copy(w.turns, w.turns[w.head:])]
		w.head = 0
	}
	return queue
}
