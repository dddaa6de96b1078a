package layout

import (
	"strconv"
	"strings"

	"github.com/millrace/millrace/shared/store"
)

// Size returns the bytes of an item as DynamoDB counts them for capacity: the UTF-8 bytes of each attribute's name, and
// of strings; the bytes of binaries; numbers by [NumberSize]. Source: "DynamoDB item sizes and formats", Amazon DynamoDB
// Developer Guide. The 100 bytes of overhead per item are a matter of storage, not of capacity.
func Size(item store.Item) int {
	size := len(Partition) + len(ItemPartition(item.Key.Partition)) + len(Sort) + len(item.Key.Sort)
	size += len(Version) + NumberSize(item.Version)
	size += len(Token) + len(item.Token)
	if len(item.Value) > 0 {
		size += len(Value) + len(item.Value)
	}
	if !item.Expires.IsZero() {
		size += len(Expires) + NumberSize(Seconds(item.Expires))
	}
	return size
}

// SequencerSize returns the bytes of a sequencer's item. One that is [store.Passing] has a time at which it expires.
func SequencerSize(key store.Key, state store.Sequence) int {
	size := len(Partition) + len(SequencerPartition(key)) + len(Sort) + len(key.Sort)
	for name, value := range map[string]int64{
		Position: state.Position, LastID: state.LastID, FloorPosition: state.FloorPosition, FloorID: state.FloorID,
	} {
		if value != 0 {
			size += len(name) + NumberSize(value)
		}
	}
	if key.IsPassing() && state.Position > 0 {
		size += len(Expires) + NumberSize(anyTime)
	}
	return size
}

// anyTime is a time in seconds since 1970 that takes as many bytes as any, until the year 2286.
const anyTime = 9_999_999_999

// NumberSize returns the bytes of a number: one for each two significant digits, and one more; leading and trailing
// zeros are not significant; a sign takes one more byte. The guide calls this approximate.
func NumberSize(n int64) int {
	digits, negative := strings.CutPrefix(strconv.FormatInt(n, 10), "-")
	digits = strings.TrimRight(digits, "0")
	size := (len(digits)+1)/2 + 1
	if negative {
		size++
	}
	return size
}
