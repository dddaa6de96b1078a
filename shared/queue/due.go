package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

func timeOf(micro int64) time.Time {
	if micro == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micro)
}

// Promote makes entries ready that have fallen due, and returns when the next one falls due; zero if none does. The error is a
// [clock.Skew] if the process's clock is off; then claims, which promote first, fail too, so that this process gives no leases
// that others would take for expired.
func (q *Queue) Promote(ctx context.Context) (next time.Time, err error) {
	if next, err = q.strategy.promote(ctx); err != nil {
		q.wakeForDue(q.micro() + time.Second.Microseconds())
	}
	return next, err
}

// promoteFrom reads the due entries from a sort key on, makes those of one page ready that have fallen due, and returns the sort key
// of the last of these. If there is none, last is "", and first is when the first entry falls due; 0 if there is no entry.
func (q *Queue) promoteFrom(ctx context.Context, from string) (last string, first int64, err error) {
	found, _, err := layout.Places(ctx, q.store, store.Range{Table: store.Work, Partition: layout.PartitionDue, From: from, Limit: moves})
	if err != nil || len(found) == 0 {
		return "", 0, err
	}
	due, now := 0, q.micro()
	for due < len(found) && layout.DueTime(&found[due]) <= now {
		due++
	}
	if due == 0 {
		return "", layout.DueTime(&found[0]), nil
	}
	last = found[due-1].At.Sort
	ticks := slices.Clone(found[:due])
	rest := slices.DeleteFunc(found[:due], func(p layout.Place) bool { return p.Late != "" })
	ticks = slices.DeleteFunc(ticks, func(p layout.Place) bool { return p.Late == "" })
	return last, 0, errors.Join(q.move(ctx, rest), q.fallDue(ctx, ticks))
}

// NotifyDue sends the notifier a notification, delayed until its time, for each entry that falls due up to until, and
// returns how many it has sent. It is for the cron function; other processes then need not look.
func (q *Queue) NotifyDue(ctx context.Context, until time.Time) (notified int, err error) {
	set, err := q.definitions.Current(ctx)
	if err != nil {
		return 0, err
	}
	var notices []notifier.Notice
	var lag time.Duration
	defer func() { q.measured.dueLag.Store(int64(lag)) }()
	for p, err := range layout.Entries(ctx, q.store, store.Range{Table: store.Work, Partition: layout.PartitionDue, To: layout.Stamp(until.UnixMicro() + 1)}) {
		if err != nil {
			return notified, err
		}
		lag = max(lag, q.since(layout.DueTime(&p)))
		p.Settle(set) // where it goes when its time comes
		if notices = append(notices, notifier.Notice{Queue: p.Line().String(), At: time.UnixMicro(layout.DueTime(&p))}); len(notices) == listPage {
			q.notify(ctx, notices)
			notified, notices = notified+len(notices), nil
		}
	}
	q.notify(ctx, notices)
	return notified + len(notices), nil
}
