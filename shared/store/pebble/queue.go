package pebble

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/millrace/millrace/shared/store"
)

// maxGroup bounds the values of a group, so that a batch fits in memory and no writer waits long for the others' bytes.
const maxGroup = 8 << 20

// pending is a write that waits for its group.
type pending struct {
	write   store.Write
	size    int // of its values
	remove  *store.Range
	expired [][]byte // keys of items to be deleted if they are expired
	idle    [][]byte // keys of sequencers to be deleted if nobody has reserved of them
	load    []store.Record
	err     error         // what commit returns, set before ready
	ready   chan struct{} // buffered, 1: receives one element when the group is done
}

func newPending(remove *store.Range) *pending {
	return &pending{remove: remove, ready: make(chan struct{}, 1)}
}

// queue holds the writes that wait while the committer is busy with the group before them. The committer is a goroutine of its
// own, so that it may block on a broken disk while the waiting calls return.
type queue struct {
	mu      sync.Mutex
	waiting []*pending
	spare   []*pending    // the group before last, to be used again
	used    sync.Pool     // pending writes to be used again
	some    chan struct{} // buffered, 1: notifies the committer that a write waits
	stop    chan struct{} // closed by Close
	stopped chan struct{} // closed by the committer
	busy    bool          // a group is being committed
	crowded bool          // the newest group had several writes, or a write has come since it was taken

	group group // the committer's
}

func (q *queue) open() {
	q.some, q.stop, q.stopped = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
}

// commit has p committed with its group. When ctx ends, p is withdrawn if the committer has not taken it yet; otherwise commit
// waits for the outcome, which an Exclusive store must know.
func (s *Store) commit(ctx context.Context, p *pending) error {
	s.queue.join(p)
	left := ctx.Done()
	for {
		select {
		case <-p.ready:
			return p.err
		case <-s.failure.dead:
			return s.lost()
		case <-left:
			if s.queue.withdraw(p) {
				return ctx.Err()
			}
			left = nil
		}
	}
}

// lost returns the error of a write that was under way when the store failed.
func (s *Store) lost() error { return fmt.Errorf("%w: %w", store.ErrUnknown, s.failure.get()) }

func (q *queue) join(p *pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, p)
	q.crowded = q.crowded || q.busy
	if len(q.waiting) == 1 {
		select {
		case q.some <- struct{}{}:
		default:
		}
	}
}

// withdraw takes back a write, and reports whether that was in time: the committer had not taken it, and will not.
func (q *queue) withdraw(p *pending) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.waiting, p)
	if at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
	}
	return at >= 0
}

// gather yields to other goroutines for as long as that brings further writers into the group: the write that woke the
// committer would otherwise be synced alone, with all others in the next group. For a single writer it does not yield, since that
// wakes another thread.
func (q *queue) gather() {
	for before := 0; ; {
		q.mu.Lock()
		now, alone := len(q.waiting), len(q.waiting) == 1 && !q.crowded
		q.mu.Unlock()
		if now <= before || alone {
			return
		}
		before = now
		runtime.Gosched()
	}
}

// take removes and returns the writes of the next group.
func (q *queue) take() []*pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	all, n := q.waiting, 0
	for size := 0; n < len(all) && size < maxGroup; n++ {
		size += all[n].size
	}
	if q.busy = n > 0; q.busy {
		q.crowded = n > 1
	}
	q.waiting = append(q.spare[:0], all[n:]...)
	clear(all[n:])
	return all[:n]
}

func (q *queue) giveBack(group []*pending) {
	clear(group)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spare = group
}

// work commits one group after the other until the store is closed.
func (s *Store) work() {
	q := &s.queue
	defer close(q.stopped)
	for {
		q.gather()
		group := q.take()
		if len(group) > 0 {
			s.apply(group)
			for _, p := range group {
				p.ready <- struct{}{}
			}
		}
		q.giveBack(group)
		if len(group) > 0 {
			continue
		}
		select {
		case <-q.some:
		case <-q.stop:
			return
		}
	}
}
