package store

import (
	"fmt"
	"strings"
	"time"
)

// Passing is the prefix of a partition, in the table [Work], whose sequencer is temporary. After [PassingFor] (30 days) without
// a Reserve a backend may forget it: it then begins at 0 again. All other sequencers stay.
const (
	Passing    = "turn/"
	PassingFor = 30 * 24 * time.Hour
)

// IsPassing reports whether the sequencer of a key may be forgotten, see [Passing].
func (k Key) IsPassing() bool { return k.Table == Work && strings.HasPrefix(k.Partition, Passing) }

// ClockLead is how far ahead of a sequencer's last id, and of the store's date, a caller's clock may be.
const ClockLead = time.Hour

// Reserve returns the ticket that follows s: the next position, and ids (at least 1) from max(now, LastID+1) on; now is in
// microseconds since 1970. Rule (ticket): never the bare clock, which may stand still or step back. Ids beyond [MaxID] are
// refused with [ErrClock]. The caller checks now by [Sequence.Leads] first.
func (s Sequence) Reserve(ids int, now int64) (Ticket, error) {
	first := max(now, s.LastID+1)
	last := first + int64(ids) - 1
	if last > MaxID || last < first {
		return Ticket{}, fmt.Errorf("%w: id %d is beyond 2^53", ErrClock, last)
	}
	s.Position++
	s.LastID = last
	return Ticket{Sequence: s, FirstID: first, Sends: 1}, nil
}

// Leads reports whether now, in microseconds since 1970, is more than [ClockLead] ahead of the last id, so that it must be
// compared with the store's date.
func (s Sequence) Leads(now int64) bool { return now-s.LastID > ClockLead.Microseconds() }

// CheckClock returns [ErrClock] if a caller's clock, in microseconds since 1970, is more than [ClockLead] ahead of the store's date.
func CheckClock(now int64, date time.Time) error {
	if lead := now - date.UnixMicro(); lead > ClockLead.Microseconds() {
		return fmt.Errorf("%w: the clock of this process is %v ahead of the store's date; set it right",
			ErrClock, (time.Duration(lead) * time.Microsecond).Round(time.Second))
	}
	return nil
}
