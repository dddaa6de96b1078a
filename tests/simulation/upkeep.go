package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// newest is a fold that shows a missing, doubled or misplaced event: the number of events of each path, and the last of them.
var newest = journal.Fold{Name: "newest", Apply: func(s *journal.State, e *event.Event) {
	count := 0
	if was := string(s.Get(e.Key.Path)); was != "" {
		_, _ = fmt.Sscan(was, &count)
	}
	s.Put(e.Key.Path, fmt.Appendf(nil, "%d %s", count+1, labelOf(e)))
}}

// stamped is a snapshot that was returned.
type stamped struct {
	stamp   event.ID
	objects map[string]string
}

// snapshot takes a snapshot and records it.
func (r *run) snapshot(p *process) (stamp event.ID, ok bool) {
	acked := r.newestAck()
	objects := map[string]string{}
	stamp, err := p.Snapshot(r.ctx, newest.Name, func(key string, value []byte) { objects[key] = string(value) })
	if p.crashed() {
		return 0, false
	}
	if err != nil {
		if errors.Is(err, journal.ErrDamaged) {
			r.report("snapshot and events", "snapshot: %v", err)
		}
		return 0, false
	}
	if stamp < acked {
		r.report("acknowledged once", "a snapshot began after %d was acknowledged and is stamped %d", acked, stamp)
	}
	r.taken(stamped{stamp: stamp, objects: objects})
	return stamp, true
}

// sweeper starts an actor that sweeps in one process, while others sweep in theirs.
func (r *run) sweeper(name string, at int) {
	luck := dice(r.plan.seed, name)
	place := r.homes.at(at)
	r.followers.Go(func() {
		for !r.closing() {
			time.Sleep(10*time.Millisecond + time.Duration(luck.Int64N(int64(r.plan.upkeep))))
			p := place.now()
			if _, err := p.Sweep(r.ctx); errors.Is(err, journal.ErrDamaged) && !p.crashed() {
				r.report("snapshot and events", "sweep: %v", err)
			}
		}
	})
}

// collector starts an actor that takes snapshots, also as of earlier ids, half of them with a new journal.
func (r *run) collector(name string, at int) {
	luck := dice(r.plan.seed, name)
	place := r.homes.at(at)
	r.followers.Go(func() {
		for !r.closing() {
			time.Sleep(20*time.Millisecond + time.Duration(luck.Int64N(int64(250*time.Millisecond))))
			p := place.now()
			fresh := luck.IntN(2) == 0
			if fresh {
				p = p.stateless()
			}
			if stamp, ok := r.snapshot(p); ok {
				r.recall(p, r.moment(luck, stamp))
			}
			if fresh {
				_ = p.Close()
			}
		}
	})
}
