package order

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// alarms is when this process is to look at what is due: the earliest of the times that it has heard of.
type alarms struct {
	mu   sync.Mutex
	next int64         // microseconds since 1970; 0: none
	set  chan struct{} // receives when next has become earlier
}

func (a *alarms) at(at int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next != 0 && a.next <= at {
		return
	}
	a.next = at
	select {
	case a.set <- struct{}{}:
	default:
	}
}

// earliest returns the earliest time, and forgets it if it has come.
func (a *alarms) earliest(now int64) (at int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at = a.next; at <= now {
		a.next = 0
	}
	return at
}

// How long Run waits at most before it looks again: where other processes use the store, they make alarms too.
const (
	lookAlone  = time.Minute
	lookShared = 5 * time.Second
	again      = time.Second // after an error
	dueBatch   = 100
)

// Run does what is due until ctx ends: times that orders wait for, and timeouts. Orders that wait for events go on as these happen.
func (e *Engine) Run(ctx context.Context) {
	var follow sync.WaitGroup
	defer follow.Wait()
	follow.Go(func() { e.follow(ctx) })
	for ctx.Err() == nil {
		if err := e.Sweep(ctx); err != nil && !errors.Is(err, context.Canceled) {
			e.alarms.at(e.micro() + again.Microseconds())
			e.log.Warn("orders that are due were not moved; it is tried again", "error", err)
		}
		e.sleep(ctx)
	}
}

// sleep waits until something is due, as far as this process knows, or it is time to look again.
func (e *Engine) sleep(ctx context.Context) {
	look := lookShared
	if e.store.Exclusive() {
		look = lookAlone
	}
	last := time.NewTimer(look)
	defer last.Stop()
	for {
		var due <-chan time.Time
		now := e.now()
		switch at := e.alarms.earliest(now.UnixMicro()); {
		case at == 0:
		case at <= now.UnixMicro():
			return
		default:
			timer := time.NewTimer(time.UnixMicro(at).Sub(now))
			defer timer.Stop() // few are set while Run sleeps once
			due = timer.C
		}
		select {
		case <-due:
		case <-e.alarms.set:
		case <-last.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Sweep does once what is due, whoever has found that it will be.
func (e *Engine) Sweep(ctx context.Context) error {
	if e.clock != nil {
		if err := e.clock.Check(ctx); err != nil {
			return err
		}
	}
	return errors.Join(e.mend(ctx), e.sweepDue(ctx))
}

// sweepDue does what is due until there is nothing left.
func (e *Engine) sweepDue(ctx context.Context) (failed error) {
	for {
		r := store.Range{Table: store.Work, Partition: partitionDue, Limit: dueBatch}
		page, err := e.store.Query(ctx, r)
		if err != nil {
			return errors.Join(failed, journal.Failure("read the orders that are due", err))
		}
		due := e.dueOf(page.Items)
		if len(due) == 0 {
			return failed
		}
		now := round{e: e}
		now.wakeAll(ctx, due)
		if failed == nil { // those of one round tell enough
			failed = now.failed
		}
		if now.away {
			return failed
		}
	}
}

// round is the doing of some alarms.
type round struct {
	e      *Engine
	failed error // of alarms
	away   bool  // the store cannot be reached: nothing else is tried
}

// wakeAll does what some alarms are for, and takes them away.
func (r *round) wakeAll(ctx context.Context, due []store.Item) {
	due = r.runErrands(ctx, due)
	for i := range due {
		if r.away {
			return
		}
		unchanged, err := r.e.wake(ctx, &due[i])
		if err == nil {
			err = r.e.takeAway(ctx, due[i].Key, due[i].Version, unchanged...)
		}
		r.tried(ctx, err, due[i])
	}
}

// tried notes how the doing of some alarms went. What fails does not keep the others from what they are for: it is put off. That also
// tells whether it is the store which cannot be reached, or something of these alarms.
func (r *round) tried(ctx context.Context, err error, alarms ...store.Item) {
	if err == nil {
		return
	}
	r.failed = errors.Join(r.failed, fmt.Errorf("%s: %w", alarms[0].Value, err))
	for i := range alarms {
		if r.away = r.away || ctx.Err() != nil; r.away {
			return
		}
		if err := r.e.putOff(ctx, &alarms[i]); err != nil {
			r.failed, r.away = errors.Join(r.failed, err), true
		}
	}
}

// away reports whether an error is likely to be none of a single order.
func (e *Engine) away(ctx context.Context, err error) bool {
	switch {
	case ctx.Err() != nil || errors.Is(err, journal.ErrClosed) || errors.Is(err, store.ErrClosed):
		return true
	case errors.Is(err, store.ErrBusy) || errors.Is(err, errMissing):
		return false
	}
	return errors.Is(err, journal.ErrUnavailable) || errors.Is(err, journal.ErrUnknownOutcome)
}

// putOff has an alarm tried again later. One that is not as it was read was done by another process.
func (e *Engine) putOff(ctx context.Context, alarm *store.Item) error {
	next := store.Item{Key: later(alarm.Key, e.micro()), Version: 1, Value: alarm.Value}
	ops := []store.Op{store.Delete(alarm.Key, store.VersionIs(alarm.Version)), store.Put(next, store.Always)}
	err := e.store.Write(ctx, store.Write{Token: e.token(), Ops: ops})
	if err != nil && store.AsConflict(err) == nil {
		return journal.Failure("put off an alarm", err)
	}
	e.alarms.at(unstamp(next.Key.Sort))
	return nil
}

// takeAway removes an alarm or a hint as it was read, if what it came in vain for is unchanged. Otherwise it is left there for another look.
//
// Race: the items of a write may become visible one by one, on a store that others use too, so an alarm may be seen before that which
// it is for. Who does nothing for that reason must not take it away.
func (e *Engine) takeAway(ctx context.Context, key store.Key, version int64, unchanged ...store.Op) error {
	gone := store.Write{Token: e.token(), Ops: append(unchanged, store.Delete(key, store.VersionIs(version)))}
	if err := e.store.Write(ctx, gone); err != nil && store.AsConflict(err) == nil {
		return journal.Failure("remove an alarm of orders", err)
	}
	return nil
}

// dueOf returns the first ones of some alarms, whose time has come.
func (e *Engine) dueOf(all []store.Item) []store.Item {
	for i := range all {
		if at := unstamp(all[i].Key.Sort); at > e.micro() {
			e.alarms.at(at)
			return all[:i]
		}
	}
	return all
}

// wake does what is due with an order or a chain since a time. For the order it is not earlier than that, even if the clock has gone
// back since its alarm was found: that is taken away then, and nobody would look again. If nothing was due, unchanged demands that what
// was read for it is as it was.
func (e *Engine) wake(ctx context.Context, alarm *store.Item) (unchanged []store.Op, err error) {
	path, since := string(alarm.Value), unstamp(alarm.Key.Sort)
	if name, is := strings.CutPrefix(path, lockAlarm); is {
		return e.serveLock(ctx, name)
	}
	if path, is := strings.CutPrefix(path, foundPrefix); is {
		return e.retryFound(ctx, path)
	}
	if is, unchanged, err := e.wakeOther(ctx, path, alarm); is {
		return unchanged, err
	}
	if !strings.Contains(path, ",") {
		return e.walkOn(ctx, path, alarm)
	}
	if err := e.matchBefore(ctx, path); err != nil {
		return nil, err
	}
	due := func(m *move, ctx context.Context) (changed bool, err error) {
		m.now = max(m.now, since)
		return m.due(ctx)
	}
	unchanged, err = e.changeIfDue(ctx, path, due)
	return unchanged, errors.Join(err, e.stopTimedOut(ctx, path))
}

// changeIfThere changes an order, unless it is gone; do reports whether it has changed it.
func (e *Engine) changeIfThere(ctx context.Context, path string, do func(m *move, ctx context.Context) (changed bool, err error)) error {
	_, err := e.changeIfDue(ctx, path, do)
	return err
}

// changeIfDue is changeIfThere with a demand, where nothing was changed, that the order is as it was read.
func (e *Engine) changeIfDue(ctx context.Context, path string, do func(m *move, ctx context.Context) (changed bool, err error)) (unchanged []store.Op, err error) {
	err = e.queue.Change(ctx, []string{path}, func(ctx context.Context, _ *store.Conflict) (queue.Follow, error) {
		unchanged = nil
		m, err := e.moveOf(ctx, path)
		if errors.Is(err, ErrNoOrder) {
			unchanged = []store.Op{store.Check(orderKey(path), store.Absent)}
			return queue.Follow{}, nil
		}
		if err != nil {
			return queue.Follow{}, err
		}
		changed, err := do(m, ctx)
		if err != nil || !changed {
			unchanged = []store.Op{store.Check(orderKey(path), m.cond)}
			return queue.Follow{}, err
		}
		return m.write(), nil
	})
	return unchanged, err
}

// due does what the order waits for, if its time has come. It is the place where kinds of waits differ.
func (m *move) due(ctx context.Context) (changed bool, err error) {
	o := m.order
	if changed, err := m.timedOut(ctx); changed || err != nil {
		return changed, err
	}
	n, err := m.node()
	if err != nil {
		return false, err
	}
	if n.Kind != definition.KindEnd && o.Task == "" && o.Waiting == "" && !o.Suspended && !o.Idle && o.At <= m.now {
		return true, m.enter(ctx, n) // it waited for the time of its start without a task
	}
	return m.overdue(ctx, n)
}
