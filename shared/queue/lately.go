package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/beside"
	"github.com/millrace/millrace/shared/queue/rule"
)

// In a process that shares a line out, whose claims come one upon the other, what a claim has read just now does for the next ones too: for
// lately. It is read again behind a claim before that is over, so that hardly any waits for it.

// lately is how long it does. Who changes a rule waits as long; of what others add that falls due, they notify.
const lately = rule.Settling

// renewal is a read behind claims, of which one is made at a time.
type renewal struct{ begun atomic.Bool }

// renewBehind begins a read behind a claim, unless one is under way. Whatever it meets, the claim that needs it reads again.
func (q *Queue) renewBehind(r *renewal, read func(context.Context)) {
	if !q.lasting || !r.begun.CompareAndSwap(false, true) {
		return
	}
	q.behind.do(func() {
		defer r.begun.Store(false)
		ctx, done := context.WithTimeout(context.Background(), behindFor)
		defer done()
		read(ctx)
	})
}

// readRules returns what returns the rules in force: where that is a request to the store, it is made beside what comes before their use,
// as one of reads. Which lines are kept for an instance is read for its claim, since it was told of a task there.
func (q *Queue) readRules(ctx context.Context, by *Claimer, reads *sync.WaitGroup) func() (*rule.Set, error) {
	if q.store.Exclusive() {
		return func() (*rule.Set, error) { return q.rules.InForce(ctx) }
	}
	if by.Name == "" && q.parts.takesPart() {
		if set, age := q.rules.Lately(); set != nil {
			if age >= lately/2 {
				q.renewBehind(&q.rulesRead, func(ctx context.Context) { _, _ = q.rules.InForce(ctx) })
			}
			return func() (*rule.Set, error) { return set, nil }
		}
	}
	var set *rule.Set
	wait := beside.Begin(reads, func() (err error) { set, err = q.rules.InForce(ctx); return err })
	return func() (*rule.Set, error) {
		err := wait()
		return set, err
	}
}

// dueThen is when the next entry fell due at a time.
type dueThen struct {
	at   int64 // microseconds since 1970
	next time.Time
}

// holds reports whether nothing has fallen due since, as far as was seen then.
func (d *dueThen) holds(now int64) bool {
	return d != nil && now >= d.at && now < d.at+lately.Microseconds() && (d.next.IsZero() || now < d.next.UnixMicro())
}

// isOld reports whether it holds for less than half of the time still.
func (d *dueThen) isOld(now int64) bool { return now >= d.at+lately.Microseconds()/2 }
