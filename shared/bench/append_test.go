package bench

import "testing"

func TestAtMost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		writers           int
		disk, stack, want float64
	}{
		{1, 6000, 12000, 4000}, // one after the other
		{16, 48000, 40000, 40000},
		{16, 30000, 40000, 30000},
		{1, 6000, 0, 6000}, // in process
		{1, 0, 12000, 12000},
	} {
		if got := atMost(c.writers, c.disk, c.stack); got != c.want {
			t.Errorf("atMost(%d, %v, %v) = %v, want %v", c.writers, c.disk, c.stack, got, c.want)
		}
	}
}
