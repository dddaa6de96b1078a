package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/stream"
)

// judge compares the streams in the end with what each append returned.
func (s *streamRun) judge() {
	p := s.visitor("judge")
	defer func() { _ = p.Close() }()
	ctx, cancel := context.WithTimeout(s.ctx, time.Hour)
	defer cancel()
	found := map[string]stream.Appended{}
	for _, name := range streamNames {
		s.judgeStream(ctx, s.of(p), name, found)
	}
	for label, want := range s.told {
		if found[label] != want {
			s.report("dense sequences", "%s was acknowledged as %v, and is %v", label, want, found[label])
		}
	}
	for label := range s.locked {
		if there, ok := found[label]; ok {
			s.report("one producer", "%s was refused, and is there: %v", label, there)
		}
	}
	s.judgeJournal(ctx, p, found)
	s.watch.end()
}

// judgeStream consumes a stream to its end, as a new consumer and as the consumers of the run.
func (s *streamRun) judgeStream(ctx context.Context, streams *stream.Streams, name string, found map[string]stream.Appended) {
	all, err := s.drain(ctx, streams, name, producerID(9))
	if errors.Is(err, stream.ErrNoStream) {
		return
	}
	for _, old := range []int{7, 8} {
		if _, err := s.drain(ctx, streams, name, producerID(old)); err != nil {
			s.report("ruled offsets", "consumer %d cannot go on to the end of %s: %v", old, name, err)
		}
	}
	o, headErr := streams.Describe(ctx, name, "", 100)
	if err != nil || headErr != nil || o.Events != int64(len(all)) {
		s.report("dense sequences", "%s has %d events, of which %d can be read: %v, %v", name, o.Events, len(all), err, headErr)
	}
	last := map[string]int64{}
	for i, e := range all {
		last[e.Name]++
		if e.Place != int64(i+1) || e.Sequence != last[e.Name] || i > 0 && e.EventID <= all[i-1].EventID {
			s.report("dense sequences", "event %d of %s is %s %d at %d, EventId %d", i+1, name, e.Name, e.Sequence, e.Place, e.EventID)
		}
		label, producer := streamLabel(e.Body)
		if producerID(producer) != o.Producer {
			s.report("one producer", "%s of %s is by producer %d, not %v", label, name, producer, o.Producer)
		}
		if before, twice := found[label]; twice {
			s.report("dense sequences", "%s is there twice: %v and %s %d", label, before, e.Name, e.Sequence)
		}
		found[label] = stream.Appended{ID: e.ID, Name: e.Name, Sequence: e.Sequence, EventID: e.EventID}
	}
	s.happened["events"] += len(all)
}

// drain reads and acknowledges everything that a consumer has not acknowledged.
func (s *streamRun) drain(ctx context.Context, streams *stream.Streams, name string, consumer stream.UUID) (all []stream.Stored, err error) {
	for {
		events, err := streams.Read(ctx, stream.Reading{Stream: name, Consumer: consumer, Limit: 3})
		if err != nil || len(events) == 0 {
			return all, err
		}
		for _, e := range events {
			if _, err := streams.Acknowledge(ctx, name, consumer, e.ID); err != nil {
				return all, err
			}
		}
		all = append(all, events...)
	}
}

func streamLabel(body []byte) (label string, producer int) {
	var e struct {
		Payload struct {
			Label    string
			Producer int
		}
	}
	if err := json.Unmarshal([]byte("{"+string(body)+"}"), &e); err != nil {
		panic(err)
	}
	return e.Payload.Label, e.Payload.Producer
}

// judgeJournal demands that the journal names exactly the events that the streams hold.
func (s *streamRun) judgeJournal(ctx context.Context, p *process, found map[string]stream.Appended) {
	a, err := p.ReadAfter(ctx, journal.Request{})
	if err != nil {
		s.report("liveness", "the journal cannot be read: %v", err)
		return
	}
	ids := map[string]bool{}
	for i := range a.Events {
		var told struct{ ID string }
		if err := json.Unmarshal([]byte("{"+string(a.Events[i].Fields)+"}"), &told); err != nil {
			panic(err)
		}
		ids[told.ID] = true
	}
	if len(a.Events) != len(found) {
		s.report("dense sequences", "the journal tells of %d events, there are %d", len(a.Events), len(found))
	}
	for label, e := range found {
		if !ids[e.ID.String()] {
			s.report("dense sequences", "the journal does not tell of %s", label)
		}
	}
}

// watch is a store that checks every change of an offset.
type watch struct {
	store.Store
	report func(invariant, format string, args ...any)

	mu      sync.Mutex
	allowed map[int64]bool // to which a consumer has moved an offset
	offsets map[store.Key]offsetSeen
}

type offsetSeen struct {
	Offset int64 `json:"o"`
	token  string
}

// expect allows a move of any offset to that value.
func (w *watch) expect(to int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.allowed == nil {
		w.allowed = map[int64]bool{}
	}
	w.allowed[to] = true
}

// Write applies the write and checks the offsets in it.
func (w *watch) Write(ctx context.Context, write store.Write) error {
	if err := w.Store.Write(ctx, write); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, op := range write.Ops {
		if op.Kind != store.OpPut || !strings.HasPrefix(op.Item.Key.Partition, "offsets/") {
			continue
		}
		now := offsetSeen{token: write.Token}
		if err := json.Unmarshal(op.Item.Value, &now); err != nil {
			panic(err)
		}
		if w.offsets == nil {
			w.offsets = map[store.Key]offsetSeen{}
		}
		before := w.offsets[op.Item.Key]
		if before.token != now.token && now.Offset != before.Offset+1 && !w.allowed[now.Offset] {
			w.report("ruled offsets", "the offset %s went from %d to %d", op.Item.Key.Sort, before.Offset, now.Offset)
		}
		w.offsets[op.Item.Key] = now
	}
	return nil
}

// end demands that an offset was written.
func (w *watch) end() {
	if len(w.offsets) == 0 {
		w.report("liveness", "no offset ever moved")
	}
}
