package stream

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
)

// UUID names a producer, a consumer or an event (RFC 9562).
//
// The UUID of an event is of version 8: 60 bits of its stream's number, which is drawn at random when the stream begins,
// and 62 bits of its place in the stream. So an event is found by its UUID without an index.
type UUID [16]byte

// ErrUUID is returned by ParseUUID.
var ErrUUID = errors.New("want a UUID such as 2480b859-e08a-4414-9c7d-003bc1a4c238")

// ParseUUID reads the form of RFC 9562, section 4, in either case. The error is [ErrUUID].
func ParseUUID(text string) (UUID, error) {
	var u UUID
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return u, ErrUUID
	}
	digits := text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	if _, err := hex.Decode(u[:], []byte(digits)); err != nil {
		return UUID{}, ErrUUID
	}
	return u, nil
}

// String returns the UUID in lower case.
func (u UUID) String() string {
	text := make([]byte, 0, 36)
	for i, b := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, []byte{b})
	}
	return string(text)
}

// MarshalText returns [UUID.String].
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads the form that [ParseUUID] reads.
func (u *UUID) UnmarshalText(text []byte) (err error) {
	*u, err = ParseUUID(string(text))
	return err
}

// number is a stream's number, of 60 bits. Keys hold it in place of the stream's name.
type number uint64

const (
	numberBits = 60
	version8   = 0x8000
	variant    = 1 << 63 // the two highest bits are 10
)

// eventID returns the UUID of the event at a place of a stream.
func eventID(n number, place int64) UUID {
	var u UUID
	high := uint64(n)>>12<<16 | version8 | uint64(n)&0xFFF
	binary.BigEndian.PutUint64(u[:8], high)
	binary.BigEndian.PutUint64(u[8:], variant|uint64(place))
	return u
}

// split returns the stream's number and the place of the event with that UUID; ok is false if no event can have it.
func (u UUID) split() (n number, place int64, ok bool) {
	high, low := binary.BigEndian.Uint64(u[:8]), binary.BigEndian.Uint64(u[8:])
	n, place = number(high>>16<<12|high&0xFFF), int64(low&^(3<<62))
	return n, place, high&0xF000 == version8 && low>>62 == 2 && place > 0 && place <= maxPlace
}
