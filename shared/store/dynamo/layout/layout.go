package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// The attributes of an item. Their names are short because DynamoDB charges for them, in every item, as for values.
const (
	Partition = "pk" // S, the table's partition key
	Sort      = "sk" // S, the table's sort key
	Version   = "v"  // N
	Token     = "t"  // S
	Value     = "d"  // B, missing when empty
	Expires   = "x"  // N, seconds since 1970; the tables' time-to-live attribute; missing when the item never expires
)

// The attributes of a sequencer, besides its key.
const (
	Position      = "pos"  // N, missing before the first reservation
	LastID        = "last" // N, missing before the first reservation
	FloorPosition = "fpos" // N, missing before the first floor
	FloorID       = "fid"  // N, missing before the first floor
)

// Partition keys that start with a tilde are reserved. A sequencer is not an item of the port, so it must not be found under
// any key that an item can have; items whose own partition starts with a tilde get a reserved prefix of their own.
const (
	mark            = "~"
	markedItem      = mark + "i"
	markedSequencer = mark + "s"
	hashedItem      = mark + "j"
	hashedSequencer = mark + "t"
)

// ItemPartition returns the partition key under which items of that partition are stored: the partition itself, unless
// it starts with a tilde.
func ItemPartition(partition string) string {
	if !strings.HasPrefix(partition, mark) {
		return partition
	}
	return marked(markedItem, hashedItem, partition)
}

// SequencerPartition returns the partition key under which a sequencer is stored.
func SequencerPartition(key store.Key) string {
	return marked(markedSequencer, hashedSequencer, key.Partition)
}

// marked puts prefix before the partition, or, where that would be too long for DynamoDB, another prefix before its
// hash, from which the partition cannot be read back.
func marked(prefix, hashed, partition string) string {
	if len(prefix)+len(partition) <= store.MaxPartition {
		return prefix + partition
	}
	sum := sha256.Sum256([]byte(partition))
	return hashed + hex.EncodeToString(sum[:])
}

// PartitionAt returns the partition whose items, or whose sequencers, are stored under a partition key; ok is false for one that has a
// hash.
func PartitionAt(key string) (partition string, sequencer, ok bool) {
	if !strings.HasPrefix(key, mark) {
		return key, false, true
	}
	if partition, ok = strings.CutPrefix(key, markedSequencer); ok {
		return partition, true, true
	}
	partition, ok = strings.CutPrefix(key, markedItem)
	return partition, false, ok
}

// Seconds returns an item's expiry as its time-to-live attribute: seconds since 1970, rounded up, because the item must
// not be removed before it expires.
func Seconds(expires time.Time) int64 {
	seconds := expires.Unix()
	if expires.Nanosecond() > 0 {
		seconds++
	}
	return seconds
}
