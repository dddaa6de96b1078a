package stream

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// lane is what this process remembers of a stream that it appends to. It may be outdated; each write's conditions check it. It
// belongs to the stream's write, of which there is one at a time.
type lane struct {
	streams *Streams
	stream  string
	fresh   bool // the fields below were true when they were read or written
	exist   bool // the stream exists
	head    head
	at      int64 // version of the head
	names   map[string]state
}

// state is the last sequence of an event name and its item's version; version 0 means that the name is new.
type state struct{ last, version int64 }

// lane returns what is remembered of a stream.
func (s *Streams) lane(stream string) *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[stream]
	if l == nil {
		if len(s.lanes) >= maxRemembered {
			clear(s.lanes)
		}
		l = &lane{streams: s, stream: stream}
		s.lanes[stream] = l
	}
	return l
}

// writing is one write of appends to a stream.
type writing struct {
	lane  *lane
	batch []*addition // those that have no result yet
	ops   []store.Op  // of the last attempt
	rows  []row
	next  head
	run   int              // bytes of a run of several events, at most
	names map[string]state // the names' new last sequences, and their versions before the write
}

// row is one event of the write.
type row struct {
	*Event
	sequence, place int64
}

// prepare reads the items that the write depends on and returns the change, and the appends that it is of.
func (w *writing) prepare(ctx context.Context, batch []*addition, lost *store.Conflict) ([]*addition, journal.Change, error) {
	w.batch = batch
	if lost != nil {
		w.learn(ctx, lost)
	}
	if len(w.batch) > 0 {
		if err := w.lane.look(ctx, w.batch); err != nil {
			return w.batch, journal.Change{}, err
		}
		w.refuse()
	}
	if len(w.batch) == 0 {
		return nil, journal.Change{}, nil
	}
	w.arrange()
	return w.batch, journal.Change{Events: w.events(), Ops: w.changes}, w.fits()
}

// learn handles the conflict of an attempt: an idempotency key was used before, or another process has appended.
func (w *writing) learn(ctx context.Context, lost *store.Conflict) {
	for _, failed := range lost.Failed {
		if failed.Op >= len(w.ops) || !w.replay(ctx, w.ops[failed.Op].Item.Key, failed.Found) {
			w.lane.fresh = false
		}
	}
}

// replay ends the append whose idempotency key was found used; it reports whether key is one of the batch.
func (w *writing) replay(ctx context.Context, key store.Key, found *store.Item) bool {
	i := slices.IndexFunc(w.batch, func(a *addition) bool { return a.note != nil && a.note.Key() == key })
	if i < 0 {
		return false
	}
	if r, done, err := w.batch[i].earlier(ctx, w.lane.streams, found); done {
		w.batch[i].receipt, w.batch[i].err = r, err
		w.batch = slices.Delete(slices.Clone(w.batch), i, i+1)
	}
	return true
}

// refuse ends the batch with ErrLocked if the stream is another producer's. All of a batch are of one producer.
func (w *writing) refuse() {
	if !w.lane.exist || w.lane.head.Producer == w.batch[0].Producer {
		return
	}
	for _, a := range w.batch {
		a.err = ErrLocked
	}
	w.batch = nil
}

// look reads what the lane does not remember: the head, and the names of a batch.
func (l *lane) look(ctx context.Context, batch []*addition) error {
	if !l.fresh || !l.exist {
		if err := l.lookAtHead(ctx); err != nil || !l.exist {
			return err
		}
	}
	var unknown []string
	for _, a := range batch {
		for i := range a.Events {
			name := a.Events[i].Name
			if _, known := l.names[name]; !known && !slices.Contains(unknown, name) {
				unknown = append(unknown, name)
			}
		}
	}
	return l.lookAtNames(ctx, unknown)
}

func (l *lane) lookAtHead(ctx context.Context) error {
	items, err := l.streams.store.Get(ctx, headKey(l.stream))
	if err != nil {
		return unavailable("read a stream", err)
	}
	l.fresh, l.exist, l.head, l.at, l.names = true, items[0] != nil, head{}, 0, map[string]state{}
	if !l.exist {
		return nil
	}
	l.at = items[0].Version
	return decode(items[0], &l.head)
}

func (l *lane) lookAtNames(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if len(l.names) > maxRemembered {
		clear(l.names)
	}
	keys := make([]store.Key, len(names))
	for i, name := range names {
		keys[i] = work(namesPartition(l.head.Number), name)
	}
	items, err := l.streams.store.Get(ctx, keys...)
	if err != nil {
		return unavailable("read event names", err)
	}
	for i, item := range items {
		var known named
		if item == nil {
			l.names[names[i]] = state{}
			continue
		}
		if err := decode(item, &known); err != nil {
			return err
		}
		l.names[names[i]] = state{known.Last, item.Version}
	}
	return nil
}

// arrange gives each event its place and its sequence.
func (w *writing) arrange() {
	w.next, w.rows, w.names = w.lane.head, nil, map[string]state{}
	if !w.lane.exist {
		w.next = head{Number: draw(), Producer: w.batch[0].Producer}
	}
	for _, a := range w.batch {
		for i := range a.Events {
			e := &a.Events[i]
			s, seen := w.names[e.Name]
			if !seen {
				s = w.lane.names[e.Name]
			}
			s.last++
			w.names[e.Name] = s
			w.next.Last++
			w.rows = append(w.rows, row{e, s.last, w.next.Last})
		}
	}
}

// draw returns a random number for a new stream. The write makes it unique: its condition is that the number's first places are
// free.
func draw() number {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return number(binary.BigEndian.Uint64(b[:]) >> (64 - numberBits))
}

// The bounds of one write, less what the journal adds to it.
const (
	mostOps   = store.MaxOps - 9
	mostBytes = 2600 << 10
)

// fits chooses how long the runs are: short, or as long as it takes for the operations to be few enough. It returns an error for a
// write beyond the bounds; only a single append can be so large, and none that is a request of the API.
func (w *writing) fits() error {
	if w.bytes() > mostBytes {
		return journal.ErrTooLarge
	}
	w.run = max(shortRun, w.bytes()/manyRuns)
	for len(w.changes(journal.Receipt{})) > mostOps {
		if w.run == longRun {
			return journal.ErrTooLarge
		}
		w.run = min(2*w.run, longRun)
	}
	return nil
}

func (w *writing) bytes() (sum int) {
	for _, a := range w.batch {
		sum += a.size()
	}
	return sum
}

// events returns the write's events on the journal.
func (w *writing) events() []event.Event {
	all := make([]event.Event, len(w.rows))
	for i, r := range w.rows {
		all[i] = typed.StreamAppended{
			Name: r.Name, Sequence: r.sequence, ID: eventID(w.next.Number, r.place).String(), Producer: w.next.Producer.String(),
		}.Event(w.lane.stream)
	}
	first := 0
	for _, a := range w.batch {
		for i := range a.Events {
			all[first+i].By = a.actor
		}
		first += len(a.Events)
	}
	return all
}

// changes returns the write's operations besides the slot.
func (w *writing) changes(r journal.Receipt) []store.Op {
	n := w.next.Number
	headCond := store.Absent
	w.ops = w.ops[:0]
	if w.lane.exist {
		headCond = store.VersionIs(w.lane.at)
	} else {
		w.put(work(partitionStreams, w.lane.stream), []byte("{}"), store.Absent)
	}
	w.put(headKey(w.lane.stream), encode(w.next), headCond)
	for _, name := range w.mentioned() {
		s := w.names[name]
		cond := store.Absent
		if s.version > 0 {
			cond = store.VersionIs(s.version)
		}
		w.put(work(namesPartition(n), name), encode(named{s.last}), cond)
		w.runs(r, name)
	}
	order := places{Stream: w.lane.stream, First: w.rows[0].place}
	for _, row := range w.rows {
		order.add(row.Name, row.sequence)
	}
	w.put(work(orderPartition(n), ordinal(w.next.Last)), encode(order), store.Absent)
	first := 0
	for _, a := range w.batch {
		if a.note != nil {
			w.ops = append(w.ops, a.onceOp(w.lane.streams, n, w.rows[first].place, r.FirstID+event.ID(first)))
		}
		first += len(a.Events)
	}
	return slices.Clone(w.ops)
}

// mentioned returns the names of the write in the order of their first events.
func (w *writing) mentioned() []string {
	seen := make(map[string]struct{}, len(w.names))
	names := make([]string, 0, len(w.names))
	for _, row := range w.rows {
		if _, again := seen[row.Name]; !again {
			seen[row.Name] = struct{}{}
			names = append(names, row.Name)
		}
	}
	return names
}

// runs puts the events of a name.
func (w *writing) runs(r journal.Receipt, name string) {
	var events []Stored
	size := 0
	flush := func() {
		if len(events) == 0 {
			return
		}
		last := events[len(events)-1].Sequence
		w.put(work(runPartition(w.next.Number, name), ordinal(last)), encodeRun(events[0].Sequence, events), store.Absent)
		events, size = nil, 0
	}
	for i, row := range w.rows {
		if row.Name != name {
			continue
		}
		if size += runOverhead + len(row.Body); size > w.run {
			flush()
			size = runOverhead + len(row.Body)
		}
		events = append(events, Stored{Event: *row.Event, Sequence: row.sequence, Place: row.place, EventID: r.FirstID + event.ID(i)})
	}
	flush()
}

func (w *writing) put(key store.Key, value []byte, cond store.Condition) {
	w.ops = append(w.ops, store.Put(store.Item{Key: key, Value: value}, cond))
}

// ended stores the results of the appends that were left, and what the write has made of the stream.
func (w *writing) ended(batch []*addition, receipt journal.Receipt, err error) {
	l := w.lane
	if err != nil {
		l.fresh = false
		for _, a := range batch {
			a.err = err
		}
		return
	}
	l.exist, l.head, l.at = true, w.next, receipt.Position
	for name, s := range w.names {
		l.names[name] = state{s.last, receipt.Position}
	}
	first := 0
	for _, a := range batch {
		for i := range a.Events {
			row := w.rows[first+i]
			a.receipt.Events = append(a.receipt.Events, Appended{
				eventID(w.next.Number, row.place), row.Name, row.sequence, receipt.FirstID + event.ID(first+i),
			})
		}
		first += len(a.Events)
	}
}
