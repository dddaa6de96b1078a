package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// Follow measures how soon a waiting follower has an event.
type Follow struct {
	Journal
	Rate     int           `help:"Appends per second." default:"500"`
	Duration time.Duration `help:"How long to measure." default:"5s"`
}

// Help returns "".
func (Follow) Help() string { return "" }

// Run lets a follower wait while events are appended at an even rate. It returns a UsageError if that is less than 1.
func (f Follow) Run(ctx context.Context, p Program) (*Results, error) {
	return f.bySides(func(j Journal) (*Results, error) {
		f.Journal = j
		return f.run(ctx, p)
	}, "P50", "P99")
}

func (f Follow) run(ctx context.Context, p Program) (*Results, error) {
	r := newResults("LATENCY\tEVENTS\tP50\tP99\tMAX", "latency", "events", "p50_ms", "p99_ms", "max_ms")
	if f.Rate < 1 {
		return r, UsageError(fmt.Sprintf("--rate is %d, want at least 1", f.Rate))
	}
	race := &race{laps: make([]lap, int(f.Duration.Seconds()*float64(f.Rate)))}
	err := f.on(ctx, p, func(s subject, _ string) error {
		return race.run(ctx, s, f.Size, time.Second/time.Duration(f.Rate))
	})
	if err == nil {
		r.spread("from sending", race.since(func(l *lap) time.Time { return l.sent }))
		r.spread("from acknowledgement", race.since(func(l *lap) time.Time { return l.acked }))
	}
	return r, err
}

func (r *Results) spread(name string, sorted []time.Duration) {
	r.add(name, len(sorted), quantile(sorted, 0.5), quantile(sorted, 0.99), quantile(sorted, 1))
}

// lap is one event's way.
type lap struct{ sent, acked, seen time.Time }

// race is one writer and one follower.
type race struct {
	mu   sync.Mutex
	laps []lap
	left int
}

// run sends the events at an even pace and returns when the follower has seen them all.
func (r *race) run(ctx context.Context, s subject, size int, pace time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.left = len(r.laps)
	before, err := s.newest(ctx) // before the first is sent, or the follower might begin behind it
	if err != nil {
		return err
	}
	followed := make(chan error, 1)
	go func() {
		followed <- s.follow(ctx, before, func(events []event.Event) {
			if r.see(events, time.Now()) {
				cancel()
			}
		})
	}()
	if err = r.send(ctx, s, size, pace); err != nil {
		cancel()
	}
	end := <-followed
	if err == nil && r.left > 0 {
		err = fmt.Errorf("the follower missed %d events: %w", r.left, end)
	}
	return err
}

func (r *race) send(ctx context.Context, s subject, size int, pace time.Duration) error {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for n := range r.laps {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		sent := time.Now()
		r.note(n, func(l *lap) { l.sent = sent })
		// The last event's follower may end the race before the acknowledgement is there.
		if err := s.emit(context.WithoutCancel(ctx), sample(1, size, int64(n))); err != nil {
			return err
		}
		acked := time.Now()
		r.note(n, func(l *lap) { l.acked = acked })
	}
	return nil
}

func (r *race) note(n int, set func(*lap)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	set(&r.laps[n])
}

// see notes the events and reports whether they were the last.
func (r *race) see(events []event.Event, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range events {
		var fields struct{ N int }
		err := json.Unmarshal(slices.Concat([]byte{'{'}, events[i].Fields, []byte{'}'}), &fields)
		if err != nil || events[i].Type != "BenchSampled" || fields.N >= len(r.laps) {
			continue // another's, on a server that has other clients
		}
		if l := &r.laps[fields.N]; l.seen.IsZero() {
			l.seen = now
			r.left--
		}
	}
	return r.left == 0
}

// since returns how long events took to be seen from some moment, sorted. One that was seen before that moment counts 0.
func (r *race) since(moment func(*lap) time.Time) []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []time.Duration
	for i := range r.laps {
		l := &r.laps[i]
		if !l.acked.IsZero() && !l.seen.IsZero() {
			all = append(all, max(0, l.seen.Sub(moment(l))))
		}
	}
	slices.Sort(all)
	return all
}
