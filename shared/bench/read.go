package bench

import (
	"context"
	"fmt"
	"runtime/metrics"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// Read measures reading the journal from its beginning.
type Read struct {
	Journal
	Events int `help:"Events to put on the journal first." default:"1000000"`
}

// Help says what the columns mean.
func (Read) Help() string {
	return `LIVE HEAP is the most memory that this process had in use while it read the first half of the events, LATER while it read the
second, both without garbage, with the caches of the embedded store (128 MiB when full). Where a server is measured, it is the reader's.`
}

// Run fills the journal and reads it once from the beginning.
func (b Read) Run(ctx context.Context, p Program) (*Results, error) {
	return b.bySides(func(j Journal) (*Results, error) {
		b.Journal = j
		return b.run(ctx, p)
	}, "WRITTEN/S", "READ/S")
}

func (b Read) run(ctx context.Context, p Program) (*Results, error) {
	r := newResults("EVENTS\tWRITTEN/S\tREAD/S\tLIVE HEAP\tLATER", "events", "written_per_s", "read_per_s", "live_heap", "live_heap_later")
	return r, b.on(ctx, p, func(s subject, _ string) error {
		began := time.Now()
		if err := fill(ctx, s, b.Events, b.Size); err != nil {
			return err
		}
		filled := time.Since(began)
		read, elapsed, heap, err := readAll(ctx, s, b.Events)
		if err == nil && b.URL == "" && read < b.Events { // a server has told of its start, too
			err = fmt.Errorf("read %d events of %d", read, b.Events)
		}
		r.add(read, rate(float64(b.Events)/filled.Seconds()), rate(float64(read)/elapsed.Seconds()), heap[0], heap[1])
		return err
	})
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

// readAll reads the journal to its end and returns how many events it has, and the most memory that was in use while the
// first half of the events expected was read, and while the second was: alike if reading much takes no more than reading
// little.
func readAll(ctx context.Context, s subject, expected int) (events int, elapsed time.Duration, heap [2]size, err error) {
	began := time.Now()
	for after := event.ID(0); ; {
		n, last, err := s.read(ctx, after)
		if err != nil || n == 0 {
			return events, time.Since(began), heap, err
		}
		events += n
		after = last
		half := min(2*events/max(expected, 1), 1)
		heap[half] = max(heap[half], liveHeap())
	}
}

// liveHeap returns the memory that the last garbage collection found in use in this process: the caches of an embedded store
// too, and no garbage.
func liveHeap() size {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return size(live[0].Value.Uint64())
}
