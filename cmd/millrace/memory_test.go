package main

import "testing"

func TestGarbageIsBoundedWhereMuchIsInUse(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{
		0: garbage, 10 << 20: garbage, 64 << 20: 200, 256 << 20: 125, 8 << 30: usualGarbage,
	} {
		if got := garbagePercent(live); got != want {
			t.Errorf("garbagePercent(%d MiB) = %d, want %d", live>>20, got, want)
		}
	}
}
