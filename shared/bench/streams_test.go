package bench

import (
	"fmt"
	"testing"
)

// A stream of any length is read in as many pages as it has.
func TestStreamsOfAnyLengthAreRead(t *testing.T) {
	t.Parallel()
	for _, events := range []int{1, 5, 999, 1000, 1001, 5000, 12_345} {
		t.Run(fmt.Sprint(events), func(t *testing.T) {
			t.Parallel()
			r := newResults("", "case")
			b := Streams{Scratch: Scratch{Dir: t.TempDir()}, Size: 64, Events: events}
			if err := b.read(t.Context(), Program{Open: open}, r); err != nil {
				t.Fatal(err)
			}
			if len(r.Rows) != 4 {
				t.Errorf("%d results, want 4", len(r.Rows))
			}
		})
	}
}
