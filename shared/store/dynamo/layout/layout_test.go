package layout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/dynamo/layout"
)

func TestNumberSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]int{
		0:                     1, // no significant digit
		7:                     2, // one digit, one byte for two, and one more
		42:                    2,
		100:                   2, // trailing zeros are not significant
		123:                   3,
		-42:                   3,
		1_700_000_000_000_000: 2,
		1_763_697_600_123_456: 9, // 16 digits: an EventId
	} {
		if got := layout.NumberSize(n); got != want {
			t.Errorf("NumberSize(%d) = %d, want %d", n, got, want)
		}
	}
}

// The bytes are counted by hand from the guide's rules: names and strings in UTF-8, binaries raw, numbers as above.
func TestSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		item store.Item
		want int
	}{
		{
			"the least", store.Item{Key: store.Key{Partition: "p", Sort: "s"}, Version: 1, Token: "t"},
			2 + 1 + 2 + 1 + 1 + 2 + 1 + 1,
		},
		{
			"letters of several bytes", store.Item{Key: store.Key{Partition: "grün", Sort: "日本"}, Version: 1, Token: "t"},
			2 + 5 + 2 + 6 + 1 + 2 + 1 + 1,
		},
		{
			"a value, which counts raw and not as base64",
			store.Item{Key: store.Key{Partition: "J#main#0", Sort: "00000007"}, Version: 7, Token: "0123456789abcdef", Value: make([]byte, 300)},
			2 + 8 + 2 + 8 + 1 + 2 + 1 + 16 + 1 + 300,
		},
		{
			"an expiry",
			store.Item{Key: store.Key{Partition: "p", Sort: "s"}, Version: 1, Token: "t", Expires: time.Unix(1763697601, 0)},
			2 + 1 + 2 + 1 + 1 + 2 + 1 + 1 + 1 + 6,
		},
	} {
		if got := layout.Size(c.item); got != c.want {
			t.Errorf("Size(%s) = %d, want %d", c.name, got, c.want)
		}
	}
}

func TestSequencerSize(t *testing.T) {
	t.Parallel()
	key := store.Key{Partition: "main", Sort: "0"}
	if got, want := layout.SequencerSize(key, store.Sequence{}), 2+6+2+1; got != want {
		t.Errorf("SequencerSize(new) = %d, want %d", got, want)
	}
	state := store.Sequence{Position: 123, LastID: 1_763_697_600_123_456, FloorPosition: 42, FloorID: 7}
	if got, want := layout.SequencerSize(key, state), 2+6+2+1+(3+3)+(4+9)+(4+2)+(3+2); got != want {
		t.Errorf("SequencerSize(%+v) = %d, want %d", state, got, want)
	}
}

func TestAPassingSequencerHasATimeToo(t *testing.T) {
	t.Parallel()
	state := store.Sequence{Position: 123, LastID: 1_763_697_600_123_456}
	key := store.Key{Table: store.Work, Partition: "turn.q", Sort: "k"}
	stays := layout.SequencerSize(key, state)
	key.Partition = store.Passing + "q"
	if got, want := layout.SequencerSize(key, state), stays+len("x")+6; got != want {
		t.Errorf("SequencerSize of a passing sequencer = %d, want %d", got, want)
	}
	if got := layout.SequencerSize(key, store.Sequence{}); got >= stays {
		t.Errorf("SequencerSize of one that is not there yet = %d", got)
	}
}

func TestNoItemLiesWhereASequencerLies(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", store.MaxPartition)
	partitions := []string{
		"p", "~", "~~", "s", "~s", "~sp", "~i", "~ip", "~s~", "~i~s", "~t", "~j", long, "~" + long[1:], "~s" + long[2:], "~i" + long[2:],
	}
	owners := map[string]string{}
	for _, p := range partitions {
		for owner, at := range map[string]string{
			"item " + p:      layout.ItemPartition(p),
			"sequencer " + p: layout.SequencerPartition(store.Key{Partition: p}),
		} {
			if other, taken := owners[at]; taken {
				t.Errorf("%.40q and %.40q both lie at %.40q", owner, other, at)
			}
			owners[at] = owner
			if len(at) > store.MaxPartition {
				t.Errorf("%.40q lies at a key of %d bytes, want at most %d", owner, len(at), store.MaxPartition)
			}
		}
	}
}

func TestSecondsRoundsUp(t *testing.T) {
	t.Parallel()
	for at, want := range map[time.Time]int64{time.Unix(100, 0): 100, time.Unix(100, 1): 101} {
		if got := layout.Seconds(at); got != want {
			t.Errorf("Seconds(%v) = %d, want %d: an item must not go before its time", at, got, want)
		}
	}
}
