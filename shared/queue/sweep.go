package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// Swept counts what a sweep did.
type Swept struct {
	Lost     int // leases that had run out
	Released int // tasks that no rule held any more
	Moved    int // misplaced entries, whose job others run now than when they became ready
	Removed  int // finished tasks that were kept for [Options.History]
	Notified int // notifications of ready tasks
}

// Sweep repairs what died processes and lost notifications have left: it ends leases that have run out, releases entries that
// nothing holds any longer, promotes what has fallen due, moves misplaced entries, notifies claimers of ready tasks, removes
// entries left in lines of preferred instances, forgets empty lines, and cleans the history. It may run in several processes at
// once, and be interrupted anywhere.
//
// If the process's clock is off, the error is a [clock.Skew], and nothing is done.
func (q *Queue) Sweep(ctx context.Context) (Swept, error) {
	if err := q.mayDecide(ctx); err != nil {
		return Swept{}, err
	}
	s, err := q.upkeep(ctx)
	var cleaned error
	for until, more := q.now().Add(historyFor), true; more; more = cleaned == nil && q.now().Before(until) {
		removed := 0
		removed, cleaned = q.sweepHistory(ctx)
		if s.Removed += removed; removed < historySweep {
			break
		}
	}
	return s, errors.Join(err, cleaned)
}

// upkeep is a sweep without the history.
func (q *Queue) upkeep(ctx context.Context) (Swept, error) {
	q.sweeps.Store(true)
	var s Swept
	var errs [7]error
	_, errs[0] = q.Promote(ctx) // first, since it takes least
	s.Lost, _, errs[1] = q.sweepLeases(ctx, false)
	s.Released, errs[2] = q.releaseHolds(ctx)
	s.Moved, errs[3] = q.moveHomeLines(ctx)
	s.Notified, errs[4] = q.notifyReady(ctx)
	errs[5] = q.sweepPreferred(ctx)
	_, errs[6] = q.known.Forget(ctx)
	return s, errors.Join(errs[:]...)
}

// Redeclared applies definitions that have just changed to tasks that wait: it moves misplaced entries, and notifies claimers of
// ready tasks, of which more may be started than before. The next [Queue.Sweep] does what it leaves undone.
func (q *Queue) Redeclared(ctx context.Context) error {
	_, moveErr := q.moveHomeLines(ctx)
	_, noticeErr := q.notifyReady(ctx)
	return errors.Join(moveErr, noticeErr)
}

// mostNotices is how many notifications one look at ready tasks sends for one line at most. Workers that are woken go on while there
// is more, and notify others.
const mostNotices = 16

// notifyReady notifies claimers of ready tasks, in case earlier notifications were lost. Tasks of suspended queues are notified of
// when their queue is resumed.
func (q *Queue) notifyReady(ctx context.Context) (notified int, err error) {
	lines, err := q.known.Lines(ctx)
	if err != nil {
		return 0, err
	}
	rules, err := q.rules.InForce(ctx)
	if err != nil {
		return 0, err
	}
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return 0, err
	}
	var oldest time.Duration
	defer func() { q.measured.oldestWait.Store(int64(oldest)) }()
	for _, l := range rules.Going(set, lines) {
		notices, waited, parted, err := q.noticesReady(ctx, l)
		if err == nil && parted {
			err = q.parts.shrink(ctx, l)
		}
		if err != nil {
			return notified, err
		}
		oldest = max(oldest, waited)
		q.notify(ctx, notices)
		notified += len(notices)
	}
	return notified, nil
}

// noticesReady returns a notification for each ready task of a line, at most mostNotices, how long ago the oldest of these was created,
// and whether the line lies in several parts.
func (q *Queue) noticesReady(ctx context.Context, l layout.Line) (notices []notifier.Notice, waited time.Duration, parted bool, err error) {
	r := store.Range{Table: store.Work, Partition: layout.ReadyPartition(l), Limit: mostNotices, Eventual: true}
	page, err := q.store.Query(ctx, r)
	if err == nil && len(page.Items) > 0 && layout.IsSignpost(&page.Items[0]) {
		var post layout.Signpost
		if err := layout.Decode(&page.Items[0], &post); err != nil {
			return nil, 0, true, err
		}
		parted = true
		page, err = layout.QueryParts(ctx, q.store, layout.ReadyParts(l, post.Read), r)
	}
	if err != nil {
		return nil, 0, parted, layout.Failure("read a ready index", err)
	}
	items := page.Items[:min(len(page.Items), mostNotices)]
	return slices.Repeat([]notifier.Notice{l.Notice()}, len(items)), q.oldestOf(items), parted, nil
}

// sweepEvery is how often Run sweeps.
const sweepEvery = time.Minute

// Run promotes what falls due and ends leases that run out, each at its time, and sweeps once a minute, until ctx ends. It is for
// a process that has the store to itself; on AWS the functions cron and sweep do this.
func (q *Queue) Run(ctx context.Context) {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var cleaning sync.WaitGroup
	cleaning.Go(func() { q.cleanHistory(ctx) })
	defer cleaning.Wait()
	q.try("sweep", func() error { return q.sweepAnew(ctx) })
	q.wakeForDue(q.micro())
	q.wakeForLease(q.micro())
	for ctx.Err() == nil {
		now := q.micro()
		if q.alarms.over(&q.alarms.due, now) {
			q.try("promote what is due", func() error {
				next, err := q.Promote(ctx)
				if !next.IsZero() {
					q.wakeForDue(next.UnixMicro())
				}
				return err
			})
		}
		if q.alarms.over(&q.alarms.leases, now) {
			q.try("end leases", func() error {
				_, next, err := q.sweepLeases(ctx, false)
				if next != 0 {
					q.wakeForLease(next)
				}
				return err
			})
		}
		q.sleep(ctx, timer, sweep)
	}
}

// sweepAnew forgets what this process keeps of the store's content, so that no mistake in it outlives a sweep, and sweeps.
func (q *Queue) sweepAnew(ctx context.Context) error {
	q.strategy.doubt()
	_, err := q.upkeep(ctx)
	return err
}

func (q *Queue) try(doing string, act func() error) {
	if err := act(); err != nil && !errors.Is(err, context.Canceled) {
		q.log.Warn("upkeep of tasks failed; it is tried again", "doing", doing, "error", err)
		again := q.micro() + time.Second.Microseconds()
		q.wakeForDue(again)
		q.wakeForLease(again)
	}
}

// sleep waits until the next alarm or the end of ctx, and sweeps when it is time.
func (q *Queue) sleep(ctx context.Context, timer *time.Timer, sweep *time.Ticker) {
	for {
		at, wait := q.alarms.next(), sweepEvery
		if at != 0 {
			wait = max(0, time.Duration(at-q.micro())*time.Microsecond)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-sweep.C:
			q.try("sweep", func() error { return q.sweepAnew(ctx) })
		case <-q.alarms.set: // the next alarm may be earlier now
		}
	}
}
