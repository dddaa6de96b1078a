package worker

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/notifier"
)

// ear receives notifications from the notifier. Any number may wait there for tasks that busy workers have
// run already: while each call returns as many as were asked for and no task is found, the next asks for twice as many.
//
// A notification that comes before its time is kept until then, while others are received: notifiers may delay by whole
// seconds only.
type ear struct {
	notifier notifier.Receiver
	heard    int // notifications received the last time, if as many as were asked for; otherwise 0

	listening bool // a call of Receive is under way, or its result is waiting
	answers   chan answer
	due       chan struct{} // the time of a kept notification has come
}

type answer struct {
	notices []notifier.Notice
	limit   int // that were asked for
	err     error
}

func newEar(b notifier.Receiver) *ear {
	return &ear{notifier: b, answers: make(chan answer, 1), due: make(chan struct{}, 1)}
}

// maxNotices is how many notifications are asked for at once at most.
const maxNotices = 1 << 16

// listen waits for a notification whose time has come. The error is the notifier's, which is the context's when ctx has ended.
func (e *ear) listen(ctx context.Context, free int) error {
	for {
		if !e.listening {
			e.listening = true
			limit := min(max(free, 2*e.heard), maxNotices)
			go func() {
				notices, err := e.notifier.Receive(ctx, limit)
				e.answers <- answer{notices, limit, err}
			}()
		}
		select {
		case a := <-e.answers:
			e.listening, e.heard = false, 0
			if len(a.notices) == a.limit {
				e.heard = a.limit
			}
			if a.err != nil || e.keep(a.notices) < len(a.notices) {
				return a.err
			}
		case <-e.due:
			return nil
		}
	}
}

// keep sets a timer for each early notification, and returns how many these are. One that is more than mostEarly before its
// time is for now: the notifier could not delay it for longer.
func (e *ear) keep(notices []notifier.Notice) (kept int) {
	for _, notice := range notices {
		if early := time.Until(notice.At); early > 0 && early <= mostEarly {
			kept++
			time.AfterFunc(early+slack, func() {
				select {
				case e.due <- struct{}{}:
				default: // one claim serves all
				}
			})
		}
	}
	return kept
}

// mostEarly is how early a notification may come: a second, and as much again for a clock that is behind.
const mostEarly = 2 * time.Second

// slack is added to timers for a clock that is set back a little meanwhile: a claim that is too early finds nothing.
const slack = time.Millisecond

// AwaitNotice waits until the time of a notification that came early, or until ctx ends. It is for a host that receives
// notifications itself.
func AwaitNotice(ctx context.Context, notice notifier.Notice) {
	early := time.Until(notice.At)
	if early <= 0 || early > mostEarly {
		return
	}
	timer := time.NewTimer(early + slack)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
