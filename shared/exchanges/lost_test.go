package exchanges_test

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/store"
)

// A lease that is lost is told once, also by a process that was started since, or that has not served the instance before.
func TestALostLeaseIsToldByAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]int{"right after its claim": 0, "after other exchanges": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s store.Store) {
				first := open(t, s)
				id := first.register(t, 5)
				ids := first.add(t, 2)
				claims := tokensOf(first.must(t, id, exchanges.Request{Seq: 1, Max: 2}).Claims)
				seq := int64(1)
				next := func(p *process) []string {
					seq++
					return p.must(t, id, exchanges.Request{Seq: seq}).Stops
				}
				for range between {
					next(first)
				}
				if err := first.queue.Remove(t.Context(), ids[0]); err != nil {
					t.Fatal(err)
				}
				second := open(t, s)
				if stops := next(second); !slices.Equal(stops, claims[:1]) {
					t.Errorf("stops = %v, want the lease that is lost, %v", stops, claims[:1])
				}
				for range 2 {
					if stops := next(second); len(stops) > 0 {
						t.Errorf("stops = %v, and it was told", stops)
					}
				}
				if s.Exclusive() {
					return
				}
				if err := second.queue.Remove(t.Context(), ids[1]); err != nil {
					t.Fatal(err)
				}
				if stops := next(first); !slices.Equal(stops, claims[1:]) {
					t.Errorf("stops = %v, want the lease that is lost, %v", stops, claims[1:])
				}
			})
		})
	}
}
