package worker

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/bell"
)

// ear listens to the bell. Rings for tasks that busy workers have met on their own wait there in any number: as long as
// nothing is found for a full hand of rings, the next is twice as large.
//
// A ring that comes early is kept for its time, while further ones are heard: bells count in seconds perhaps.
type ear struct {
	bell  bell.Receiver
	heard int // rings of the last time, if that were as many as were asked for

	listening bool // a call of Receive is under way, or its answer is there
	answers   chan answer
	due       chan struct{} // a ring that was kept has its time
}

type answer struct {
	rings []bell.Ring
	limit int // that were asked for
	err   error
}

func newEar(b bell.Receiver) *ear {
	return &ear{bell: b, answers: make(chan answer, 1), due: make(chan struct{}, 1)}
}

// maxRings is how many are asked for at most.
const maxRings = 1 << 16

// listen waits for a ring for now. The error is that of the bell, which is the context's when ctx has ended.
func (e *ear) listen(ctx context.Context, free int) error {
	for {
		if !e.listening {
			e.listening = true
			limit := min(max(free, 2*e.heard), maxRings)
			go func() {
				rings, err := e.bell.Receive(ctx, limit)
				e.answers <- answer{rings, limit, err}
			}()
		}
		select {
		case a := <-e.answers:
			e.listening, e.heard = false, 0
			if len(a.rings) == a.limit {
				e.heard = a.limit
			}
			if a.err != nil || e.keep(a.rings) < len(a.rings) {
				return a.err
			}
		case <-e.due:
			return nil
		}
	}
}

// keep sees to it that early rings are heard at their time, and answers how many these are. What is later than a bell may
// be early was rung for now: the bell does not keep longer delays.
func (e *ear) keep(rings []bell.Ring) (kept int) {
	for _, ring := range rings {
		if early := time.Until(ring.At); early > 0 && early <= mostEarly {
			kept++
			time.AfterFunc(early+slack, func() {
				select {
				case e.due <- struct{}{}:
				default: // one look is for all
				}
			})
		}
	}
	return kept
}

// mostEarly is how early a ring may come, and as much again for a clock that is behind.
const mostEarly = 2 * time.Second

// slack is for a clock that is set back a little while a timer runs: who looks too early finds nothing.
const slack = time.Millisecond

// AwaitRing waits until the time of a ring that came early, or until ctx ends. It is for a host that hears rings itself.
func AwaitRing(ctx context.Context, ring bell.Ring) {
	early := time.Until(ring.At)
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
