package journal_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/journal"
)

// A state is a map in the order of its keys, however often it was packed in between.
func TestStateIsAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var state journal.State
		want := map[string]string{}
		for n := range rapid.IntRange(1, 12).Draw(t, "runs") {
			stride := rapid.IntRange(1, 5).Draw(t, "stride")
			from := rapid.IntRange(0, 3000).Draw(t, "from")
			deletes := rapid.IntRange(0, 2).Draw(t, "deletes") // of three
			long := rapid.SampledFrom([]int{0, 5, 5000}).Draw(t, "long")
			for i := range rapid.SampledFrom([]int{3, 400, 2500}).Draw(t, "changes") {
				key := fmt.Sprintf("/%d/%d", i%7, from+i*stride)
				if i%3 < deletes {
					state.Delete(key)
					delete(want, key)
					continue
				}
				value := fmt.Sprintf("%d-%*d", n, long/(1+i%100), i)
				state.Put(key, []byte(value))
				want[key] = value
			}
		}
		var keys []string
		got := map[string]string{}
		for key, value := range state.All() {
			keys, got[key] = append(keys, key), string(value)
			if string(state.Get(key)) != want[key] {
				t.Fatalf("Get(%q) = %q, want %q", key, state.Get(key), want[key])
			}
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), keys); diff != "" || state.Len() != len(want) {
			t.Fatalf("%d keys, want %d; keys (-want +got):\n%s", state.Len(), len(want), diff)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		for key := range want { // what is not there has no value, also between two keys
			if near := key + " "; state.Get(near) != nil {
				t.Fatalf("Get(%q) = %q, want nothing", near, state.Get(near))
			}
		}
		if state.Get("/") != nil || state.Get("/0/") != nil || state.Get("/9") != nil {
			t.Fatal("Get answers what was never put")
		}
	})
}
