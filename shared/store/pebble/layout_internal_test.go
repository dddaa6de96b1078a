package pebble

import (
	"bytes"
	"cmp"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/store"
)

// names draws keys that a careless encoding would confuse.
func names() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.SampledFrom([]rune{0, 1, 2, 'a', '#', 0xFF, 0x10FFFF}), 1, 6, -1)
}

func keys() *rapid.Generator[store.Key] {
	return rapid.Custom(func(t *rapid.T) store.Key {
		return store.Key{
			Table:     rapid.SampledFrom([]store.Table{store.Journal, store.Work, store.Definitions}).Draw(t, "table"),
			Partition: names().Draw(t, "partition"), Sort: names().Draw(t, "sort"),
		}
	})
}

func encode(k store.Key) []byte { return appendKey(nil, kindOf(k.Table), k) }

// TestKeysSortAsTheyShould: by table, partition and sort, so that partitions lie apart.
func TestKeysSortAsTheyShould(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := keys().Draw(t, "a"), keys().Draw(t, "b")
		want := cmp.Or(cmp.Compare(kindOf(a.Table), kindOf(b.Table)), strings.Compare(a.Partition, b.Partition), strings.Compare(a.Sort, b.Sort))
		if got := bytes.Compare(encode(a), encode(b)); got != want {
			t.Fatalf("%q and %q compare as %d, want %d", a, b, got, want)
		}
	})
}

// TestBoundsSelect: a key lies within the bounds of a range if and only if the range selects it.
func TestBoundsSelect(t *testing.T) {
	t.Parallel()
	maybe := rapid.OneOf(rapid.Just(""), names())
	rapid.Check(t, func(t *rapid.T) {
		k := keys().Draw(t, "key")
		r := store.Range{
			Table: k.Table, Partition: rapid.OneOf(rapid.Just(k.Partition), names()).Draw(t, "partition"),
			From: maybe.Draw(t, "from"), To: maybe.Draw(t, "to"),
		}
		lower, upper := bounds(r)
		got := bytes.Compare(encode(k), lower) >= 0 && bytes.Compare(encode(k), upper) < 0
		if want := k.Partition == r.Partition && k.Sort >= r.From && (r.To == "" || k.Sort < r.To); got != want {
			t.Fatalf("%+q selects %q: %v, want %v", []string{r.Partition, r.From, r.To}, k, got, want)
		}
	})
}

func TestItemsAreReadAsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := &store.Item{
			Key: keys().Draw(t, "key"), Version: rapid.Int64Min(1).Draw(t, "version"), Token: rapid.String().Draw(t, "token"),
			Value:   rapid.SliceOf(rapid.Byte()).Draw(t, "value"),
			Expires: atSecond(rapid.Int64Range(0, 1<<40).Draw(t, "expires")),
		}
		e, err := parseEntry(appendItem(nil, want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, e.item(want.Key)); diff != "" {
			t.Fatalf("item (-want +got):\n%s", diff)
		}
	})
}

func TestExpiryIsCutToTheSecond(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	if got := toSecond(at); !got.Equal(at.Truncate(time.Second)) {
		t.Errorf("toSecond(%v) = %v", at, got)
	}
	if got := toSecond(time.Time{}); !got.IsZero() {
		t.Errorf("toSecond(never) = %v", got)
	}
}

// FuzzEntry: whatever a file holds, it is read or refused.
func FuzzEntry(f *testing.F) {
	f.Add(appendItem(nil, &store.Item{Version: 1, Token: "token", Value: []byte("value")}))
	f.Add(appendSequence(nil, store.Sequence{Position: 7, LastID: 1 << 50}, 0))
	f.Add(appendSequence(nil, store.Sequence{Position: 7, LastID: 1 << 50}, 1<<40))
	f.Add([]byte{2, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1})
	f.Fuzz(func(_ *testing.T, data []byte) {
		if e, err := parseEntry(data); err == nil {
			_ = e.item(store.Key{})
		}
		_, _, _ = parseSequence(data)
	})
}
