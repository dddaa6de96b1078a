package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/service"
)

// append measures processes of which each appends one event after the other.
func (c Cloud) append(ctx context.Context, r *Results) error {
	return c.paced(ctx, r, c.Appenders)
}

// combine measures few processes with many callers.
func (c Cloud) combine(ctx context.Context, r *Results) error {
	for _, processes := range c.Processes {
		if err := c.paced(ctx, r, processes); err != nil {
			return err
		}
	}
	return nil
}

// paced measures so many processes at each pace.
func (c Cloud) paced(ctx context.Context, r *Results, processes int) error {
	for _, pace := range c.Pace {
		if err := c.deploy(ctx, func(ctx context.Context, d *cloud) error {
			return c.appends(ctx, r, d, processes, pace)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (c Cloud) appends(ctx context.Context, r *Results, d *cloud, processes, pace int) error {
	callers := max(1, c.Appenders/processes)
	w := c.watch()
	running, stop := context.WithCancel(ctx)
	all := make([]*service.Tasks, processes+1)
	var group sync.WaitGroup
	for i := range all {
		p := d.process()
		all[i] = p
		for n := 0; n < callers && i < processes; n++ {
			group.Go(func() { c.appending(running, p, w, i*callers+n, gap(processes*callers, pace)) })
		}
	}
	var followed error
	group.Go(func() { followed = following(running, all[processes].Journal, w) })
	w.during(d.begin)
	w.mu.Lock()
	c.row(r, d, fmt.Sprintf("append: %d callers in %d processes", processes*callers, processes), pace, w.in, w.done, w.laps)
	w.mu.Unlock()
	stop()
	group.Wait()
	return errors.Join(followed, closeAll(all))
}

// gap returns the time between two appends of a caller; 0 if it waits for nothing.
func gap(callers, pace int) time.Duration {
	if pace <= 0 {
		return 0
	}
	return time.Second * time.Duration(callers) / time.Duration(pace)
}

// appending appends one event after the other, a gap from the beginning of one to that of the next if there is time. Callers begin at
// different moments of their gaps.
func (c Cloud) appending(ctx context.Context, p *service.Tasks, w *watch, first int, gap time.Duration) {
	next := time.Now().Add(gap * time.Duration(first) / time.Duration(max(1, c.Appenders)))
	for n := int64(first); ctx.Err() == nil; n++ {
		time.Sleep(time.Until(next))
		next = next.Add(gap)
		began := time.Now()
		if _, err := p.Journal.Emit(ctx, sample(1, c.Size, n), c.key(first, n)); err == nil {
			w.note(&w.in, time.Since(began))
		}
	}
}

// key returns a key for an append of a caller; nil if they have none.
func (c Cloud) key(caller int, n int64) *journal.Idempotency {
	if !c.Keys {
		return nil
	}
	return &journal.Idempotency{Scope: "bench", Key: fmt.Sprint(caller, " ", n)}
}

// errOrder says that a follower had events in another order than that of their ids.
var errOrder = errors.New("a follower had events out of order")

// following counts the events that a follower in a process of its own has, in their order.
func following(ctx context.Context, j *journal.Journal, w *watch) error {
	last := event.ID(0)
	for answer, err := range j.Follow(ctx, journal.Request{}, time.Minute) {
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		for i := range answer.Events {
			if answer.Events[i].ID <= last {
				return errOrder
			}
			last = answer.Events[i].ID
			w.note(&w.done, -1)
		}
	}
	return nil
}
