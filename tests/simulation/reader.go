package simulation

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// habit is how a reader reads.
type habit struct {
	path      string        // only events with this path; empty: all
	limit     int           // of each request
	pause     time.Duration // the longest between two requests
	stateless bool          // with a new journal for each request
	stream    bool          // with Follow instead of ReadAfter
}

func (h habit) match() func(*event.Event) bool {
	if h.path == "" {
		return nil
	}
	return func(e *event.Event) bool { return e.Key.Path == h.path }
}

// segment is one response to a reader.
type segment struct {
	reader string
	habit  habit
	after  event.ID
	answer journal.Answer
}

// reader follows the journal to its end.
type reader struct {
	run    *run
	home   *home[*process]
	name   string
	habit  habit
	luck   *rand.Rand
	cursor event.ID
}

func (r *run) reader(name string, at int, h habit) {
	rd := &reader{run: r, home: r.homes.at(at), name: name, habit: h, luck: dice(r.plan.seed, name)}
	r.followers.Go(func() {
		for !r.finished(rd.cursor) {
			rd.wait()
			rd.request()
		}
		if r.ctx.Err() != nil {
			r.report("liveness", "reader %s is at %d and cannot reach the end", rd.name, rd.cursor)
		}
	})
}

func (rd *reader) wait() {
	time.Sleep(time.Duration(rd.luck.Int64N(int64(rd.habit.pause)+1)) + time.Microsecond)
}

// scanFor is how long a read goes on at least before it returns how far it came; that of a process that was frozen may end early.
const scanFor = 10 * time.Second

func (rd *reader) request() {
	p := rd.home.now()
	if rd.habit.stateless {
		p = p.stateless()
		defer func() { _ = p.Close() }()
	}
	request := journal.Request{
		After: rd.cursor, Match: rd.habit.match(), Limit: rd.habit.limit,
		Timeout: time.Duration(rd.luck.Int64N(int64(300 * time.Millisecond))),
	}
	if rd.habit.stream {
		rd.follow(p, request)
		return
	}
	began, acked := time.Now(), rd.run.newestAck()
	answer, err := p.ReadAfter(rd.run.ctx, request)
	if p.crashed() {
		return
	}
	whole := time.Since(began) < scanFor
	if rd.take(answer, err, began) && whole && rd.habit.limit == 0 && answer.LastEventID < acked {
		rd.run.report("acknowledged once", "reader %s was told of nothing after %d when %d was acknowledged", rd.name, answer.LastEventID, acked)
	}
}

// take checks and records a response, and returns false if it was torn or an error.
func (rd *reader) take(a journal.Answer, err error, began time.Time) bool {
	rd.run.note("reader %s after %d: %d events to %d, torn %v, %v", rd.name, rd.cursor, len(a.Events), a.LastEventID, a.Torn, err)
	if err != nil {
		if errors.Is(err, journal.ErrDamaged) {
			rd.run.report("complete followers", "reader %s: %v", rd.name, err)
		}
		time.Sleep(time.Duration(rd.luck.Int64N(int64(20 * time.Millisecond))))
		return false
	}
	before, now := rd.run.audit.floorAt(began), rd.run.audit.floorAt(time.Now())
	if a.Torn {
		rd.run.count("torn")
		if rd.cursor >= now.id {
			rd.run.report("torn is true", "reader %s is torn at %d, the floor is %d", rd.name, rd.cursor, now.id)
		}
		rd.restart()
		return false
	}
	if rd.cursor < before.id {
		rd.run.report("torn is true", "reader %s is not torn at %d, the floor was %d", rd.name, rd.cursor, before.id)
	}
	if a.LastEventID < rd.cursor {
		rd.run.report("nothing later", "reader %s went back from %d to %d", rd.name, rd.cursor, a.LastEventID)
	}
	rd.run.delivered(segment{reader: rd.name, habit: rd.habit, after: rd.cursor, answer: a})
	rd.cursor = a.LastEventID
	return true
}

// restart continues after a snapshot.
func (rd *reader) restart() {
	p := rd.home.now()
	if stamp, ok := rd.run.snapshot(p); ok {
		rd.cursor = stamp
	}
}

// follow reads up to 20 responses of Follow, then stops.
func (rd *reader) follow(p *process, request journal.Request) {
	began, answers := time.Now(), 1+rd.luck.IntN(20)
	for a, err := range p.Follow(rd.run.ctx, request, 50*time.Millisecond) {
		if p.crashed() {
			return
		}
		if answers--; !rd.take(a, err, began) || answers == 0 || rd.run.finished(rd.cursor) {
			return
		}
		began = time.Time{} // while Follow runs, the floor may pass the cursor
	}
}

// backward starts a reader that reads the newest events from time to time.
func (r *run) backward(name string, at int, h habit) {
	luck := dice(r.plan.seed, name)
	place := r.homes.at(at)
	r.followers.Go(func() {
		for !r.closing() {
			time.Sleep(time.Duration(luck.Int64N(int64(h.pause))) + time.Microsecond)
			p, acked := place.now(), r.newestAck()
			answer, err := p.ReadNewest(r.ctx, journal.Request{Match: h.match(), Limit: h.limit})
			if err != nil || p.crashed() {
				continue
			}
			if answer.LastEventID < acked {
				r.report("acknowledged once", "%s began after %d was acknowledged and ended at %d", name, acked, answer.LastEventID)
			}
			slices.Reverse(answer.Events)
			r.looked(glance{name: name, habit: h, answer: answer, floor: r.audit.floorAt(time.Now())})
		}
	})
}

// glance is a response to a reader of the newest events, in ascending order.
type glance struct {
	name   string
	habit  habit
	answer journal.Answer
	floor  floor // when the response had arrived
}
