package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/host"
)

type benchAppendCommand struct {
	bench
	Writers  []int         `help:"How many append at once." default:"1,16,64"`
	Batch    []int         `help:"Events per append." default:"1,100"`
	Duration time.Duration `help:"How long each case takes." default:"3s"`
}

// Run measures every case and prints a row for each.
func (b benchAppendCommand) Run(ctx context.Context, c console) error {
	bed, err := b.open(ctx)
	if err != nil {
		return err
	}
	r := &results{heading: "WRITERS\tBATCH\tEVENTS/S\tAPPENDS/S\tP50\tP99\tDISK/S\tHTTP/S\tAT MOST"}
	for _, batch := range b.Batch {
		for _, writers := range b.Writers {
			if err = b.measure(ctx, bed, r, writers, batch); err != nil {
				return closing(err, bed)
			}
		}
	}
	names := []string{"writers", "batch", "events_per_s", "appends_per_s", "p50_ms", "p99_ms", "disk_per_s", "http_per_s", "at_most_per_s"}
	return closing(r.print(c.out, b.format, names), bed)
}

// measure measures one case, and just before it the most that the disk and the HTTP stack can do.
func (b benchAppendCommand) measure(ctx context.Context, bed *bed, r *results, writers, batch int) error {
	disk, err := diskFloor(bed.dir, writers, b.Size*batch, b.Duration/3)
	if err != nil {
		return err
	}
	stack, err := b.stackFloor(ctx, writers, batch)
	if err != nil {
		return err
	}
	laps, elapsed, err := hammer(ctx, bed, writers, batch, b.Size, b.Duration)
	if err != nil {
		return err
	}
	appends := float64(len(laps)) / elapsed.Seconds()
	r.add(writers, batch, rate(appends*float64(batch)), rate(appends),
		took(quantile(laps, 0.5)), took(quantile(laps, 0.99)), rate(disk), rate(stack), rate(atMost(writers, disk, stack)))
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

// stackFloor measures the same requests with a server that reads them and responds at once; 0 where HTTP is not measured.
func (b benchAppendCommand) stackFloor(ctx context.Context, writers, batch int) (float64, error) {
	if !b.HTTP {
		return 0, nil
	}
	return stackRate(ctx, writers, batch, b.Size, b.Duration/3)
}

// stackRate returns how many requests a second, with that many events each, get a response if the server only reads them.
func stackRate(ctx context.Context, writers, batch, size int, duration time.Duration) (perSecond float64, err error) {
	idle, err := startChild(ctx, nil, "bench", "stack", "--batch", strconv.Itoa(batch))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, idle.stop()) }()
	s, err := dialSubject(idle.url, "idle")
	if err != nil {
		return 0, err
	}
	laps, elapsed, err := hammer(ctx, s, writers, batch, size, duration)
	return float64(len(laps)) / elapsed.Seconds(), err
}

// benchStackCommand is the HTTP host with nothing behind it.
type benchStackCommand struct {
	Batch int `default:"1"`
}

// Run serves until ctx ends.
func (b benchStackCommand) Run(ctx context.Context, c console) error {
	listener, err := listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, ready, "http://"+listener.Addr().String())
	return host.Server{Handler: answerIDs(b.Batch), Log: silent()}.Serve(ctx, listener)
}

// answerIDs responds to every request as if it had appended that many events.
func answerIDs(count int) http.HandlerFunc {
	ids := strings.Repeat(",1478257656606001", count)
	answer := []byte(`{"eventIds":[` + ids[1:] + `]}`)
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return // the client has left
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(answer)
	}
}

// hammer lets writers append as fast as they can and returns how long each append took, sorted.
func hammer(ctx context.Context, s subject, writers, batch, size int, duration time.Duration) ([]time.Duration, time.Duration, error) {
	each := make([][]time.Duration, writers)
	began := time.Now()
	err := together(ctx, writers, func(ctx context.Context, w int) error {
		events := sample(batch, size, int64(w))
		for at := time.Now(); at.Sub(began) < duration; {
			if err := s.emit(ctx, events); err != nil {
				return err
			}
			now := time.Now()
			each[w] = append(each[w], now.Sub(at))
			at = now
		}
		return nil
	})
	elapsed := time.Since(began)
	laps := slices.Concat(each...)
	slices.Sort(laps)
	return laps, elapsed, err
}

// quantile returns the value below which that part of the sorted values lies; 0 if there are none.
func quantile(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}
