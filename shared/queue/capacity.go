package queue

import "context"

// An instance runs at most as many tasks at once as its capacity. Its slots are those of a limit like any other, see limit.go: a
// lease takes one in the write that starts the task and gives it back in the write that ends the lease. So it never has more leases,
// however many claims it makes at once and to however many processes; and a lease that it has lost frees its slot when it runs out.

// instanceSlots holds the slots of an instance as a claim has read them.
type instanceSlots struct {
	what  string
	limit int
	mark  string   // of the claim, see [markOf]
	began bool     // the claim has started tasks, whose slots have the mark too
	used  *slotSet // taken slots; nil: to be read
}

func instanceLimit(instance string) string { return "at/" + instance }

// forget drops what was read, since the slots may have changed. s is nil for a claimer without a capacity.
func (s *instanceSlots) forget() {
	if s != nil {
		s.used = nil
	}
}

// begin notes that the claim has started tasks.
func (s *instanceSlots) begin() {
	if s != nil {
		s.began = true
	}
}

// isFull reports whether no slot is free, as far as was read.
func (s *instanceSlots) isFull() bool { return s != nil && s.used != nil && s.used.count() >= s.limit }

func (s *instanceSlots) read(ctx context.Context, q *Queue) (err error) {
	if s.used == nil {
		s.used, err = q.strategy.slots(ctx, s.what)
	}
	return err
}

// slotsOf returns the slots, unread, of a claimer with a capacity.
func slotsOf(by *Claimer) *instanceSlots {
	return &instanceSlots{what: instanceLimit(by.Instance), limit: by.Capacity, mark: markOf(by.Once)}
}

// freeFor returns for how many of max tasks a claimer has free slots. It costs one read, and another if there are none.
func (q *Queue) freeFor(ctx context.Context, r *instanceSlots, by *Claimer, max int) (int, error) {
	if r == nil {
		return max, nil
	}
	if err := r.read(ctx, q); err != nil {
		return 0, err
	}
	if r.isFull() {
		q.waiters.fill(by.Instance) // Race: a slot that becomes free from here on wakes it; one that did before is read now
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

// fill notes that an instance has no free slot: it is not woken for tasks until it has one.
func (s *waiters) fill(instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full == nil {
		s.full = map[string]bool{}
	}
	s.full[instance] = true
}

// empty notes that an instance has a free slot, and wakes it if it waits.
func (s *waiters) empty(instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.full[instance] {
		return
	}
	delete(s.full, instance)
	for i, w := range s.all {
		if w.by.Instance == instance {
			s.rouse(i, line{})
			return
		}
	}
}

// refill forgets which instances have no free slot, since other processes end leases too.
func (s *waiters) refill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.full)
}
