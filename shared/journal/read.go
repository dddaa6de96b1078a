package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// scanFor is how long a read scans events that do not match before it returns how far it came.
const scanFor = 10 * time.Second

// Request says which events are read.
type Request struct {
	After    event.ID                // events after this id; 0 is the beginning
	Until    event.ID                // of ReadNewest: events up to this id; 0: to the newest
	Match    func(*event.Event) bool // nil: every event
	Limit    int                     // at most so many events; 0: no limit
	MaxBytes int                     // ends the Answer with the event whose size makes the sum this many bytes; 0: no bound
	Timeout  time.Duration           // how long ReadAfter waits for a first event; 0: not at all

	// Causes asks for what brought each event about: its Cause, as an id, and its By. A cause that is neither near the event nor
	// recent costs a read. Fields of custom events that have these names are left out. Match must not look at either.
	Causes bool
}

// Answer is the result of a read.
type Answer struct {
	// Events are in the order of their ids: rising for ReadAfter and Follow, falling for ReadNewest.
	Events []event.Event
	// LastEventID is the last id scanned, matching or not, and at least Request.After: where to go on when Events is
	// empty. Rule (prefix): it is an id of the prefix that was read, never the sequencer's.
	LastEventID event.ID
	// Torn says that After lies below the floor, so that events after it have been evicted. The follower takes a new snapshot.
	Torn bool
}

// ReadAfter returns the events after Request.After in order, as many as the request permits, and waits up to its Timeout
// if there are none. It sees every append that was acknowledged before the call. After 10 s of scanning, or the Timeout if
// that is longer, it returns without events, with how far it came.
func (j *Journal) ReadAfter(ctx context.Context, r Request) (Answer, error) {
	var timer <-chan time.Time
	if r.Timeout > 0 {
		t := time.NewTimer(r.Timeout)
		defer t.Stop()
		timer = t.C
	}
	began := time.Now()
	rd, goal, torn, err := j.open(ctx, r)
	if torn || err != nil {
		return Answer{Torn: torn, LastEventID: r.After}, err
	}
	for {
		a, err := rd.scan(ctx, goal)
		if err != nil || a.Torn || len(a.Events) > 0 {
			return a, err
		}
		if rd.next <= goal { // cut short by scanFor
			if time.Since(began) >= max(r.Timeout, scanFor) {
				return a, nil
			}
			continue
		}
		grown, err := rd.wait(ctx, timer)
		if err != nil || !grown {
			return a, err
		}
		goal = rd.known()
	}
}

// Follow yields events as they come, in order and without a gap, for as long as ctx lives; Limit and MaxBytes bound each
// Answer. After each `idle` in which nothing matched it yields an Answer without events, whose LastEventID is the last id
// scanned. A torn Answer or an error ends it.
func (j *Journal) Follow(ctx context.Context, r Request, idle time.Duration) iter.Seq2[Answer, error] {
	return func(yield func(Answer, error) bool) {
		rd, goal, torn, err := j.open(ctx, r)
		if torn || err != nil {
			yield(Answer{Torn: torn, LastEventID: r.After}, err)
			return
		}
		timer := time.NewTimer(idle)
		defer timer.Stop()
		for {
			a, err := rd.scan(ctx, goal)
			if err != nil || a.Torn {
				yield(a, err)
				return
			}
			if len(a.Events) > 0 {
				if !yield(a, nil) {
					return
				}
				timer.Reset(idle)
			}
			if rd.next <= goal {
				continue
			}
			grown, err := rd.wait(ctx, timer.C)
			if err != nil {
				yield(a, err)
				return
			}
			if !grown {
				if !yield(Answer{LastEventID: rd.scanned}, nil) {
					return
				}
				timer.Reset(idle)
			}
			goal = rd.known()
		}
	}
}

// reader goes through the slots from one position on.
type reader struct {
	j       *Journal
	r       Request
	next    int64    // the slot to scan next
	scanned event.ID // the last id scanned, or After
	last    event.ID // the last id of the slot below next; unknownID before the first

	delivered int64 // the slot of the last event that matched
	each      int   // bytes of a slot, about
}

// open returns a reader behind r.After, and the position that a read beginning now must reach to see every append that was
// acknowledged before: that of the sequencer, strongly read.
func (j *Journal) open(ctx context.Context, r Request) (rd *reader, goal int64, torn bool, err error) {
	if j.ctx.Err() != nil {
		return nil, 0, false, ErrClosed
	}
	seq, err := j.sequence(ctx)
	if err != nil || r.After < event.ID(seq.FloorID) {
		return nil, 0, err == nil, err
	}
	next, err := j.locate(ctx, r.After, seq)
	return &reader{j: j, r: r, next: next, scanned: r.After, last: unknownID}, seq.Position, false, err
}

// scan goes on to goal, or until the request's bounds are met.
func (rd *reader) scan(ctx context.Context, goal int64) (Answer, error) {
	var a Answer
	bytes, began := 0, time.Now()
	for span := rd.span(); rd.next <= goal; span = min(2*span, pageSize) {
		run, err := rd.j.slots(ctx, rd.next, min(goal, rd.next+span-1))
		if errors.Is(err, errEvicted) {
			if torn, err := rd.skipEvicted(ctx); torn || err != nil {
				return Answer{Torn: torn, LastEventID: rd.scanned}, err
			}
			continue
		}
		if err != nil {
			return a, err
		}
		rd.weigh(run)
		if a.Events == nil && rd.r.Match == nil {
			a.Events = make([]event.Event, 0, rd.room(run, goal))
		}
		before := len(a.Events)
		for i := range run {
			if rd.take(&run[i], &a, &bytes) {
				nameWithin(run, a.Events[before:])
				return rd.end(ctx, a)
			}
		}
		nameWithin(run, a.Events[before:])
		if time.Since(began) > scanFor {
			break
		}
	}
	return rd.end(ctx, a)
}

// span returns how many slots to read at first, so that an Answer that is bounded does not take many times its size in memory and in
// time: many readers may be far behind at once. scan doubles it as it goes on.
func (rd *reader) span() int64 {
	span := rd.r.spanFor(rd.j)
	if rd.r.MaxBytes > 0 {
		const atFirst = 4 << 10
		span = min(span, 1+int64(rd.r.MaxBytes/cmp.Or(rd.each, atFirst)))
	}
	return span
}

// spanFor returns how many slots have as many events as are wanted, if slots are as those that were read last.
func (r *Request) spanFor(j *Journal) int64 {
	if r.Limit == 0 {
		return pageSize
	}
	return min(pageSize, 1+int64(r.Limit)/max(1, j.perSlot.Load()))
}

// weigh notes how large slots are.
func (rd *reader) weigh(run []slot) {
	bytes, events := 0, 0
	for i := range run {
		bytes += run[i].size()
		events += len(run[i].events)
	}
	rd.each = bytes / len(run)
	rd.j.perSlot.Store(int64(events / len(run)))
}

// take adds a slot's matching events and reports whether the Answer is full.
func (rd *reader) take(s *slot, a *Answer, bytes *int) (full bool) {
	for i := range s.events {
		e := &s.events[i]
		if e.ID <= rd.scanned {
			continue
		}
		rd.scanned = e.ID
		if rd.r.Match != nil && !rd.r.Match(e) {
			continue
		}
		if len(a.Events) == cap(a.Events) {
			a.Events = slices.Grow(a.Events, rd.r.moreThan(len(a.Events), *bytes))
		}
		a.Events = append(a.Events, shown(e, rd.r.Causes))
		rd.delivered = s.position
		*bytes += a.Events[len(a.Events)-1].Size()
		if len(a.Events) == rd.r.Limit || rd.r.MaxBytes > 0 && *bytes >= rd.r.MaxBytes {
			if i == len(s.events)-1 {
				rd.pass(s)
			}
			return true
		}
	}
	rd.pass(s)
	return false
}

// moreThan returns for how many events to make room beside n, which have so many bytes: four times as many, as long as the Answer holds
// them.
func (r *Request) moreThan(n, bytes int) int {
	more := 4*n + 4
	if r.MaxBytes > 0 && n > 0 {
		more = min(more, 1+(r.MaxBytes-bytes)/(bytes/n))
	}
	if r.Limit > 0 {
		more = min(more, r.Limit-n)
	}
	return max(more, 1)
}

func (rd *reader) pass(s *slot) {
	rd.next, rd.last = s.position+1, s.last
	rd.scanned = max(rd.scanned, s.last)
}

// end sets how far the Answer goes, remembers the position for the read that goes on there, and names the causes that are not
// named yet.
func (rd *reader) end(ctx context.Context, a Answer) (Answer, error) {
	a.LastEventID = rd.scanned
	rd.j.found.put(rd.scanned, rd.next)
	if n := len(a.Events); n > 0 && a.Events[n-1].ID != rd.scanned {
		rd.j.found.put(a.Events[n-1].ID, rd.delivered)
	}
	return a, rd.j.nameCauses(ctx, a.Events)
}

// skipEvicted is called when slots were found removed: the reader is torn, or goes on above the floor.
func (rd *reader) skipEvicted(ctx context.Context) (torn bool, err error) {
	seq, err := rd.j.sequence(ctx)
	if err != nil {
		return false, err
	}
	if rd.scanned < event.ID(seq.FloorID) {
		return true, nil
	}
	rd.next = max(rd.next, seq.FloorPosition+1)
	return false, nil
}

// wait waits until there is something to scan, and reports whether there is; without a timer it returns false at once.
func (rd *reader) wait(ctx context.Context, timer <-chan time.Time) (bool, error) {
	if timer == nil {
		return false, nil
	}
	rd.j.tail.start(rd.next, rd.last)
	return rd.j.await(ctx, rd.next-1, timer)
}

// known returns the newest position of the contiguous run that this process knows of.
func (rd *reader) known() int64 {
	next, _ := rd.j.tail.end()
	return max(next, rd.next) - 1
}

// room estimates how many events an Answer will hold, from a first run of slots.
func (rd *reader) room(run []slot, goal int64) int {
	events := 0
	for i := range run {
		events += len(run[i].events)
	}
	slots := min(goal-rd.next+1, 64*pageSize)
	if rd.r.MaxBytes > 0 {
		slots = min(slots, 1+int64(rd.r.MaxBytes/rd.each))
	}
	all := events * int(slots) / len(run)
	if rd.r.Limit > 0 {
		return min(all, rd.r.Limit)
	}
	return min(all, 64*pageSize)
}

// Floor returns the last id that retention has evicted; 0: none. A read after a smaller id is torn.
func (j *Journal) Floor(ctx context.Context) (event.ID, error) {
	seq, err := j.sequence(ctx)
	return event.ID(seq.FloorID), err
}

// ReadNewest returns the events after Request.After and up to Request.Until, the newest first, as many as Limit and MaxBytes permit. It does not
// wait for new ones. It is torn only if After is set and lies below the floor.
func (j *Journal) ReadNewest(ctx context.Context, r Request) (Answer, error) {
	for try := 0; ; try++ {
		a, err := j.readNewest(ctx, r)
		if !errors.Is(err, errEvicted) { // otherwise the floor has passed the slots that it was to read
			return a, err
		}
		if try == 2 {
			return a, fmt.Errorf("%w: the floor overtakes this process", ErrUnavailable)
		}
	}
}

func (j *Journal) readNewest(ctx context.Context, r Request) (Answer, error) {
	seq, err := j.sequence(ctx)
	if err != nil {
		return Answer{}, err
	}
	if r.After > 0 && r.After < event.ID(seq.FloorID) {
		return Answer{Torn: true, LastEventID: r.After}, nil
	}
	a := Answer{LastEventID: max(r.After, event.ID(seq.FloorID))}
	newest, err := j.positionUntil(ctx, r.Until, seq)
	if err != nil {
		return a, err
	}
	bytes, span := 0, r.spanFor(j)
	for to := newest; to > seq.FloorPosition; span = min(2*span, pageSize) {
		from := max(pageOf(to)*pageSize, to-span+1, seq.FloorPosition+1)
		run, err := j.span(ctx, from, to)
		if err != nil {
			return a, err
		}
		if to == newest {
			a.LastEventID = max(a.LastEventID, r.until(run[len(run)-1].last))
		}
		before := len(a.Events)
		for i := len(run) - 1; i >= 0; i-- {
			if takeBackward(run[i].events, &r, &a, &bytes) {
				nameWithin(run, a.Events[before:])
				return a, j.nameCauses(ctx, a.Events)
			}
		}
		nameWithin(run, a.Events[before:])
		to = from - 1
	}
	return a, j.nameCauses(ctx, a.Events)
}

// until returns an id, or Until if that is less.
func (r *Request) until(id event.ID) event.ID {
	if r.Until > 0 {
		return min(id, r.Until)
	}
	return id
}

// positionUntil returns the position of the last slot that may have an event up to an id; 0: the newest.
func (j *Journal) positionUntil(ctx context.Context, id event.ID, seq store.Sequence) (int64, error) {
	if id == 0 {
		return seq.Position, nil
	}
	next, err := j.locate(ctx, id, seq)
	for err == nil && next <= seq.Position {
		var run []slot
		if run, err = j.slots(ctx, next, seq.Position); err != nil {
			break
		}
		for i := range run {
			if run[i].last >= id {
				return run[i].position, nil
			}
		}
		next += int64(len(run))
	}
	return seq.Position, err
}

func takeBackward(events []event.Event, r *Request, a *Answer, bytes *int) (done bool) {
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		if e.ID <= r.After {
			return true
		}
		if r.until(e.ID) != e.ID || r.Match != nil && !r.Match(e) {
			continue
		}
		a.Events = append(a.Events, shown(e, r.Causes))
		*bytes += a.Events[len(a.Events)-1].Size()
		if len(a.Events) == r.Limit || r.MaxBytes > 0 && *bytes >= r.MaxBytes {
			return true
		}
	}
	return false
}

// span returns all slots from one position to another.
func (j *Journal) span(ctx context.Context, from, to int64) ([]slot, error) {
	var all []slot
	for from <= to {
		run, err := j.slots(ctx, from, to)
		if err != nil {
			return nil, err
		}
		all = append(all, run...)
		from = run[len(run)-1].position + 1
	}
	return all, nil
}
