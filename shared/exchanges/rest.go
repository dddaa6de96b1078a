package exchanges

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// rest is what a process remembers of an instance for which there was no task. It has told the ends of others (see linger.go), or has waited in
// vain. An exchange that merely goes on with the wait, in the same process, reads nothing: the instance and the record are as this process has
// left them, which the conditions of the next write make sure of, and nothing has become ready, as far as this process was told, or its look-out
// finds it within the second. Its lease and its record are written together with those of others that rest, once in a second. Until then it
// cannot claim; whatever else happens, the exchange is made as any other.
type rest struct {
	seq      int64 // of the exchange
	instance membership.Instance
	mark     queue.Mark     // of its last claim in vain
	ended    time.Time      // when it began, if it has told ends; zero if it has waited
	over     time.Time      // when its response was about to be returned
	next     *queue.Waiting // that of the next one, which is expected at once; nil: it is not
}

// expectedWithin is how soon the next exchange must have come the last time, so that it is expected at once after one that has told ends.
const expectedWithin = 2 * time.Millisecond

// follows notes how soon an exchange comes after one that has told ends.
func (s *session) follows(before *rest) {
	if before != nil && before.lingers() {
		s.prompt = time.Since(before.over) <= expectedWithin
	}
}

// endNext has no addition wait for the next wait any more. r may be nil.
func (r *rest) endNext() {
	if r != nil && r.next != nil {
		r.next.End()
		r.next = nil
	}
}

// leastRest is how long an exchange must wait to rest.
const leastRest = 2 * restEvery

// restEvery is how far apart the moments are at which those that rest are written together.
const restEvery = time.Second

// isFor reports whether a request goes on with the wait, or may linger, and the lease of the instance lasts until something is written.
func (r *rest) isFor(q *Request) bool {
	if r == nil || q.Seq <= r.seq || len(q.Results) > 0 || len(q.Beats) > 0 || time.Until(r.instance.Expires) <= membership.DefaultLease/3 {
		return false
	}
	if r.lingers() {
		return q.Max > 0 && q.Wait >= leastLinger && time.Since(r.ended) < lingerWithin
	}
	return q.Wait >= leastRest
}

// resting returns the instance that makes a request if it goes on in this process, so that it need not be read.
func (x *Exchanges) resting(id string, r *Request) (i membership.Instance, ok bool) {
	s := x.sessions.known(id)
	if s == nil {
		return i, false
	}
	if found := s.rest.Load(); found.isFor(r) && x.queue.IsQuiet(found.instance.Claims(), found.mark) {
		return found.instance, true
	}
	return i, false
}

// noteRest remembers an exchange that has claimed in vain, with results or while it waited, and of which nothing is left to be told.
func (c *call) noteRest() {
	r := &c.entry.now
	if !c.mayClaim() || len(c.claims) > 0 || len(r.Stops) > 0 || len(r.Told) > 0 || r.Draining || r.version == 0 {
		return
	}
	switch {
	case c.waited && len(c.session.held) == 0:
		c.session.rest.Store(&rest{seq: c.request.Seq, instance: c.instance, mark: c.mark})
	case c.claimed && !c.x.alone:
		before := &rest{seq: c.request.Seq, instance: c.instance, mark: c.mark, ended: c.began, over: time.Now()}
		if l := c.looked(); l != nil && l.next != nil && c.session.prompt {
			before.next, l.next = l.next, nil
			before.next.Within(expectedWithin)
		}
		c.session.rest.Store(before)
	}
}

// goOn makes an exchange that goes on with a wait, or lingers; done is false if it has to be made as any other.
func (c *call) goOn(ctx context.Context, before *rest) (got Response, done bool, err error) {
	s := c.session
	c.instance = before.instance
	if s.last.version == 0 || before.lingers() && !s.mayLinger() || !before.lingers() && !c.holdsNothing(ctx) {
		return got, false, nil
	}
	if before.lingers() {
		s.seen = c.request.Seq
		return c.linger(ctx, before)
	}
	w := c.x.queue.Wait(c.waits())
	if !w.IsQuiet(before.mark) {
		w.End()
		return got, false, nil
	}
	s.seen = c.request.Seq
	is, err := c.x.rests.wait(ctx, w, c)
	switch is {
	case ended:
		return Response{Expires: c.instance.Expires}, true, err
	case woken:
		c.woken, c.rested = w, true
		return got, false, nil
	}
	p := &resting{id: c.id, record: record{Seq: c.request.Seq, Waits: true, version: s.last.version}}
	p.instance, p.op = c.x.members.Extended(c.instance)
	p.record.Expires = p.instance.Expires.UnixMicro()
	if err := errors.Join(c.x.rests.group.Do(ctx, p), p.err); err != nil {
		w.End()
		c.rested = errors.Is(err, ErrOld) // otherwise it may be stored
		s.last = record{}
		return got, false, nil
	}
	p.record.version++
	c.instance, c.mark = p.instance, w.Mark()
	c.entry = entry{x: c.x, id: c.id, explain: c.request.Explain, now: p.record}
	got, err = c.finish(ctx, c.await(ctx, w))
	return got, true, err
}

// holdsNothing reports whether the instance holds no lease, and cannot lose one that it claims elsewhere until the wait is over.
func (c *call) holdsNothing(ctx context.Context) bool {
	s := c.session
	if s.changed.Load() || len(s.held) > 0 {
		return false
	}
	if now := time.Now(); s.due.Before(c.ends) {
		held, err := c.x.queue.Keep(context.WithoutCancel(ctx), c.instance.Claimer(), membership.DefaultLease)
		if err != nil || len(held) > 0 {
			s.changed.Store(true)
			return false
		}
		s.due = now.Add(emptyFor)
	}
	return true
}

// resting is an instance whose lease and record are to be written.
type resting struct {
	id       string
	instance membership.Instance
	op       store.Op // stores the instance
	record   record
	err      error // ErrOld: the record is not stored, since another process has changed it or the instance
}

// rests writes those that rest.
type rests struct {
	x     *Exchanges
	began time.Time
	group *groupcommit.Group[*resting]
}

func (r *rests) begin(x *Exchanges) {
	r.x, r.began = x, time.Now()
	r.group = groupcommit.New(groupcommit.Options[*resting]{Batch: batch, Write: r.write})
}

// batch chooses as many as one write takes.
func batch() func(*resting) bool {
	bytes, ops := 0, 0
	return func(p *resting) bool {
		bytes += len(p.op.Item.Value) + mostRecord
		ops += 2
		return ops <= store.MaxOps && bytes <= store.MaxWriteBytes
	}
}

// mostRecord bounds the bytes of a record without results, claims and stops.
const mostRecord = 200

// What became of a rest.
type restIs int

const (
	over  restIs = iota // it is to be written
	woken               // there may be a task
	ended               // by a later request, or with the context
)

// wait waits for the next moment to write.
func (r *rests) wait(ctx context.Context, w *queue.Waiting, c *call) (is restIs, err error) {
	if r.x.apart {
		return over, nil
	}
	next := time.NewTimer(restEvery - time.Since(r.began)%restEvery)
	defer next.Stop()
	select {
	case <-next.C:
		return over, nil
	case <-w.Ready():
		w.Looks()
		return woken, nil
	case <-c.session.wake:
		w.End()
		return woken, nil
	case seq := <-c.turn.next:
		if seq == c.request.Seq {
			err = ErrReplaced
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	w.End()
	return ended, err
}

// write writes the leases and records of instances, and drops those that others have changed: they are made as any other exchange.
func (r *rests) write(ctx context.Context, all []*resting) {
	if r.x.apart {
		r.writeApart(ctx, all)
	} else {
		r.writeTogether(ctx, all)
	}
	var stay []membership.Instance
	for _, p := range all {
		if p.err == nil {
			stay = append(stay, p.instance)
		}
	}
	if len(stay) == 0 {
		return
	}
	if err := r.x.members.Stayed(ctx, stay); err != nil {
		r.x.log.Warn("instances that wait may lead late", "error", err)
	}
}

// writeTogether writes all by one write, and all but those that conflict by another.
func (r *rests) writeTogether(ctx context.Context, all []*resting) {
	for len(all) > 0 {
		ops := make([]store.Op, 0, 2*len(all))
		for _, p := range all {
			ops = append(ops, p.op, p.record.put(p.id))
		}
		err := r.x.records.store.Write(ctx, store.Write{Token: r.x.token(), Ops: ops})
		conflict := store.AsConflict(err)
		if conflict == nil {
			for _, p := range all {
				p.err = err
			}
			return
		}
		for _, failed := range conflict.Failed {
			all[failed.Op/2].err = ErrOld
		}
		all = without(all)
	}
}

// without returns those that have not failed.
func without(all []*resting) (rest []*resting) {
	for _, p := range all {
		if p.err == nil {
			rest = append(rest, p)
		}
	}
	return rest
}

// writeApart writes each item by itself, at the same time: a store has put a price on writing them as a whole, and either of them may be
// stored without the other.
func (r *rests) writeApart(ctx context.Context, all []*resting) {
	var group sync.WaitGroup
	write := func(op store.Op, err *error) {
		*err = r.x.records.store.Write(ctx, store.Write{Token: r.x.token(), Ops: []store.Op{op}})
	}
	records := make([]error, len(all))
	for n, p := range all {
		group.Go(func() { write(p.op, &p.err) })
		group.Go(func() { write(p.record.put(p.id), &records[n]) })
	}
	group.Wait()
	for n, p := range all {
		if p.err = errors.Join(p.err, records[n]); store.AsConflict(records[n]) != nil {
			p.err = ErrOld
		}
	}
}
