package local

import (
	"container/heap"
	"time"
)

// step is the resolution of a schedule. A notification comes at the first multiple that is not before its time.
const step = 20 * time.Millisecond

// schedule holds the notifications for later, the earliest first.
type schedule struct {
	counts map[moment]int
	order  byTime // the keys of counts
}

// moment is a time to notify of a queue.
type moment struct {
	at    int64 // in steps since 1970
	queue string
}

func (m moment) time() time.Time { return time.Unix(0, m.at*int64(step)) }

func (s *schedule) add(queue string, at time.Time) {
	if s.counts == nil {
		s.counts = map[moment]int{}
	}
	m := moment{at: (at.UnixNano() + int64(step) - 1) / int64(step), queue: queue}
	if s.counts[m] == 0 {
		heap.Push(&s.order, m)
	}
	s.counts[m]++
}

// first returns the earliest moment; zero if there is none.
func (s *schedule) first() time.Time {
	if len(s.order) == 0 {
		return time.Time{}
	}
	return s.order[0].time()
}

// release moves the notifications that are due to w.
func (s *schedule) release(now time.Time, w *waiting) {
	for len(s.order) > 0 && !s.first().After(now) {
		m := heap.Pop(&s.order).(moment)
		w.add(m.queue, s.counts[m])
		delete(s.counts, m)
	}
}

// byTime implements heap.Interface.
type byTime []moment

func (h byTime) Len() int           { return len(h) }
func (h byTime) Less(i, j int) bool { return h[i].at < h[j].at }
func (h byTime) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push adds x, a moment.
func (h *byTime) Push(x any) { *h = append(*h, x.(moment)) }

// Pop removes and returns the last element.
func (h *byTime) Pop() any {
	last := len(*h) - 1
	m := (*h)[last]
	(*h)[last] = moment{}
	*h = (*h)[:last]
	return m
}
