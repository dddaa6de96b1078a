package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/millrace/millrace/shared/event"
)

type benchReadCommand struct {
	bench
	Events int `help:"Events to put on the journal first." default:"1000000"`
}

// Run fills the journal and reads it once from the beginning.
func (b benchReadCommand) Run(ctx context.Context, c console) error {
	bed, err := b.open(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := fill(ctx, bed, b.Events, b.Size); err != nil {
		return closing(err, bed)
	}
	filled := time.Since(began)
	r := &results{heading: "EVENTS\tWRITTEN/S\tREAD/S\tPEAK HEAP"}
	read, elapsed, heap, err := readAll(ctx, bed)
	if err == nil && b.URL == "" && read != b.Events {
		err = fmt.Errorf("read %d events of %d", read, b.Events)
	}
	r.add(read, rate(float64(b.Events)/filled.Seconds()), rate(float64(read)/elapsed.Seconds()), fmt.Sprintf("%d MiB", heap>>20))
	return closing(errors.Join(err, r.print(c.out, b.format, []string{"events", "written_per_s", "read_per_s", "peak_heap"})), bed)
}

// fill puts so many events on the journal.
func fill(ctx context.Context, s subject, count, size int) error {
	const batch, writers = 500, 8
	return together(ctx, writers, func(ctx context.Context, w int) error {
		for first := w * batch; first < count; first += writers * batch {
			if err := s.emit(ctx, sample(min(batch, count-first), size, int64(first))); err != nil {
				return err
			}
		}
		return nil
	})
}

// readAll reads the journal to its end and answers how many events it has, and the most memory that was in use.
func readAll(ctx context.Context, s subject) (events int, elapsed time.Duration, heap uint64, err error) {
	var memory runtime.MemStats
	began := time.Now()
	for after, page := event.ID(0), 0; ; page++ {
		n, last, err := s.read(ctx, after)
		if err != nil || n == 0 {
			return events, time.Since(began), heap, err
		}
		events += n
		after = last
		if page%8 == 0 {
			runtime.ReadMemStats(&memory)
			heap = max(heap, memory.HeapInuse)
		}
	}
}
