package dynamo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
)

// TestAPassingSequencerCountsLikeAnyOther: a passing sequencer returns the same tickets as any other, in each of the requests
// by which a ticket is taken.
func TestAPassingSequencerCountsLikeAnyOther(t *testing.T) {
	t.Parallel()
	s := emulated(t, nil)
	key := store.Key{Table: store.Work, Partition: store.Passing + "q", Sort: "k"}
	var firsts []int64
	for i, now := range []int64{1, 1, 500, 3, 100_000_000} {
		ticket, err := s.Reserve(t.Context(), key, 10, now)
		if err != nil {
			t.Fatal(err)
		}
		if ticket.Position != int64(i+1) {
			t.Errorf("Reserve %d = %+v", i, ticket)
		}
		firsts = append(firsts, ticket.FirstID)
	}
	if diff := cmp.Diff([]int64{1, 11, 500, 510, 100_000_000}, firsts); diff != "" {
		t.Errorf("first ids (-want +got):\n%s", diff)
	}
}
