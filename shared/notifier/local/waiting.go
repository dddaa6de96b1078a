package local

import "github.com/millrace/millrace/shared/notifier"

// waiting counts the due notifications of each queue, and holds the order of the queues' turns.
type waiting struct {
	counts map[string]int // of queues with at least one notification
	turns  []string       // the keys of counts, each once; the next one is at head
	head   int
}

// maxNotices is how many notifications of a queue are kept at most: more than a process has workers, and each worker looks
// for more tasks after it found one. Without it a receiver beside a large backlog would receive a notification for each
// task.
const maxNotices = 4096

func (w *waiting) empty() bool { return len(w.counts) == 0 }

func (w *waiting) add(queue string, n int) {
	if w.counts == nil {
		w.counts = map[string]int{}
	}
	if w.counts[queue] == 0 {
		w.turns = append(w.turns, queue)
	}
	w.counts[queue] = min(w.counts[queue]+n, maxNotices)
}

// take removes and returns up to limit notifications, one of each queue in turn.
func (w *waiting) take(limit int) []notifier.Notice {
	var notices []notifier.Notice
	for len(notices) < limit && !w.empty() {
		queue := w.next()
		notices = append(notices, notifier.Notice{Queue: queue})
		if w.counts[queue]--; w.counts[queue] == 0 {
			delete(w.counts, queue)
			continue
		}
		w.turns = append(w.turns, queue)
	}
	return notices
}

// next removes and returns the queue whose turn it is. It reclaims the front of turns once that is more than half of it.
func (w *waiting) next() string {
	queue := w.turns[w.head]
	w.turns[w.head] = ""
	if w.head++; w.head > len(w.turns)/2 {
		w.turns = w.turns[:copy(w.turns, w.turns[w.head:])]
		w.head = 0
	}
	return queue
}
