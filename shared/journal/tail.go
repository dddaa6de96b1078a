package journal

import (
	"context"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// What a tail keeps at most: enough that followers close to the end need not read the store.
const (
	tailSlots = 8192
	tailBytes = 8 << 20
)

// tail holds the newest slots that this process knows. Its writers announce what they wrote, its readers add what they read;
// waiting readers are woken when the contiguous run grows.
type tail struct {
	mu      sync.Mutex
	next    int64              // every position below is filled; 0: nothing is known yet
	last    event.ID           // the last id below next, or unknownID
	ring    []slot             // the newest slots, contiguous, up to next-1
	bytes   int                // of their events
	parked  map[int64]slot     // announced slots above a position that is still missing
	waits   int                // bytes of their events
	changed chan struct{}      // closed when next grows; made by end
	waiting int                // readers that wait; the journal polls while there are any
	stop    context.CancelFunc // ends the polling
}

const unknownID = event.ID(math.MaxInt64)

func newTail() *tail { return &tail{parked: map[int64]slot{}} }

// filled announces that a slot holds s.
func (t *tail) filled(s slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.next == 0 || s.position < t.next:
		return
	case s.position > t.next:
		t.park(s)
		return
	}
	t.push(s)
	t.drain()
	t.wake()
}

// park keeps a slot until those before it are there. Beyond the bounds it is not kept, and readers read the store.
func (t *tail) park(s slot) {
	_, twice := t.parked[s.position]
	if size := s.size(); !twice && len(t.parked) < tailSlots && t.waits+size <= tailBytes {
		t.parked[s.position] = s
		t.waits += size
	}
}

// unpark takes a slot out, if it is there.
func (t *tail) unpark(position int64) (s slot, ok bool) {
	if s, ok = t.parked[position]; ok {
		delete(t.parked, position)
		t.waits -= s.size()
	}
	return s, ok
}

// feed adds a contiguous run read from the store.
func (t *tail) feed(run []slot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.next
	for _, s := range run {
		if t.next > 0 && s.position == t.next {
			t.unpark(s.position)
			t.push(s)
		}
	}
	if t.next > before {
		t.drain()
		t.wake()
	}
}

// start notes that every position below next is filled, last being the last id below it. A lower next has no effect.
func (t *tail) start(next int64, last event.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next <= t.next {
		return
	}
	t.next, t.last, t.ring, t.bytes = next, last, nil, 0
	for position := range t.parked {
		if position < next {
			t.unpark(position)
		}
	}
	t.drain()
	t.wake()
}

func (t *tail) drain() {
	for len(t.parked) > 0 {
		s, ok := t.unpark(t.next)
		if !ok {
			return
		}
		t.push(s)
	}
}

func (t *tail) push(s slot) {
	t.ring = append(t.ring, s)
	t.bytes += s.size()
	t.next, t.last = s.position+1, s.last
	for len(t.ring) > tailSlots || t.bytes > tailBytes && len(t.ring) > 1 {
		t.bytes -= t.ring[0].size()
		t.ring[0] = slot{} // for the collector
		t.ring = t.ring[1:]
	}
}

func (t *tail) wake() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// end returns the position after the contiguous run, and a channel that is closed when that grows.
func (t *tail) end() (next int64, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.next, t.changed
}

// awaits reports whether a slot is the next of the contiguous run, and none after it was announced.
func (t *tail) awaits(position int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return position == t.next && len(t.parked) == 0
}

// holds reports whether a slot is in the contiguous run, and still kept.
func (t *tail) holds(position int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return position < t.next && position >= t.next-int64(len(t.ring))
}

// run returns the slots from position `from` on, at most to `to` and at most a page; nil if the tail does not hold the first.
func (t *tail) run(from, to int64) []slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.next - int64(len(t.ring))
	if from < first || from >= t.next {
		return nil
	}
	to = min(to, t.next-1, from+pageSize-1)
	return slices.Clone(t.ring[from-first : to-first+1])
}

// locate returns the first position that may hold ids above after, if the tail knows.
func (t *tail) locate(after event.ID) (position int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == 0 || t.last == unknownID {
		return 0, false
	}
	if after >= t.last {
		return t.next, true
	}
	if len(t.ring) == 0 || after < t.ring[0].last {
		return 0, false
	}
	i := sort.Search(len(t.ring), func(i int) bool { return t.ring[i].last > after })
	return t.ring[i].position, true
}

func (s *slot) size() int {
	size := 64
	for i := range s.events {
		size += 120 + len(s.events[i].Fields)
	}
	return size
}

// await waits until the contiguous run has grown beyond position, until the timer fires, or until ctx ends; it reports
// whether the run has grown.
func (j *Journal) await(ctx context.Context, position int64, timer <-chan time.Time) (bool, error) {
	j.tail.join(j)
	defer j.tail.leave()
	for {
		next, changed := j.tail.end()
		if next > position+1 {
			return true, nil
		}
		select {
		case <-changed:
		case <-timer:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-j.ctx.Done():
			return false, ErrClosed
		}
	}
}

// join counts a waiting reader, and starts polling for the first.
func (t *tail) join(j *Journal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting++
	if t.waiting > 1 || j.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(j.ctx)
	t.stop = stop
	j.group.Go(func() { j.poll(ctx) })
}

func (t *tail) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting--
	if t.waiting == 0 && t.stop != nil {
		t.stop()
		t.stop = nil
	}
}

// poll reads the sequencer for all waiting readers of this process, and the slots that other processes have written. An
// eventually consistent read suffices, since it is repeated.
func (j *Journal) poll(ctx context.Context) {
	interval := j.timing.Poll
	for {
		timer := time.NewTimer(interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		interval = min(interval+j.timing.Poll/10, 5*j.timing.Poll)
		seq, err := j.store.Sequence(ctx, j.keys.sequencer(), true)
		next, _ := j.tail.end()
		if err != nil || next == 0 || seq.Position < next {
			continue
		}
		interval = j.timing.Poll
		for next <= seq.Position {
			run, err := j.slots(ctx, next, seq.Position)
			if err != nil {
				j.log.DebugContext(ctx, "following paused", "position", next, "error", err)
				break
			}
			next = run[len(run)-1].position + 1
		}
	}
}
