package local_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/notifier/local"
	"github.com/millrace/millrace/shared/notifier/notifiertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	notifiertest.Run(t, notifiertest.Capabilities{
		Open: func(*testing.T) notifier.Line { return local.New() }, Virtual: true, Exact: true,
	})
}

func TestQueuesTakeTurns(t *testing.T) {
	t.Parallel()
	b := local.New()
	defer b.Close()
	notices := []notifier.Notice{{Queue: "a"}, {Queue: "a"}, {Queue: "a"}, {Queue: "b"}, {Queue: "c"}, {Queue: "c"}}
	if err := b.Notify(t.Context(), notices...); err != nil {
		t.Fatal(err)
	}
	got, err := b.Receive(t.Context(), 9)
	if err != nil {
		t.Fatal(err)
	}
	want := []notifier.Notice{{Queue: "a"}, {Queue: "b"}, {Queue: "c"}, {Queue: "a"}, {Queue: "c"}, {Queue: "a"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order of notices (-want +got):\n%s", diff)
	}
}

func TestANoticeForLaterComesWithinTwentyMilliseconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := local.New()
		defer b.Close()
		now := time.Now()
		// The earliest comes last, so that the timer is set again each time.
		for _, delay := range []time.Duration{notifier.MaxDelay, 77777 * time.Microsecond, time.Microsecond} {
			if err := b.Notify(t.Context(), notifier.Notice{Queue: fmt.Sprint(delay), At: now.Add(delay)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, delay := range []time.Duration{time.Microsecond, 77777 * time.Microsecond, notifier.MaxDelay} {
			notices, err := b.Receive(t.Context(), 1)
			if err != nil || notices[0].Queue != fmt.Sprint(delay) {
				t.Fatalf("Receive = %v, %v, want the notice after %v", notices, err, delay)
			}
			if late := time.Since(now) - delay; late < 0 || late > 20*time.Millisecond {
				t.Errorf("the notice after %v came %v late, want within 20 ms", delay, late)
			}
		}
	})
}

func TestMemoryDoesNotGrowWithNotices(t *testing.T) {
	b := local.New()
	defer b.Close()
	notices := make([]notifier.Notice, 1000)
	notify := func(times int) {
		for range times {
			later := time.Now().Add(time.Minute)
			for n := range notices {
				notices[n].Queue = "q"
				if notices[n].At = (time.Time{}); n%2 == 0 {
					notices[n].At = later.Add(time.Duration(n) * 100 * time.Microsecond)
				}
			}
			if err := b.Notify(t.Context(), notices...); err != nil {
				t.Fatal(err)
			}
		}
	}
	notify(10)
	before := heap()
	notify(990)
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("a million notices took %d bytes, want less than 1 MiB", grown)
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
		if err := b.Notify(t.Context(), notifier.Notice{Queue: fmt.Sprint(n)}, notifier.Notice{Queue: fmt.Sprint(n + 1)}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Receive(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("queues notified and heard hold %d bytes, want less than 1 MiB", grown)
	}
}

func TestOpenTakesNoPlace(t *testing.T) {
	t.Parallel()
	if b, err := local.Open(t.Context(), ""); err != nil {
		t.Errorf("Open() = %v, want a notifier", err)
	} else if err := b.Close(); err != nil {
		t.Errorf("Close = %v, want nil", err)
	}
	if _, err := local.Open(t.Context(), "there"); err == nil {
		t.Error("Open(there) = nil, want an error")
	}
}

func BenchmarkNoticeAndReceive(b *testing.B) {
	line := local.New()
	defer line.Close()
	notice := notifier.Notice{Queue: "q"}
	b.ReportAllocs()
	for b.Loop() {
		if err := line.Notify(b.Context(), notice); err != nil {
			b.Fatal(err)
		}
		if _, err := line.Receive(b.Context(), 16); err != nil {
			b.Fatal(err)
		}
	}
}
