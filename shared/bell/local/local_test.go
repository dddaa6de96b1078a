package local_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/bell"
	"github.com/millrace/millrace/shared/bell/belltest"
	"github.com/millrace/millrace/shared/bell/local"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	belltest.Run(t, belltest.Capabilities{
		Open: func(*testing.T) bell.Line { return local.New() }, Virtual: true, Exact: true,
	})
}

func TestQueuesTakeTurns(t *testing.T) {
	t.Parallel()
	b := local.New()
	defer b.Close()
	rings := []bell.Ring{{Queue: "a"}, {Queue: "a"}, {Queue: "a"}, {Queue: "b"}, {Queue: "c"}, {Queue: "c"}}
	if err := b.Ring(t.Context(), rings...); err != nil {
		t.Fatal(err)
	}
	got, err := b.Receive(t.Context(), 9)
	if err != nil {
		t.Fatal(err)
	}
	want := []bell.Ring{{Queue: "a"}, {Queue: "b"}, {Queue: "c"}, {Queue: "a"}, {Queue: "c"}, {Queue: "a"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order of rings (-want +got):\n%s", diff)
	}
}

func TestARingForLaterComesWithinTwentyMilliseconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := local.New()
		defer b.Close()
		now := time.Now()
		// The earliest comes last, so that the timer is set again each time.
		for _, delay := range []time.Duration{bell.MaxDelay, 77777 * time.Microsecond, time.Microsecond} {
			if err := b.Ring(t.Context(), bell.Ring{Queue: fmt.Sprint(delay), At: now.Add(delay)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, delay := range []time.Duration{time.Microsecond, 77777 * time.Microsecond, bell.MaxDelay} {
			rings, err := b.Receive(t.Context(), 1)
			if err != nil || rings[0].Queue != fmt.Sprint(delay) {
				t.Fatalf("Receive = %v, %v, want the ring after %v", rings, err, delay)
			}
			if late := time.Since(now) - delay; late < 0 || late > 20*time.Millisecond {
				t.Errorf("the ring after %v came %v late, want within 20 ms", delay, late)
			}
		}
	})
}

func TestMemoryDoesNotGrowWithRings(t *testing.T) {
	b := local.New()
	defer b.Close()
	rings := make([]bell.Ring, 1000)
	ring := func(times int) {
		for range times {
			later := time.Now().Add(time.Minute)
			for n := range rings {
				rings[n].Queue = "q"
				if rings[n].At = (time.Time{}); n%2 == 0 {
					rings[n].At = later.Add(time.Duration(n) * 100 * time.Microsecond)
				}
			}
			if err := b.Ring(t.Context(), rings...); err != nil {
				t.Fatal(err)
			}
		}
	}
	ring(10)
	before := heap()
	ring(990)
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("a million rings took %d bytes, want less than 1 MiB", grown)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestTurnsAreForgotten(t *testing.T) {
	b := local.New()
	defer b.Close()
	before := heap()
	for n := range 200_000 {
		if err := b.Ring(t.Context(), bell.Ring{Queue: fmt.Sprint(n)}, bell.Ring{Queue: fmt.Sprint(n + 1)}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Receive(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("queues rung and heard hold %d bytes, want less than 1 MiB", grown)
	}
}

func TestOpenTakesNoPlace(t *testing.T) {
	t.Parallel()
	if b, err := local.Open(t.Context(), ""); err != nil {
		t.Errorf("Open() = %v, want a bell", err)
	} else if err := b.Close(); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
	if _, err := local.Open(t.Context(), "there"); err == nil {
		t.Error("Open(there) = nil, want an error")
	}
}

func BenchmarkRingAndReceive(b *testing.B) {
	line := local.New()
	defer line.Close()
	ring := bell.Ring{Queue: "q"}
	b.ReportAllocs()
	for b.Loop() {
		if err := line.Ring(b.Context(), ring); err != nil {
			b.Fatal(err)
		}
		if _, err := line.Receive(b.Context(), 16); err != nil {
			b.Fatal(err)
		}
	}
}
