package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/client"
)

// sample is a server's own measurements at a moment. Counters go over all lives of the server.
type sample struct {
	at         time.Time
	rss        float64 // bytes resident
	live       float64 // bytes of the heap in use
	goroutines float64
	cpu        float64 // seconds
	calls      float64 // of the store
	closed     int     // tasks that have ended
	emitted    int     // events that were acknowledged
}

// sampler asks the servers.
type sampler struct {
	ledger  *ledger
	members []*member

	mu  sync.Mutex
	all []sample
}

// member is one of the servers. Its counters begin at 0 with each of its lives.
type member struct {
	c      *client.Client
	life   func() int64
	was    int64
	before sample // of earlier lives
	latest sample // the same, and this life
}

// take takes a sample, if every server responds.
func (s *sampler) take(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := sample{at: time.Now(), emitted: appends.witness.Count()}
	_, now.closed = s.ledger.count()
	for _, m := range s.members {
		if !m.take(ctx) {
			return
		}
		now.rss, now.live, now.goroutines = now.rss+m.latest.rss, now.live+m.latest.live, now.goroutines+m.latest.goroutines
		now.cpu, now.calls = now.cpu+m.latest.cpu, now.calls+m.latest.calls
	}
	s.all = append(s.all, now)
}

// take asks one server, and reports whether it responded.
func (m *member) take(ctx context.Context) bool {
	life := m.life()
	text, _, err := m.c.Get(ctx, "/metrics")
	if err != nil || life != m.life() {
		return false
	}
	var now sample
	read(string(text), map[string]*float64{
		"process_resident_memory_bytes": &now.rss, "go_gc_heap_live_bytes": &now.live, "go_goroutines": &now.goroutines,
		"process_cpu_seconds_total": &now.cpu, "millrace_store_calls_total": &now.calls,
	})
	if life != m.was {
		m.was, m.before = life, m.latest
	}
	now.cpu, now.calls = now.cpu+m.before.cpu, now.calls+m.before.calls
	m.latest = now
	return true
}

// read adds up the values of metrics in Prometheus's text format, over all their labels.
func read(text string, into map[string]*float64) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ = strings.Cut(name, "{")
		if sum := into[name]; sum != nil {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				*sum += v
			}
		}
	}
}

// run takes samples regularly until ctx ends.
func (s *sampler) run(ctx context.Context, every time.Duration) {
	for s.take(ctx); wait(ctx, every); {
		s.take(ctx)
	}
}

// row is what happened in a stretch of time.
type row struct {
	At       float64 `json:"at_s"` // its end, since the beginning
	Tasks    float64 `json:"tasks_per_s"`
	Events   float64 `json:"events_per_s"`
	RSS      float64 `json:"rss_bytes"`  // the most
	Live     float64 `json:"live_bytes"` // the most
	Routines float64 `json:"goroutines"` // the most
	Calls    float64 `json:"calls_per_task"`
	CPU      float64 `json:"cores"`
}

// rows sums up samples by buckets of time; a rest at the end that is shorter is left out.
func rows(all []sample, began time.Time, bucket time.Duration) []row {
	var found []row
	var before sample
	for end := began.Add(bucket); len(all) > 0; end = end.Add(bucket) {
		n := 0
		for n < len(all) && !all[n].at.After(end) {
			n++
		}
		if n == len(all) && all[n-1].at.Before(end.Add(-bucket/4)) {
			break
		}
		if n > 1 || n == 1 && !before.at.IsZero() {
			if before.at.IsZero() {
				before = all[0]
			}
			found = append(found, sum(before, all[:n], began))
			before = all[n-1]
		}
		all = all[n:]
	}
	return found
}

// sum is the row of the samples that came after another.
func sum(before sample, all []sample, began time.Time) row {
	last := all[len(all)-1]
	seconds := max(last.at.Sub(before.at).Seconds(), 1e-3)
	r := row{
		At: last.at.Sub(began).Seconds(), Tasks: float64(last.closed-before.closed) / seconds,
		Events: float64(last.emitted-before.emitted) / seconds, CPU: (last.cpu - before.cpu) / seconds,
		Calls: (last.calls - before.calls) / max(1, float64(last.closed-before.closed)),
	}
	for _, s := range all {
		r.RSS, r.Live, r.Routines = max(r.RSS, s.rss), max(r.Live, s.live), max(r.Routines, s.goroutines)
	}
	return r
}

// trend is how a number went over the rows that count: all but the first sixth.
type trend struct {
	Name   string  `json:"name"`
	Mean   float64 `json:"mean"`
	Growth float64 `json:"growth"` // from the first to the last of these rows, along the straight line through them, as a part of the mean
	Error  float64 `json:"error"`  // the standard error of the growth
	Wrong  bool    `json:"wrong"`
}

// String returns it in a few words.
func (t trend) String() string {
	return fmt.Sprintf("%+.1f %% ± %.1f", 100*t.Growth, 100*t.Error)
}

// trendOf fits a straight line (least squares). It is wrong where it rises by more than tolerate, and that by more than three
// standard errors.
func trendOf(name string, rows []row, of func(row) float64, tolerate float64) trend {
	t := trend{Name: name}
	rows = rows[(len(rows)+5)/6:]
	n := float64(len(rows))
	if n < 3 {
		return t
	}
	var sx, sy, sxx, sxy float64
	for i, r := range rows {
		x, y := float64(i), of(r)
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	slope := (n*sxy - sx*sy) / (n*sxx - sx*sx)
	rest := 0.0
	for i, r := range rows {
		miss := of(r) - sy/n - slope*(float64(i)-sx/n)
		rest += miss * miss
	}
	t.Mean = sy / n
	scale := (n - 1) / max(t.Mean, 1e-9)
	t.Growth = slope * scale
	t.Error = scale * math.Sqrt(rest/(n-2)/(sxx-sx*sx/n))
	t.Wrong = t.Growth > tolerate && t.Growth > 3*t.Error
	return t
}

// trends are those that may not grow.
func trends(rows []row, tolerate float64) []trend {
	return []trend{
		trendOf("memory, resident", rows, func(r row) float64 { return r.RSS }, tolerate),
		trendOf("heap in use", rows, func(r row) float64 { return r.Live }, tolerate),
		trendOf("goroutines", rows, func(r row) float64 { return r.Routines }, tolerate),
		trendOf("store calls per task", rows, func(r row) float64 { return r.Calls }, tolerate),
	}
}
