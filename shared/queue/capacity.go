package queue

import (
	"context"
	"sync"

	"github.com/millrace/millrace/shared/beside"
	"github.com/millrace/millrace/shared/limit"
	"github.com/millrace/millrace/shared/queue/layout"
)

// An instance runs at most as many tasks at once as its capacity. Its slots are those of a limit like any other: a
// lease takes one in the write that starts the task and gives it back in the write that ends the lease. So it never has more leases,
// however many claims it makes at once and to however many processes; and a lease that it has lost frees its slot when it runs out.

// instanceSlots holds the slots of an instance as a claim has read them.
type instanceSlots struct {
	limit.Wanted              // of one slot for each task, with the mark of the claim, see [markOf]
	began        bool         // the claim has started tasks, whose slots have the mark too
	taken        *limit.Set   // nil: to be read
	freed        []limit.Slot // slots that are given back in the same write, and count as free
}

// forget drops what was read, since the slots may have changed. s is nil for a claimer without a capacity.
func (s *instanceSlots) forget() {
	if s != nil {
		s.taken = nil
	}
}

// begin notes that the claim has started tasks.
func (s *instanceSlots) begin() {
	if s != nil {
		s.began = true
	}
}

// isFull reports whether no slot is free, as far as was read.
func (s *instanceSlots) isFull() bool { return s != nil && s.taken != nil && s.taken.Count() >= s.Most }

// others returns how many slots a claim may take besides those that are given back in the same write, as far as was read.
func (s *instanceSlots) others() int {
	others := s.Most - s.taken.Below(s.Most)
	for i := range s.freed {
		if s.freed[i].Number < s.Most {
			others--
		}
	}
	return others
}

func (s *instanceSlots) read(ctx context.Context, q *Queue) (err error) {
	if s.taken == nil {
		if s.taken, err = q.limits.Read(ctx, s.Limit); err == nil {
			s.taken.Free(s.freed)
		}
	}
	return layout.Failure("read a limit", err)
}

// readAhead reads the slots of an instance where that is a request to the store, beside what comes until the function that it returns is
// called, unless that was begun early. An error is left to whoever needs the slots, and reads them again.
func (q *Queue) readAhead(ctx context.Context, s *instanceSlots, early *Early) (wait func()) {
	if q.store.Exclusive() {
		return func() {}
	}
	if early == nil {
		var reads sync.WaitGroup
		read := beside.Begin(&reads, func() error { return s.read(ctx, q) })
		return func() { _ = read() }
	}
	return func() { s.know(early) }
}

// know takes the slots that were read early, if they could be.
func (s *instanceSlots) know(e *Early) {
	if s.taken = e.slots(); s.taken != nil {
		s.taken.Free(s.freed)
	}
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
	free := r.Most - r.taken.Count()
	if free > 0 {
		q.waiters.empty(by.Instance)
	}
	return min(max, free), nil
}
