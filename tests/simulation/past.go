package simulation

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// moment returns an id at random, up to one that a snapshot was stamped with: an event's, or any between the floor and that one.
func (r *run) moment(luck *rand.Rand, newest event.ID) event.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.emissions); n > 0 && luck.IntN(2) == 0 {
		if e := r.emissions[luck.IntN(n)]; e.outcome == Acknowledged && e.receipt.FirstID <= newest {
			return min(newest, e.receipt.FirstID+event.ID(luck.IntN(e.receipt.Count)))
		}
	}
	floor := r.audit.floorAt(time.Now()).id
	return floor + event.ID(luck.Int64N(int64(max(0, newest-floor))+1))
}

// recall asks for a snapshot as of an earlier id, and records it.
func (r *run) recall(p *process, at event.ID) (ok bool) {
	before := r.audit.floorAt(time.Now())
	objects := map[string]string{}
	err := p.SnapshotAt(r.ctx, newest.Name, at, journal.Part{}, func(key string, value []byte) { objects[key] = string(value) })
	if p.crashed() {
		return false
	}
	switch {
	case err == nil && at < before.id:
		r.report("torn is true", "what was at %d is told, below the floor %d", at, before.id)
	case err == nil:
		r.taken(stamped{stamp: at, objects: objects})
		r.count("recalled")
		return true
	case errors.Is(err, journal.ErrEvicted):
		if floor := r.audit.floorAt(time.Now()); at >= floor.id {
			r.report("torn is true", "what was at %d is not told, above the floor %d: %v", at, floor.id, err)
		}
	case errors.Is(err, journal.ErrBeyond), errors.Is(err, journal.ErrDamaged):
		r.report("snapshot and events", "what was at %d: %v", at, err)
	}
	return false
}

// manyMoments is for how many ids a visitor asks what was.
const manyMoments = 20

// recallAll asks what was at the floor, at the end, and at random ids between, and demands to be told.
func (r *run) recallAll(p *process, luck *rand.Rand, newest event.ID) {
	ids := []event.ID{r.audit.floorAt(time.Now()).id, newest}
	for range manyMoments {
		ids = append(ids, r.moment(luck, newest))
	}
	for _, at := range ids {
		if evicted := at < r.audit.floorAt(time.Now()).id; r.recall(p, at) == evicted {
			r.report("liveness", "what was at %d is not told when all is quiet", at)
		}
	}
}
