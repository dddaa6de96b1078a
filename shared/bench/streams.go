package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/stream"
)

// Streams measures appends to one stream, and reading it in pages.
type Streams struct {
	Scratch
	Size     int           `help:"Bytes of an event." default:"256"`
	Batch    []int         `help:"Events per append." default:"1,100"`
	Callers  []int         `help:"How many append at once for the one producer." default:"1,64"`
	Duration time.Duration `help:"How long each case takes." default:"3s"`
	Events   int           `help:"Events in the stream that is read." default:"1000000"`
}

// Help says what is measured.
func (Streams) Help() string {
	return `One producer appends to one stream; every append is durable before it counts, and is on the journal too. Then a consumer reads a
long stream in pages of 1,000, by name and over all names, from the beginning and from the end. DISK/S is how many records of that size
the disk takes from so many writers, measured just before.`
}

// Run measures every case.
func (b Streams) Run(ctx context.Context, p Program) (*Results, error) {
	r := newResults("CASE\tCALLERS\tBATCH\tEVENTS/S\tCALLS/S\tP50\tP99\tDISK/S",
		"case", "callers", "batch", "events_per_s", "calls_per_s", "p50_ms", "p99_ms", "disk_per_s")
	var err error
	for _, batch := range b.Batch {
		for _, callers := range b.Callers {
			err = errors.Join(err, b.append(ctx, p, r, callers, batch))
		}
	}
	return r, errors.Join(err, b.read(ctx, p, r))
}

// on does something with streams on a store of their own.
func (b Streams) on(ctx context.Context, p Program, do func(dir string, s *stream.Streams) error) error {
	return b.bed(ctx, p, nil, func(bed *bed) error {
		return do(bed.dir, stream.Open(stream.Options{Store: bed.Store, Journal: bed.Journal}))
	})
}

// events returns an append of that many events of that many names in turn.
func (b Streams) events(count, names int) stream.Append {
	a := stream.Append{Stream: "bench", Producer: stream.UUID{15: 1}}
	body := append([]byte(`"payload":{"x":"`), bytes.Repeat([]byte{'x'}, max(b.Size-20, 0))...)
	body = append(body, `"}`...)
	for i := range count {
		a.Events = append(a.Events, stream.Event{Name: fmt.Sprint("Thing ", i%names, " happened"), Version: 1, Body: body})
	}
	return a
}

func (b Streams) append(ctx context.Context, p Program, r *Results, callers, batch int) error {
	return b.on(ctx, p, func(dir string, s *stream.Streams) error {
		disk, err := diskFloor(dir, callers, b.Size*batch, b.Duration/3)
		if err != nil {
			return err
		}
		l, err := hammer(ctx, callers, b.Duration, func(int) func(context.Context) error {
			ask := b.events(batch, 1)
			return func(ctx context.Context) error {
				_, err := s.Append(ctx, ask)
				return err
			}
		})
		if err == nil {
			r.calls("append", callers, batch, l, disk)
		}
		return err
	})
}

// calls adds a row for calls that handled so many events each.
func (r *Results) calls(name string, callers, batch int, l laps, disk float64) {
	calls := l.perSecond()
	r.add(name, callers, batch, rate(calls*float64(batch)), rate(calls), quantile(l.each, 0.5), quantile(l.each, 0.99), rate(disk))
}

// read measures pages of a long stream of two names.
func (b Streams) read(ctx context.Context, p Program, r *Results) error {
	return b.on(ctx, p, func(_ string, s *stream.Streams) error {
		for left := b.Events; left > 0; left -= page {
			if _, err := s.Append(ctx, b.events(min(left, page), 2)); err != nil {
				return err
			}
		}
		for _, name := range []string{"Thing 0 happened", ""} {
			for _, where := range []string{"beginning", "end"} {
				from := int64(0)
				if where == "end" {
					from = max(int64(b.Events/2)-mostPages*page, 0)
				}
				what := "read by name, from the " + where
				if name == "" {
					what = "read all names, from the " + where
				}
				if err := b.pages(ctx, r, s, what, name, from); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

const (
	page      = 1000 // events
	mostPages = 20   // how many are read for one case
)

// pages reads up to mostPages pages one after the other, fewer if the stream ends before, and one at least. Each begins half a page of
// each name after the one before.
func (b Streams) pages(ctx context.Context, r *Results, s *stream.Streams, what, name string, from int64) error {
	consumer := stream.UUID{15: 2}
	var l laps
	events := 0
	count := (int64(b.Events/2) - from) / (page / 2) // of each name there is half
	for n := range min(max(count, 1), mostPages) {
		for i := range 2 {
			if err := s.Move(ctx, "bench", consumer, fmt.Sprintf("Thing %d happened", i), from+n*page/2); err != nil {
				return err
			}
		}
		at := time.Now()
		found, err := s.Read(ctx, stream.Reading{Stream: "bench", Consumer: consumer, Name: name, Limit: page})
		if err != nil {
			return err
		}
		took := time.Since(at)
		l.each, l.elapsed, events = append(l.each, took), l.elapsed+took, events+len(found)
	}
	slices.Sort(l.each)
	r.calls(what, 1, events/len(l.each), l, 0)
	return nil
}
