package queue

import (
	"context"
	"sync"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// alone is the strategy of a process that has the store to itself. What it keeps in memory is exact, since it learns of each write:
// the head of each ready index, and when entries fall due. Reading these instead would step
// over all entries that were ever deleted. An error in it costs a write that is refused, and lasts until the next sweep at most.
type alone struct {
	q       *Queue
	due     dueTimes
	delays  delays
	mu      sync.RWMutex
	windows map[layout.Line]*window
}

func newAlone(q *Queue) *alone { return &alone{q: q} }

// idCondition returns none: created gives each microsecond once, so that an id is new without a check.
func (a *alone) removesLater(string) bool { return false }

func (a *alone) remove(context.Context, []layout.Place) {}

func (a *alone) idCondition() store.Condition { return store.Always }

// lookOut does nothing: whoever waits is notified of everything that becomes ready.
func (a *alone) lookOut() (stop context.CancelFunc) { return func() {} }

func (a *alone) stored(p *layout.Place) (notice notifier.Notice, needed bool) {
	if p.At.Partition == layout.PartitionDue {
		a.due.note(p)
		a.q.wakeForDue(layout.DueTime(p))
		return notice, false
	}
	a.window(p.Line()).add(*p)
	return p.Line().Notice(), true
}

func (a *alone) readEarly(context.Context, *Claimer, int, bool) *Early { return nil }

func (a *alone) readInPlace(context.Context, *Claimer, layout.Line) *Early { return nil }

func (a *alone) doubt() {
	a.q.rules.Forget()
	a.due.forget()
	a.q.limits.Forget()
	a.forgetWindows()
}

// aloneView is the view of a claim by [alone].
type aloneView struct {
	*alone
	c *claim
}

func (a *alone) view(c *claim) claimView { return &aloneView{alone: a, c: c} }

func (v *aloneView) pick(ctx context.Context, n int) ([]layout.Place, error) {
	return v.best(ctx, v.c.lines, n)
}

func (v *aloneView) putBack(ctx context.Context, left []layout.Place, full bool) {
	var notices []notifier.Notice
	for _, p := range left {
		v.window(p.Line()).add(p)
		if !full && len(notices) < mostNotices { // claimers may have missed them meanwhile
			notices = append(notices, p.Line().Notice())
		}
	}
	v.q.notify(ctx, notices)
}

// keyFull does nothing: what the key holds is moved away when it is met.
func (v *aloneView) keyFull(string) {}

func (v *aloneView) settled(_, _ []layout.Place) {}

func (v *aloneView) rival() {}

func (v *aloneView) handOver(context.Context) {}

func (v *aloneView) precedes(ctx context.Context, rank string) bool {
	return v.alone.precedes(ctx, v.c.lines, rank)
}

// contested returns none but an ordered queue's limit: claims of one instance come one by one, and slots of a queue are reserved.
func (v *aloneView) contested() []string {
	if v.c.queue.Type == definition.Ordered {
		return []string{layout.QueueLimit(v.c.queue.Name)}
	}
	return nil
}

// readOrder does nothing: claims of an ordered queue come one by one in a process.
func (v *aloneView) readOrder(context.Context) error { return nil }

func (v *aloneView) countStart() []store.Op { return nil }
