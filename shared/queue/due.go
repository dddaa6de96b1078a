package queue

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/store"
)

// noticeAhead is how far ahead a process that shares the store notifies of a due entry that it stores: for entries due later, the
// next tick of the cron function notifies.
const noticeAhead = 2 * time.Minute

// dueTimes caches when entries fall due, for a process that has the store to itself.
type dueTimes struct {
	mu     sync.Mutex
	known  bool
	next   int64  // when the next entry falls due, in microseconds since 1970; 0: none
	passed string // there is no entry below this sort key
}

// note notes a due entry that was stored, and returns the notifications that it needs.
func (d *dueTimes) note(q *Queue, p *place) []notifier.Notice {
	at := dueTime(p)
	if q.store.Exclusive() {
		d.mu.Lock()
		if d.known && (d.next == 0 || at < d.next) {
			d.next = at
		}
		d.passed = min(d.passed, p.key.Sort)
		d.mu.Unlock()
		q.wakeForDue(at)
		return nil
	}
	if at > q.micro()+noticeAhead.Microseconds() {
		return nil // the cron function notifies
	}
	return []notifier.Notice{{Queue: p.line(), At: time.UnixMicro(at)}}
}

// dueTime returns when a due entry falls due, in microseconds since 1970.
func dueTime(p *place) int64 { return unstamp(p.key.Sort) }

// Promote makes entries ready that have fallen due, and returns when the next one falls due; zero if none does. The error is a
// [clock.Skew] if the process's clock is off; then claims, which promote first, fail too, so that this process gives no leases
// that others would take for expired.
func (q *Queue) Promote(ctx context.Context) (next time.Time, err error) {
	if at, known := q.due.upcoming(); known && q.store.Exclusive() && (at == 0 || at > q.micro()) {
		return timeOf(at), nil
	}
	if err := q.mayDecide(ctx); err != nil {
		return time.Time{}, err
	}
	defer q.promoting.lock("due")()
	defer func() {
		if err != nil {
			q.due.forget() // what is due next was not found out
			q.wakeForDue(q.micro() + time.Second.Microseconds())
		}
	}()
	for {
		from := ""
		if q.store.Exclusive() {
			from = q.due.begin()
		}
		found, _, err := q.places(ctx, store.Range{Table: store.Work, Partition: partitionDue, From: from, Limit: moves})
		if err != nil {
			return time.Time{}, err
		}
		due, now := 0, q.micro()
		for due < len(found) && dueTime(&found[due]) <= now {
			due++
		}
		if due == 0 {
			return q.dueNext(found, now), nil
		}
		if err := q.move(ctx, found[:due]); err != nil {
			return time.Time{}, err
		}
		q.due.passOver(found[due-1].key.Sort)
	}
}

// dueNext returns when the next entry falls due, after a look that has found none due yet.
func (q *Queue) dueNext(found []place, now int64) time.Time {
	var first int64
	if len(found) > 0 {
		first = dueTime(&found[0])
	}
	if !q.store.Exclusive() {
		return timeOf(first)
	}
	first = q.due.settle(first, now)
	if first != 0 {
		q.wakeForDue(first) // Race: Run may have asked while this look was under way, and been told that nothing falls due
	}
	return timeOf(first)
}

func timeOf(micro int64) time.Time {
	if micro == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micro)
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

// NotifyDue sends the notifier a notification, delayed until its time, for each entry that falls due up to until, and
// returns how many it has sent. It is for the cron function; other processes then need not look.
func (q *Queue) NotifyDue(ctx context.Context, until time.Time) (notified int, err error) {
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return 0, err
	}
	var notices []notifier.Notice
	for p, err := range q.entries(ctx, store.Range{Table: store.Work, Partition: partitionDue, To: stamp(until.UnixMicro() + 1)}) {
		if err != nil {
			return notified, err
		}
		p.settle(set) // where it goes when its time comes
		if notices = append(notices, notifier.Notice{Queue: p.line(), At: time.UnixMicro(dueTime(&p))}); len(notices) == listPage {
			q.notify(ctx, notices)
			notified, notices = notified+len(notices), nil
		}
	}
	q.notify(ctx, notices)
	return notified + len(notices), nil
}
