package store

import (
	"fmt"
	"strings"
	"time"
)

// Passing is what the partitions of sequencers in the table [Work] begin with of which there may be any number, and which come
// and go. Where nobody has reserved of one for [PassingFor], a backend may forget it: it then begins anew. All others stay.
const (
	Passing    = "turn/"
	PassingFor = 30 * 24 * time.Hour
)

// IsPassing reports whether the sequencer of a key may be forgotten, see [Passing].
func (k Key) IsPassing() bool { return k.Table == Work && strings.HasPrefix(k.Partition, Passing) }

// ClockLead is how far ahead of a sequencer's last id, and of the store's date, a caller's clock may be.
const ClockLead = time.Hour

// Reserve answers the ticket that follows s: the next position, and ids from max(now, LastID+1) on. Rule (ticket): never
// the bare clock, which may stand still or step back. Ids beyond [MaxID] are refused with [ErrClock]. Whether now may be
// used at all is for [Sequence.Leads] to say.
func (s Sequence) Reserve(ids int, now int64) (Ticket, error) {
	if ids < 1 {
		return Ticket{}, fmt.Errorf("%w: %d ids, want at least 1", ErrInvalid, ids)
	}
	first := max(now, s.LastID+1)
	last := first + int64(ids) - 1
	if last > MaxID || last < first {
		return Ticket{}, fmt.Errorf("%w: id %d is beyond 2^53", ErrClock, last)
	}
	s.Position++
	s.LastID = last
	return Ticket{Sequence: s, FirstID: first, Sends: 1}, nil
}

// Leads reports whether now is so far ahead of the last id that it must be compared with the store's date.
func (s Sequence) Leads(now int64) bool { return now-s.LastID > ClockLead.Microseconds() }

// CheckClock compares a caller's clock, in microseconds since 1970, with the store's date. The error is [ErrClock].
func CheckClock(now int64, date time.Time) error {
	if lead := now - date.UnixMicro(); lead > ClockLead.Microseconds() {
		return fmt.Errorf("%w: the clock of this process is %v ahead of the store's date; set it right",
			ErrClock, (time.Duration(lead) * time.Microsecond).Round(time.Second))
	}
	return nil
}
