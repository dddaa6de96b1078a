package queue

import "context"

// An instance runs as many tasks at once as it has said. Its places are those of a limit like any other, see limit.go: a lease
// takes one in the write that starts the task and gives it back in the one that ends it. So however many claims it makes at
// once, and to however many processes, it never has more; and what it lost with a lease it has again when that has run out.

// room is an instance's places as a claim knows them.
type room struct {
	what  string
	limit int
	mark  string    // of the claim, see [markOf]
	began bool      // the claim has started tasks, which have the mark too
	used  *occupied // nil: to be read
}

func instanceLimit(instance string) string { return "at/" + instance }

// forget says that the places may have changed. A claimer without a limit has no room at all, which is nil.
func (r *room) forget() {
	if r != nil {
		r.used = nil
	}
}

// begin notes that the claim has started tasks.
func (r *room) begin() {
	if r != nil {
		r.began = true
	}
}

// isFull reports whether no place is left, as far as is known.
func (r *room) isFull() bool { return r != nil && r.used != nil && r.used.count() >= r.limit }

func (r *room) read(ctx context.Context, q *Queue) (err error) {
	if r.used == nil {
		r.used, err = q.usedPermits(ctx, r.what)
	}
	return err
}

// roomOf returns the places of a claimer that names a capacity.
func roomOf(by *Claimer) *room {
	return &room{what: instanceLimit(by.Instance), limit: by.Capacity, mark: markOf(by.Once)}
}

// roomFor returns for how many of max tasks a claimer has room. It costs one read, and another where there is none.
func (q *Queue) roomFor(ctx context.Context, r *room, by *Claimer, max int) (int, error) {
	if r == nil {
		return max, nil
	}
	if err := r.read(ctx, q); err != nil {
		return 0, err
	}
	if r.isFull() {
		q.waiters.fill(by.Instance) // Race: a place that becomes free from here on wakes it; one that did before is seen now
		r.forget()
		if err := r.read(ctx, q); err != nil {
			return 0, err
		}
	}
	free := r.limit - r.used.count()
	if free > 0 {
		q.waiters.empty(by.Instance)
	}
	return min(max, free), nil
}

// fill notes that an instance has no room: it is woken for no task until it has.
func (s *waiters) fill(instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full == nil {
		s.full = map[string]bool{}
	}
	s.full[instance] = true
}

// empty notes that an instance has room, and wakes it if it waits for that.
func (s *waiters) empty(instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.full[instance] {
		return
	}
	delete(s.full, instance)
	for i, w := range s.all {
		if w.by.Instance == instance {
			s.rouse(i, roomLine)
			return
		}
	}
}

// roomLine stands for the line of one that is woken since it has room: no task waits there, so that nobody else is woken
// when it does not look.
const roomLine = "\n"

// refill takes every instance for one that may have room, since other processes end leases too.
func (s *waiters) refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.full)
}
