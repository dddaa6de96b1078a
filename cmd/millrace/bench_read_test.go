package main

import "testing"

// Reading many events takes no more memory than reading few. Tests at the same time would be measured too, so that this one
// is not parallel.
func TestReadingTakesNoMoreMemoryTheLongerItLasts(t *testing.T) {
	const events, rounds = 300_000, 3 // some 80 MB a round
	const slack = 64 << 20            // what the store's caches may still fill up by after the first round
	b := bench{Dir: t.TempDir(), Size: 256}
	bed, err := b.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := bed.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := fill(t.Context(), bed, events, b.Size); err != nil {
		t.Fatal(err)
	}
	first := mostHeap(t, bed, events)
	for range rounds {
		if later := mostHeap(t, bed, events); later > first+slack {
			t.Errorf("live heap = %v, in the first round %v", later, first)
		}
	}
}

// mostHeap reads the whole journal and returns the most memory that was in use meanwhile.
func mostHeap(t *testing.T, bed *bed, events int) size {
	t.Helper()
	read, _, heap, err := readAll(t.Context(), bed, events)
	if err != nil || read != events {
		t.Fatalf("read %d events of %d: %v", read, events, err)
	}
	return max(heap[0], heap[1])
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
