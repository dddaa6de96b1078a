package queue

import (
	"context"
	"sync"
	"time"
)

// dueTimes caches when entries fall due, for [alone].
type dueTimes struct {
	mu     sync.Mutex
	known  bool
	next   int64  // when the next entry falls due, in microseconds since 1970; 0: none
	passed string // there is no entry below this sort key
}

func (a *alone) promote(ctx context.Context) (next time.Time, err error) {
	q, d := a.q, &a.due
	if at, known := d.upcoming(); known && (at == 0 || at > q.micro()) {
		return timeOf(at), nil
	}
	if err := q.mayDecide(ctx); err != nil {
		return time.Time{}, err
	}
	q.promoting.Lock()
	defer q.promoting.Unlock()
	defer func() {
		if err != nil {
			d.forget() // what is due next was not found out
		}
	}()
	for {
		last, first, err := q.promoteFrom(ctx, d.begin())
		if err != nil {
			return time.Time{}, err
		}
		if last == "" {
			if first = d.settle(first, q.micro()); first != 0 {
				q.wakeForDue(first) // Race: Run may have asked while this look was under way, and been told that nothing falls due
			}
			return timeOf(first), nil
		}
		d.passOver(last)
	}
}

// note notes a due entry that was stored.
func (d *dueTimes) note(p *place) {
	at := dueTime(p)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known && (d.next == 0 || at < d.next) {
		d.next = at
	}
	d.passed = min(d.passed, p.key.Sort)
}

// upcoming returns when the next entry falls due, 0 if none does, and whether that is known.
func (d *dueTimes) upcoming() (at int64, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.next, d.known
}

func (d *dueTimes) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known, d.next, d.passed = false, 0, ""
}

// begin returns the sort key from which to look, and sets next to none, so that only entries that are stored during the look set
// it.
func (d *dueTimes) begin() (from string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known, d.next = true, 0
	return d.passed
}

// passOver notes that a look has left no entry below a sort key, except those noted meanwhile.
func (d *dueTimes) passOver(below string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pass(below)
}

func (d *dueTimes) pass(below string) {
	if d.next != 0 {
		below = min(below, stamp(d.next)) // others may be due in the same microsecond
	}
	if d.known { // otherwise all is to be read again
		d.passed = below
	}
}

// settle notes that a look has found no entry due before first, 0 if none at all, and returns when the next one falls due, which
// may have been noted meanwhile. It saves the next look a search over all deleted entries.
func (d *dueTimes) settle(first, now int64) (next int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if first != 0 && (d.next == 0 || first < d.next) {
		d.next = first
	}
	d.pass(stamp(max(first, now)))
	return d.next
}
