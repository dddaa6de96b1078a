package main

import "testing"

// Reading many events takes no more memory than reading few. Tests at the same time would be measured too, so that this one
// is not parallel.
func TestReadingTakesNoMoreMemoryTheLongerItLasts(t *testing.T) {
	const events, slack = 300_000, 24 << 20 // what the caches still fill up by
	b := bench{Dir: t.TempDir(), Size: 256}
	bed, err := b.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(t.Context(), bed, events, b.Size); err != nil {
		t.Fatal(closing(err, bed))
	}
	read, _, heap, err := readAll(t.Context(), bed, events)
	if err := closing(err, bed); err != nil {
		t.Fatal(err)
	}
	if read != events {
		t.Errorf("read %d events, want %d", read, events)
	}
	if heap[1] > heap[0]+slack {
		t.Errorf("live heap = %v in the first half, then %v", heap[0], heap[1])
	}
}

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
