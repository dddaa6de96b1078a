package task

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"strconv"
)

// ID names a task everywhere. It ends in a UUID of version 7 (RFC 9562) in lower case, which alone determines the task's
// place in the store; a dialect may put a prefix before it, as EventNative's task scheduler does with SOURCE_COLLECTION_.
//
// Of the UUID's free bits, 10 hold the microseconds of the creation time within its millisecond, one says how its group's tasks are
// stored ([ID.Spread]), 30 hold the hash of the task's group, and 32 are random. So a group's tasks can be listed in the order of creation without an index.
type ID string

const uuidLen = 36

// spread is the bit of an id that is stored apart from those of its group, among the microseconds.
const spread = 1 << 11

// ErrID is returned for a text that does not end in an id of this package.
var ErrID = errors.New("task: not a task id")

// NewID returns an id for a task of that group, created at that time in microseconds since 1970. The random bits
// distinguish ids that several processes create in one microsecond.
func NewID(prefix, group string, created int64, random uint32) ID {
	return newID(prefix, GroupHash(group), created, random)
}

func newID(prefix string, hash uint32, created int64, random uint32) ID {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(created/1000)<<16|7<<12|uint64(created%1000))
	binary.BigEndian.PutUint64(b[8:], 2<<62|uint64(hash)<<32|uint64(random))
	text := make([]byte, len(prefix), len(prefix)+uuidLen)
	copy(text, prefix)
	return ID(appendUUID(text, b))
}

func appendUUID(text []byte, b [16]byte) []byte {
	for i, part := range [...][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return text
}

// ParseID returns text as an ID if it ends in a UUID of version 7; otherwise the error is [ErrID].
func ParseID(text string) (ID, error) {
	if len(text) < uuidLen {
		return "", ErrID
	}
	uuid := text[len(text)-uuidLen:]
	for i := range len(uuid) {
		c := uuid[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return "", ErrID
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return "", ErrID
			}
		}
	}
	if uuid[14] != '7' || uuid[19] < '8' || uuid[19] > 'b' {
		return "", ErrID
	}
	return ID(text), nil
}

// SpreadID returns a task's id with the mark that [ID.Spread] reports. Within its millisecond it sorts behind those without it.
func SpreadID(id ID) ID {
	at := len(id) - uuidLen + 15
	first, _ := strconv.ParseUint(string(id[at:at+1]), 16, 8) // an ID is well formed
	return id[:at] + ID(strconv.FormatUint(first|spread>>8, 16)) + id[at+1:]
}

// Spread reports whether the task is stored in one of the partitions over which tasks of its group are spread, and not in that of
// the group.
func (id ID) Spread() bool { return id[len(id)-uuidLen+15] >= '8' }

// UUID returns the id without its prefix; of a text that is too short for an id, the whole. UUIDs of a group's tasks sort by creation.
func (id ID) UUID() string { return string(id[max(len(id)-uuidLen, 0):]) }

// Time returns the creation time in the id, in microseconds since 1970; of a schedule's tick, the tick's time.
func (id ID) Time() int64 {
	var b [8]byte
	uuid := id.UUID()
	_, _ = hex.Decode(b[:], []byte(uuid[:8]+uuid[9:13]+uuid[14:18])) // an ID is well formed
	n := binary.BigEndian.Uint64(b[:])
	return int64(n>>16)*1000 + int64(n&(spread-1))
}

// Group returns the hash of the task's group, as [GroupHash] computes it.
func (id ID) Group() uint32 {
	var b [8]byte
	uuid := id.UUID()
	_, _ = hex.Decode(b[:], []byte(uuid[19:23]+uuid[24:28])) // an ID is well formed
	return binary.BigEndian.Uint32(b[:]) &^ (3 << 30)
}

// GroupHash returns 30 bits of a hash (FNV-1a) of a group's name.
func GroupHash(group string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(group)) // never fails
	sum := h.Sum32()
	return (sum ^ sum>>30) & (1<<30 - 1)
}

// FirstUUID returns the least UUID of ids created at that time, in microseconds since 1970, or later: the lower bound of a
// listing.
func FirstUUID(created int64) string { return newID("", 0, max(created, 0), 0).UUID() }
