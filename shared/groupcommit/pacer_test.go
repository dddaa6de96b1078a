package groupcommit

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Writes are frequent from 60 a second on, unless the newest takes long.
func TestPacer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		writes int
		every  time.Duration
		after  time.Duration // the last of them
		want   bool
	}{
		{"none", 0, 0, 0, false},
		{"one", 1, 0, 0, false},
		{"59 at once", 59, 0, 0, false},
		{"60 at once", 60, 0, 0, true},
		{"the newest has just not begun too long ago", 60, 0, Slow - 1, true},
		{"the newest takes long", 60, 0, Slow, false},
		{"for long, 50 a second", 500, 20 * time.Millisecond, 0, false},
		{"for long, 100 a second", 1000, 10 * time.Millisecond, 0, true},
		{"before a pause", 60, 0, 3 * time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var p Pacer
				for range c.writes {
					time.Sleep(c.every)
					p.Began()
				}
				time.Sleep(c.after)
				if got := p.IsFrequent(); got != c.want {
					t.Errorf("IsFrequent = %v, want %v", got, c.want)
				}
			})
		})
	}
}

// What a write has left behind, since it was full, does not wait for the end of that write if it hangs, however often there were writes before.
func TestWhatIsLeftBehindAWriteThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var pacer Pacer
		answer := make(chan struct{})
		g := New(Options[int]{
			Batch: func() func(int) bool {
				n := 0
				return func(int) bool { n++; return n == 1 }
			},
			Write: func(_ context.Context, parts []int) {
				pacer.Began()
				switch parts[0] {
				case 1:
					time.Sleep(Slow / 2)
				case 2:
					<-answer
				}
			},
			More: func([]int) bool { return !pacer.IsFrequent() }, Writers: 16, Again: Slow,
		})
		for range 100 {
			_ = g.Do(t.Context(), 0)
			time.Sleep(10 * time.Millisecond)
		}
		var calls sync.WaitGroup
		for _, part := range []int{1, 2} {
			calls.Go(func() { _ = g.Do(t.Context(), part) })
			synctest.Wait()
		}
		began := time.Now()
		_ = g.Do(t.Context(), 3) // waits for 1; then 2 is taken, and hangs
		if took := time.Since(began); took > 3*Slow {
			t.Errorf("a part beside one that hangs took %v", took)
		}
		close(answer)
		calls.Wait()
	})
}
