package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// Append measures appends to the journal, by writers and batch size.
type Append struct {
	Journal
	Writers  []int         `help:"How many append at once." default:"1,16,64"`
	Batch    []int         `help:"Events per append." default:"1,100"`
	Duration time.Duration `help:"How long each case takes." default:"3s"`
}

// Help returns "".
func (Append) Help() string { return "" }

// Run measures every case.
func (a Append) Run(ctx context.Context, p Program) (*Results, error) {
	return a.bySides(func(j Journal) (*Results, error) {
		a.Journal = j
		return a.run(ctx, p)
	}, "EVENTS/S", "P50", "P99")
}

func (a Append) run(ctx context.Context, p Program) (*Results, error) {
	r := newResults("WRITERS\tBATCH\tEVENTS/S\tAPPENDS/S\tP50\tP99\tDISK/S\tHTTP/S\tAT MOST",
		"writers", "batch", "events_per_s", "appends_per_s", "p50_ms", "p99_ms", "disk_per_s", "http_per_s", "at_most_per_s")
	return r, a.on(ctx, p, func(s subject, dir string) error {
		for _, batch := range a.Batch {
			for _, writers := range a.Writers {
				if err := a.measure(ctx, p, s, dir, r, writers, batch); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// measure measures one case, and just before it the most that the disk and the HTTP stack can do.
func (a Append) measure(ctx context.Context, p Program, s subject, dir string, r *Results, writers, batch int) error {
	disk, err := diskFloor(dir, writers, a.Size*batch, a.Duration/3)
	if err != nil {
		return err
	}
	stack := 0.0
	if !a.InProcess && a.URL == "" {
		if stack, err = p.stackRate(ctx, writers, batch, a.Size, a.Duration/3); err != nil {
			return err
		}
	}
	l, err := hammer(ctx, writers, a.Duration, emitting(s, batch, a.Size))
	if err != nil {
		return err
	}
	appends := l.perSecond()
	r.add(writers, batch, rate(appends*float64(batch)), rate(appends), quantile(l.each, 0.5), quantile(l.each, 0.99),
		rate(disk), rate(stack), rate(atMost(writers, disk, stack)))
	return nil
}

// atMost returns how many appends a second could be made if they took nothing but the disk and the HTTP stack; a rate of 0 was
// not measured and is no bound.
func atMost(writers int, disk, stack float64) float64 {
	switch {
	case disk == 0 || stack == 0:
		return disk + stack
	case writers == 1:
		return 1 / (1/disk + 1/stack)
	default:
		return min(disk, stack)
	}
}

// stackRate returns how many requests a second, with that many events each, get a response if the server only reads them.
func (p Program) stackRate(ctx context.Context, writers, batch, size int, duration time.Duration) (perSecond float64, err error) {
	idle, err := p.start(ctx, nil, "bench", "stack")
	if err != nil {
		return 0, err
	}
	err = dialed(idle.url, "idle", func(s subject) error {
		l, err := hammer(ctx, writers, duration, emitting(s, batch, size))
		perSecond = l.perSecond()
		return err
	})
	return perSecond, errors.Join(err, idle.stop())
}

// Stack is a handler that reads a request and responds as if it had appended the events in it.
func Stack(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has left
	}
	ids := strings.Repeat(",1478257656606001", max(1, bytes.Count(body, []byte(`"TYPE":`))))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"eventIds":[`+ids[1:]+`]}`)
}
