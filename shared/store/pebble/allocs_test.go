//go:build !race

package pebble_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/shared/store"
)

// TestAllocations: frequent calls allocate little. It runs alone, since it counts allocations.
func TestAllocations(t *testing.T) {
	s := openOn(t, vfs.NewMem())
	partition := slot(0).Partition
	for n := range int64(256) {
		mustWrite(t, s, put(slot(n), "value"))
	}
	there, absent := slot(7), slot(1<<20)
	for _, c := range []struct {
		what string
		most float64
		call func() error
	}{
		{"Get of an absent key", 5, func() error { _, err := s.Get(t.Context(), absent); return err }},
		{"Get of an item", 8, func() error { _, err := s.Get(t.Context(), there); return err }},
		{"Query of a page of 256 items", 16, func() error {
			_, err := s.Query(t.Context(), store.Range{Table: store.Journal, Partition: partition})
			return err
		}},
		{"Reserve", 0, func() error { _, err := s.Reserve(t.Context(), counter, 1, 1); return err }},
	} {
		if got := testing.AllocsPerRun(100, func() {
			if err := c.call(); err != nil {
				t.Fatal(err)
			}
		}); got > c.most {
			t.Errorf("%s allocates %v times, want at most %v", c.what, got, c.most)
		}
	}
}
