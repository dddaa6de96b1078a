package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// A key is one byte for the kind of data or the table, the partition, a terminator, and the sort key:
//
//	kind  partition with 00 as 00 FF  00 01  sort
//
// The terminator sorts before every continuation of a partition, so that partitions never interleave and the items of
// one lie in the order of their sort keys. A sequencer's key is kindSequencer followed by a key like an item's.
//
// A value is version and expiry (seconds since 1970, 0 for never) as varints, the token's length and the token, and
// the item's value.
const (
	kindSequencer   = 0x02
	kindJournal     = 0x10
	kindWork        = 0x11
	kindDefinitions = 0x12
)

var errLayout = errors.New("pebble: an entry cannot be read")

func kindOf(t store.Table) byte {
	switch t {
	case store.Journal:
		return kindJournal
	case store.Work:
		return kindWork
	default:
		return kindDefinitions
	}
}

func appendKey(buf []byte, kind byte, k store.Key) []byte {
	return append(appendPartition(buf, kind, k.Partition), k.Sort...)
}

// appendPartition appends the prefix of the keys of a partition's items.
func appendPartition(buf []byte, kind byte, partition string) []byte {
	buf = append(buf, kind)
	for i := range len(partition) {
		buf = append(buf, partition[i])
		if partition[i] == 0 {
			buf = append(buf, 0xFF)
		}
	}
	return append(buf, 0, 1)
}

// bounds returns the range of keys that r selects: from lower up to but not including upper.
func bounds(r store.Range) (lower, upper []byte) {
	prefix := appendPartition(nil, kindOf(r.Table), r.Partition)
	lower = append(bytes.Clone(prefix), r.From...)
	if r.To != "" {
		return lower, append(prefix, r.To...)
	}
	prefix[len(prefix)-1]++ // 00 01 becomes 00 02, which no key of the partition reaches
	return lower, prefix
}

func appendItem(buf []byte, i *store.Item) []byte {
	buf = binary.AppendVarint(buf, i.Version)
	buf = binary.AppendVarint(buf, secondsOf(i.Expires))
	buf = binary.AppendUvarint(buf, uint64(len(i.Token)))
	buf = append(buf, i.Token...)
	return append(buf, i.Value...)
}

// entry is a parsed value; its fields point into the buffer.
type entry struct {
	version, expires int64
	token, value     []byte
}

func parseEntry(buf []byte) (entry, error) {
	var e entry
	var n int
	if e.version, n = binary.Varint(buf); n <= 0 {
		return e, errLayout
	}
	buf = buf[n:]
	if e.expires, n = binary.Varint(buf); n <= 0 {
		return e, errLayout
	}
	buf = buf[n:]
	length, n := binary.Uvarint(buf)
	if n <= 0 || length > uint64(len(buf)-n) {
		return e, errLayout
	}
	end := n + int(length)
	e.token, e.value = buf[n:end], buf[end:]
	return e, nil
}

func (e *entry) expiry() time.Time { return atSecond(e.expires) }

func atSecond(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// toSecond returns t as it is read back.
func toSecond(t time.Time) time.Time { return atSecond(secondsOf(t)) }

func secondsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// item copies the entry, so that it outlives the buffer it was read from.
func (e *entry) item(k store.Key) *store.Item {
	return &store.Item{
		Key: k, Version: e.version, Token: string(e.token), Value: append([]byte{}, e.value...), Expires: e.expiry(),
	}
}

// appendSequence appends a sequencer's value: its numbers as varints. used, the time of its last use in seconds since 1970, is
// left out where it is 0.
func appendSequence(buf []byte, s store.Sequence, used int64) []byte {
	for _, n := range [...]int64{s.Position, s.LastID, s.FloorPosition, s.FloorID} {
		buf = binary.AppendVarint(buf, n)
	}
	if used == 0 {
		return buf
	}
	return binary.AppendVarint(buf, used)
}

func parseSequence(buf []byte) (s store.Sequence, used int64, err error) {
	for _, target := range [...]*int64{&s.Position, &s.LastID, &s.FloorPosition, &s.FloorID, &used} {
		if target == &used && len(buf) == 0 {
			break
		}
		value, n := binary.Varint(buf)
		if n <= 0 {
			return s, used, errLayout
		}
		*target, buf = value, buf[n:]
	}
	return s, used, nil
}
