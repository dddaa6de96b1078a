package groupcommit

import (
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
