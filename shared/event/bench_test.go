package event_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/event"
)

// body256 is an emission of one event of 256 bytes.
func body256() []byte {
	body := `[{"TYPE":"PackageInstalled","key":"/packages/core/linux","version":"6.12.1-1","size":138412032,"tags":["kernel","core"],"reason":{"TYPE":"Explicit","by":"root"},"note":"`
	return []byte(body + strings.Repeat("x", 256+2-len(body)-len(`"}]`)) + `"}]`)
}

func BenchmarkParseEvents(b *testing.B) {
	body := body256()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := event.ParseEvents(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseEventsBatch100(b *testing.B) {
	one := string(body256()[1 : len(body256())-1])
	body := []byte("[" + strings.Repeat(one+",", 99) + one + "]")
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := event.ParseEvents(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSeqAppendJSON(b *testing.B) {
	seq := seqOf(b, 100)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = seq.AppendJSON(dst[:0], true)
	}
	b.SetBytes(int64(len(dst)))
}

func BenchmarkParseSeq(b *testing.B) {
	seq := seqOf(b, 100)
	text := seq.AppendJSON(nil, true)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := event.ParseSeq(text); err != nil {
			b.Fatal(err)
		}
	}
}

func seqOf(tb testing.TB, n int) event.Seq {
	events, err := event.ParseEvents(body256())
	if err != nil {
		tb.Fatal(err)
	}
	seq := event.Seq{Kind: event.NonEmpty, EventID: 1478257702567000}
	for i := range n {
		e := events[0]
		e.ID = 1478257656606001 + event.ID(i)
		seq.Events = append(seq.Events, e)
	}
	return seq
}

func BenchmarkFilterMatch(b *testing.B) {
	for _, paths := range []int{1, 1000} {
		b.Run(fmt.Sprintf("paths=%d", paths), func(b *testing.B) {
			f := objectFilter(b, "Event", paths)
			e := event.Event{Type: "PackageInstalled", Key: event.Key{Path: "/packages/core/linux"}}
			b.ReportAllocs()
			for b.Loop() {
				if !f.Match(&e) {
					b.Fatal("Match = false, want true")
				}
			}
		})
	}
}

func objectFilter(tb testing.TB, types string, paths int) *event.Filter {
	tb.Helper()
	selection, err := event.ParseReturn(types)
	if err != nil {
		tb.Fatal(err)
	}
	var remainder strings.Builder
	for i := range paths - 1 {
		fmt.Fprintf(&remainder, "/other/%d|", i)
	}
	query, err := event.ParsePath(remainder.String() + "/packages/")
	if err != nil {
		tb.Fatal(err)
	}
	return &event.Filter{Types: selection, Family: event.CustomEvent, Paths: query}
}

func BenchmarkParseDuration(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := event.ParseDuration("1h2m3s"); err != nil {
			b.Fatal(err)
		}
	}
}
