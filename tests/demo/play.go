package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/tests/process"
	"github.com/millrace/millrace/tests/witness"
)

// performance is everything that happened.
type performance struct {
	server    *process.Server
	began     time.Time
	witness   witness.Witness
	followers []*follower
	snapshots []stamped
	emitted   time.Duration // from the first append to the last acknowledgement
	away      time.Duration // from the kill until the server was ready again
}

// stamped is a snapshot, and when it was taken.
type stamped struct {
	when string
	client.Snapshot
}

// play performs the demo.
func play(ctx context.Context, server *process.Server, log []event.Event, writers int) (*performance, error) {
	p := &performance{server: server, began: time.Now()}
	p.tell("a server on an empty store; %d writers emit %s events, %d followers read along", writers, number(len(log)), len(parts()))
	following, leave := context.WithCancel(ctx)
	defer leave()
	if err := p.follow(following); err != nil {
		return p, err
	}
	done := make(chan error, 1)
	go func() { done <- p.emit(ctx, log, writers) }()
	if err := p.interrupt(ctx, len(log)); err != nil {
		return p, err
	}
	if err := <-done; err != nil {
		return p, err
	}
	p.tell("all %s events are acknowledged", number(p.witness.Count()))
	if err := p.snapshot(ctx, "at the end"); err != nil {
		return p, err
	}
	p.await(ctx)
	leave()
	for _, f := range p.followers {
		<-f.ended
	}
	return p, nil
}

// tell prints what happens, with the time since the beginning.
func (p *performance) tell(format string, args ...any) {
	fmt.Printf("%7.3f s  %s\n", time.Since(p.began).Seconds(), fmt.Sprintf(format, args...))
}

// emit lets the writers emit the log. Events of one key go by one writer, so that they stay in the log's order.
func (p *performance) emit(ctx context.Context, log []event.Event, writers int) error {
	c, err := p.server.Client(client.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	errs := make([]error, writers)
	began := time.Now()
	var group sync.WaitGroup
	for w, mine := range share(log, writers) {
		group.Go(func() { errs[w] = p.write(ctx, c, mine) })
	}
	group.Wait()
	p.emitted = time.Since(began)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// write emits events in batches of 1 to 12, each when the one before is acknowledged.
func (p *performance) write(ctx context.Context, c *client.Client, events []event.Event) error {
	for n := 0; len(events) > 0; n++ {
		batch := events[:min(len(events), 1+n*5%12)]
		ids, err := c.Emit(ctx, batch)
		if err != nil {
			return err
		}
		p.witness.Acknowledged(batch, ids)
		events = events[len(batch):]
	}
	return nil
}

// interrupt waits until two fifths of the log are acknowledged, takes a snapshot and kills the server under load.
func (p *performance) interrupt(ctx context.Context, total int) error {
	if err := p.until(ctx, func() bool { return p.witness.Count() >= total/5 }); err != nil {
		return err
	}
	if err := p.snapshot(ctx, "early"); err != nil {
		return err
	}
	if err := p.until(ctx, func() bool { return p.witness.Count() >= total*2/5 }); err != nil {
		return err
	}
	killed := time.Now()
	if err := p.server.Kill(); err != nil {
		return err
	}
	p.tell("kill -9 of the server, after %s acknowledgements", number(p.witness.Count()))
	if err := p.server.Start(ctx); err != nil {
		return err
	}
	p.away = time.Since(killed)
	p.tell("the server is back after %.3f s; writers and followers go on by themselves", p.away.Seconds())
	return p.snapshot(ctx, "after the kill")
}

func (p *performance) snapshot(ctx context.Context, when string) error {
	c, err := p.server.Client(client.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Snapshot(ctx, "")
	if err != nil {
		return err
	}
	p.snapshots = append(p.snapshots, stamped{when, s})
	p.tell("snapshot: %d objects at EventId %d", len(s.Objects), s.EventID)
	return nil
}

// await waits until every follower has come to the end of the journal. One that does not in time fails the reckoning.
func (p *performance) await(ctx context.Context) {
	journal := p.witness.Journal(nil)
	end := journal[len(journal)-1].ID
	err := p.until(ctx, func() bool {
		for _, f := range p.followers {
			if f.at() < end {
				return false
			}
		}
		return true
	})
	if err != nil {
		p.tell("not every follower has come to the end: %v", err)
		return
	}
	p.tell("every follower has come to the end")
}

// until looks again and again whether something has happened.
func (p *performance) until(ctx context.Context, happened func() bool) error {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !happened() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("gave up after %s: %w", time.Since(p.began).Round(time.Second), context.Cause(ctx))
		}
	}
	return nil
}
