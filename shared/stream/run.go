package stream

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// Event is an event to be appended.
type Event struct {
	Name    string // 1 to [MaxName] characters
	Version int64  // at least 1
	// Body holds the members of the event besides "event": system, trigger and payload, as JSON members without braces
	// around them, at most [MaxBody] bytes. It is immutable.
	Body []byte
}

// Stored is an event of a stream.
type Stored struct {
	Event
	ID       UUID
	Sequence int64    // of its name, dense from 1
	Place    int64    // in the stream over all names, dense from 1
	EventID  event.ID // of StreamAppended on the journal
}

// run is events of one name with following sequences, as many as are stored in one item. Its key has the last sequence,
// so that the first item from any sequence on holds that sequence.
type run struct {
	name   string
	first  int64
	events []Stored
}

// Reading one event reads its run, so that runs are short; but a write holds a bounded number of items, whatever its size.
// A run of several events has at most max(shortRun, bytes of the write / manyRuns) bytes. Where that makes too many runs, since events
// of several names or of about half a run's length fill them badly, they are longer, up to longRun: with it, [MaxNames] names fit
// with any events of 1 MiB.
const (
	shortRun = 8 << 10
	manyRuns = 30
	longRun  = store.MaxValue - 1<<10
)

const runFormat = 1

// runOverhead is at most how many bytes an event takes besides its body.
const runOverhead = 4 * binary.MaxVarintLen64

// encodeRun returns: format (one byte), first sequence, count, then per event place, EventId, version, body; numbers as
// unsigned varints, the body after its length.
func encodeRun(first int64, events []Stored) []byte {
	size := 1 + 2*binary.MaxVarintLen64
	for i := range events {
		size += runOverhead + len(events[i].Body)
	}
	b := append(make([]byte, 0, size), runFormat)
	b = binary.AppendUvarint(b, uint64(first))
	b = binary.AppendUvarint(b, uint64(len(events)))
	for i := range events {
		e := &events[i]
		b = binary.AppendUvarint(b, uint64(e.Place))
		b = binary.AppendUvarint(b, uint64(e.EventID))
		b = binary.AppendUvarint(b, uint64(e.Version))
		b = binary.AppendUvarint(b, uint64(len(e.Body)))
		b = append(b, e.Body...)
	}
	return b
}

// decodeRun reads the events of an item.
func decodeRun(n number, name string, item *store.Item) (run, error) {
	in := input{bytes: item.Value}
	damaged := fmt.Errorf("%w: events of a stream", journal.ErrDamaged)
	if in.number() != runFormat {
		return run{}, damaged
	}
	r := run{name: name, first: in.number()}
	count := in.number()
	if in.bad || count < 1 || count > int64(len(item.Value)) {
		return run{}, damaged
	}
	r.events = make([]Stored, count)
	for i := range r.events {
		e := &r.events[i]
		e.Name, e.Sequence = name, r.first+int64(i)
		e.Place, e.EventID, e.Version = in.number(), event.ID(in.number()), in.number()
		e.ID = eventID(n, e.Place)
		e.Body = in.slice(in.number())
	}
	if in.bad {
		return run{}, damaged
	}
	return r, nil
}

// input is a cursor over an item's bytes.
type input struct {
	bytes []byte
	bad   bool
}

func (in *input) number() int64 {
	n, size := binary.Uvarint(in.bytes)
	if size <= 0 {
		in.bad = true
		return 0
	}
	in.bytes = in.bytes[size:]
	return int64(n)
}

func (in *input) slice(n int64) []byte {
	if n < 0 || n > int64(len(in.bytes)) {
		in.bad = true
		return nil
	}
	cut := in.bytes[:n:n]
	in.bytes = in.bytes[n:]
	return cut
}
