package stream_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const newsletter = "Codello Newsletter Subscriptions"

const (
	initiated   = "Subscription initiated"
	confirmed   = "Subscription confirmed"
	aborted     = "Subscription aborted"
	canceled    = "Subscription canceled"
	reactivated = "Subscription reactivated"
)

// table holds the events of the event server's example of consumer offsets, in its order.
var table = []string{initiated, initiated, confirmed, aborted, initiated, confirmed, canceled, reactivated}

// The table and the walk of eleven steps are the event server's example of consumer offsets.
func TestSeedTable(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		var sequences []int64
		for _, e := range b.append(newsletter, table...) {
			sequences = append(sequences, e.Sequence)
		}
		if diff := cmp.Diff([]int64{1, 2, 1, 1, 3, 2, 1, 1}, sequences); diff != "" {
			t.Errorf("sequences (-want +got):\n%s", diff)
		}
		_, all := b.read(newsletter, "", 100)
		want := []string{
			initiated + " 1", initiated + " 2", confirmed + " 1", aborted + " 1", initiated + " 3", confirmed + " 2", canceled + " 1",
			reactivated + " 1",
		}
		if diff := cmp.Diff(want, all); diff != "" {
			t.Errorf("across all names (-want +got):\n%s", diff)
		}
	})
}

func TestSeedWalk(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		b.append(newsletter, table...)
		b.offsetIs(initiated, 0)
		first, labels := b.read(newsletter, initiated, 2)
		if diff := cmp.Diff([]string{initiated + " 1", initiated + " 2"}, labels); diff != "" {
			t.Fatalf("steps 1 to 3 (-want +got):\n%s", diff)
		}
		b.ack(newsletter, first[0].ID)
		b.ack(newsletter, first[1].ID)
		b.offsetIs(initiated, 2)
		second, labels := b.read(newsletter, initiated, 2)
		if diff := cmp.Diff([]string{initiated + " 3"}, labels); diff != "" {
			t.Fatalf("steps 5 to 7 (-want +got):\n%s", diff)
		}
		b.ack(newsletter, second[0].ID)
		b.offsetIs(initiated, 3)
		if _, labels := b.read(newsletter, initiated, 2); labels != nil {
			t.Errorf("step 11: got %v, want nothing", labels)
		}
	})
}

// offsetIs demands the consumer's offset; one that has none is at 0.
func (b *bench) offsetIs(name string, want int64) {
	b.t.Helper()
	all, _, err := b.Consumers(b.t.Context(), newsletter, "", 100)
	if err != nil {
		b.t.Fatal(err)
	}
	got := int64(0)
	for _, l := range all {
		if l.Consumer == consumer && l.Name == name {
			got = l.Offset
		}
	}
	if got != want {
		b.t.Errorf("the offset of %s is %d, want %d", name, got, want)
	}
}
