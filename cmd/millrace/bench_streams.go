package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/config"
	"github.com/millrace/millrace/shared/stream"
)

type benchStreamsCommand struct {
	format
	Dir      string        `help:"Where to make the temporary store; measures that disk. Default: the system's directory for temporary files." placeholder:"DIR"`
	Size     int           `help:"Bytes of an event." default:"256"`
	Batch    []int         `help:"Events per append." default:"1,100"`
	Callers  []int         `help:"How many append at once for the one producer." default:"1,64"`
	Duration time.Duration `help:"How long each case takes." default:"3s"`
	Events   int           `help:"Events in the stream that is read." default:"1000000"`
}

func (benchStreamsCommand) Help() string {
	return `One producer appends to one stream; every append is durable before it counts, and is on the journal too. Then a consumer reads a
long stream in pages of 1,000, by name and over all names, from the beginning and from the end. DISK/S is how many records of that size
the disk takes from so many writers, measured just before.`
}

// Run measures every case and prints a row for each.
func (b benchStreamsCommand) Run(ctx context.Context, c console) error {
	r := &results{heading: "CASE\tCALLERS\tBATCH\tEVENTS/S\tCALLS/S\tP50\tP99\tDISK/S"}
	var err error
	for _, batch := range b.Batch {
		for _, callers := range b.Callers {
			err = errors.Join(err, b.append(ctx, r, callers, batch))
		}
	}
	err = errors.Join(err, b.read(ctx, r))
	names := []string{"case", "callers", "batch", "events_per_s", "calls_per_s", "p50_ms", "p99_ms", "disk_per_s"}
	return errors.Join(err, r.print(c.out, b.format, names))
}

// on does something with streams on a store of their own.
func (b benchStreamsCommand) on(ctx context.Context, do func(dir string, s *stream.Streams) error) (err error) {
	dir, err := os.MkdirTemp(b.Dir, "millrace-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	settings := config.Settings{Store: "pebble:" + dir + "/store", Tokens: []access.Token{access.NewToken("bench", access.Admin, "bench")}}
	n, err := openNode(ctx, settings, silent())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	return do(dir, stream.Open(stream.Options{Store: n.Store, Journal: n.Journal}))
}

// events returns an append of that many events of that many names in turn.
func (b benchStreamsCommand) events(count, names int) stream.Append {
	a := stream.Append{Stream: "bench", Producer: stream.UUID{15: 1}}
	body := append([]byte(`"payload":{"x":"`), bytes.Repeat([]byte{'x'}, max(b.Size-20, 0))...)
	body = append(body, `"}`...)
	for i := range count {
		a.Events = append(a.Events, stream.Event{Name: fmt.Sprint("Thing ", i%names, " happened"), Version: 1, Body: body})
	}
	return a
}

func (b benchStreamsCommand) append(ctx context.Context, r *results, callers, batch int) error {
	return b.on(ctx, func(dir string, s *stream.Streams) error {
		disk, err := diskFloor(dir, callers, b.Size*batch, b.Duration/3)
		if err != nil {
			return err
		}
		each := make([][]time.Duration, callers)
		began := time.Now()
		err = together(ctx, callers, func(ctx context.Context, i int) error {
			ask := b.events(batch, 1)
			for at := time.Now(); at.Sub(began) < b.Duration; {
				if _, err := s.Append(ctx, ask); err != nil {
					return err
				}
				now := time.Now()
				each[i] = append(each[i], now.Sub(at))
				at = now
			}
			return nil
		})
		if err != nil {
			return err
		}
		b.row(r, "append", callers, batch, slices.Concat(each...), time.Since(began), disk)
		return nil
	})
}

// row adds what was measured of calls that handled so many events each.
func (b benchStreamsCommand) row(r *results, name string, callers, batch int, laps []time.Duration, elapsed time.Duration, disk float64) {
	slices.Sort(laps)
	calls := float64(len(laps)) / elapsed.Seconds()
	r.add(name, callers, batch, rate(calls*float64(batch)), rate(calls), took(quantile(laps, 0.5)), took(quantile(laps, 0.99)), rate(disk))
}

// read measures pages of a long stream of two names.
func (b benchStreamsCommand) read(ctx context.Context, r *results) error {
	const page = 1000
	return b.on(ctx, func(_ string, s *stream.Streams) error {
		for range b.Events / page {
			if _, err := s.Append(ctx, b.events(page, 2)); err != nil {
				return err
			}
		}
		for _, name := range []string{"Thing 0 happened", ""} {
			for _, where := range []string{"beginning", "end"} {
				from := int64(0)
				if where == "end" {
					from = max(int64(b.Events/2)-20*page, 0)
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

// pages reads 20 pages one after the other.
func (b benchStreamsCommand) pages(ctx context.Context, r *results, s *stream.Streams, what, name string, from int64) error {
	const page = 1000
	consumer := stream.UUID{15: 2}
	var laps []time.Duration
	events := 0
	for n := range int64(20) {
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
		laps, events = append(laps, time.Since(at)), events+len(found)
	}
	total := time.Duration(0)
	for _, lap := range laps {
		total += lap
	}
	b.row(r, what, 1, events/len(laps), laps, total, 0)
	return nil
}
