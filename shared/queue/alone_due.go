package queue

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/queue/layout"
)

// dueTimes caches when entries fall due, for [alone].
type dueTimes struct {
	mu     sync.Mutex
	known  bool
	next   int64  // when the next entry falls due, in microseconds since 1970; 0: none
	passed string // there is no entry below this sort key
}

// promote also notifies of delayed entries whose time has come.
func (a *alone) promote(ctx context.Context) (next time.Time, err error) {
	delayed := a.notifyDelayed(ctx)
	at, err := a.promoteDue(ctx)
	if delayed != 0 && (at == 0 || delayed < at) {
		at = delayed
	}
	return timeOf(at), err
}

func (a *alone) promoteDue(ctx context.Context) (next int64, err error) {
	q, d := a.q, &a.due
	if at, known := d.upcoming(); known && (at == 0 || at > q.micro()) {
		return at, nil
	}
	if err := q.mayDecide(ctx); err != nil {
		return 0, err
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
			return 0, err
		}
		if last == "" {
			if first = d.settle(first, q.micro()); first != 0 {
				q.wakeForDue(first) // Race: Run may have asked while this look was under way, and been told that nothing falls due
			}
			return first, nil
		}
		d.passOver(last)
	}
}

// note notes a due entry that was stored.
func (d *dueTimes) note(p *layout.Place) {
	at := layout.DueTime(p)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known && (d.next == 0 || at < d.next) {
		d.next = at
	}
	d.passed = min(d.passed, p.At.Sort)
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
		below = min(below, layout.Stamp(d.next)) // others may be due in the same microsecond
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
	d.pass(layout.Stamp(max(first, now)))
	return d.next
}

// delays holds when lines are to be notified of their first entry, see delayed, in microseconds since 1970. One time for a line is
// enough: whoever is notified claims, and notes the next.
type delays struct {
	mu    sync.Mutex
	times map[layout.Line]int64
}

func (a *alone) delayed(l layout.Line, at int64) {
	a.delays.note(l, at)
	a.q.wakeForDue(at)
}

func (d *delays) note(l layout.Line, at int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.times == nil {
		d.times = map[layout.Line]int64{}
	}
	if before, noted := d.times[l]; !noted || at < before {
		d.times[l] = at
	}
}

// notifyDelayed notifies claimers of the lines whose time has come, and returns when the next one's comes; 0: none.
func (a *alone) notifyDelayed(ctx context.Context) (next int64) {
	lines, next := a.delays.take(a.q.micro())
	if len(lines) > 0 {
		a.q.notify(ctx, noticesOf(lines))
	}
	return next
}

// take removes and returns the lines whose time has come, and returns when the next one's comes; 0: none.
func (d *delays) take(now int64) (lines []layout.Line, next int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for l, at := range d.times {
		switch {
		case at <= now:
			lines = append(lines, l)
			delete(d.times, l)
		case next == 0 || at < next:
			next = at
		}
	}
	return lines, next
}
