package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/stream"
)

// StreamReport is the result of a run of streams: violations, and how much happened.
type StreamReport struct {
	Violations []Violation
	Events     int // in all streams in the end
	Appended   int // appends that were acknowledged
	Locked     int // appends that were refused since another producer owns the stream
	Acks       int // acknowledgements that returned without error
	Moves      int // offsets that were moved
	Crashes    int // of processes
}

// RunStreams runs producers and consumers of streams, in processes that fail, with the plan of a seed, and checks:
//
//	one producer     every event of a stream is of one producer; what was refused as another's is absent
//	dense sequences  sequences are dense from 1 for each name, and places for each stream, both in the journal's order; under one
//	                 idempotency key there is one event, at the place that the receipt names
//	ruled offsets    offsets go from n to n+1, or to where they were moved; in the end every consumer can acknowledge everything
func RunStreams(t *testing.T, seed uint64) StreamReport {
	t.Helper()
	var report StreamReport
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(t *testing.T) {
		r := &run{plan: draw(seed), began: time.Now()}
		r.plan.keep = 1 << 20 // the journal is compared with the streams in the end
		r.ctx, r.cancel = context.WithCancel(t.Context())
		s := &streamRun{run: r, told: map[string]stream.Appended{}, locked: map[string]bool{}, access: map[*process]*stream.Streams{}}
		s.watch = &watch{Store: memory.New(memory.Options{}), report: r.report}
		r.audit = newAudit(s.watch, r.report)
		r.service = faulty.NewService(r.audit, r.plan.faults, r.step)
		s.play()
		report = s.report
		report.Violations = r.violations
	})
	return report
}

// streamRun is a run of streams.
type streamRun struct {
	*run
	watch *watch

	mu     sync.Mutex
	access map[*process]*stream.Streams
	told   map[string]stream.Appended // by label: as the receipt named it
	locked map[string]bool            // labels that were refused
	report StreamReport
}

var streamNames = []string{"s", "s/n"}

func producerID(n int) stream.UUID { return stream.UUID{6: 0x40, 8: 0x80, 15: byte(n)} }

func (s *streamRun) play() {
	for i := range s.plan.processes {
		s.homes = append(s.homes, s.home(fmt.Sprintf("p%d", i)))
	}
	s.produce("a0", 0, 1, "")
	s.produce("a1", 1, 1, "")
	s.produce("a2", 2, 1, "twin")
	s.produce("a3", 3, 1, "twin")
	s.produce("b0", 4, 2, "")
	stop := make(chan struct{})
	s.consume("c0", 0, 7, stop)
	s.consume("c1", 1, 7, stop)
	s.consume("c2", 2, 8, stop)
	s.writers.Wait()
	close(stop)
	s.followers.Wait()
	s.settle()
	s.judge()
	for _, h := range s.homes {
		s.report.Crashes += h.lives - 1
		h.close()
	}
	s.cancel()
	s.group.Wait()
}

// at returns the streams of the process that runs in a home, and the process.
func (s *streamRun) at(h *home[*process]) (*stream.Streams, *process) {
	p := h.now()
	return s.of(p), p
}

func (s *streamRun) of(p *process) *stream.Streams {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.access[p] == nil {
		s.access[p] = stream.Open(stream.Options{Store: p.line, Journal: p.Journal, Now: p.options.Now})
	}
	return s.access[p]
}

// produce starts a producer that appends each batch under an idempotency key, and repeats it until it is acknowledged or refused, at
// most 12 times. Producers with the same twin append the same batches under the same keys.
func (s *streamRun) produce(name string, at, id int, twin string) {
	home, luck := s.homes[at%len(s.homes)], dice(s.plan.seed, name)
	if twin != "" {
		name = twin
	}
	s.writers.Go(func() {
		for n := range s.plan.appends {
			time.Sleep(time.Duration(luck.Int64N(int64(s.plan.think))) + time.Nanosecond)
			mine := dice(s.plan.seed+uint64(n)<<32, name) // the same for producers with the same twin
			to := streamNames[mine.IntN(len(streamNames))]
			var labels []string
			for i := range 1 + mine.IntN(3) {
				labels = append(labels, fmt.Sprintf("%s-%d-%d", name, n, i))
			}
			s.append(home, luck, to, id, labels, mine)
		}
	})
}

func (s *streamRun) append(h *home[*process], luck *rand.Rand, to string, id int, labels []string, mine *rand.Rand) {
	a := stream.Append{
		Stream: to, Producer: producerID(id), Once: &journal.Idempotency{Scope: "simulation", Key: labels[0], Fingerprint: [32]byte{1}},
	}
	for _, label := range labels {
		body := fmt.Sprintf(`"payload":{"label":"%s","producer":%d}`, label, id)
		a.Events = append(a.Events, stream.Event{Name: fmt.Sprint("n", mine.IntN(3)), Version: 1, Body: []byte(body)})
	}
	for range 12 {
		streams, p := s.at(h)
		receipt, err := streams.Append(s.ctx, a)
		s.note("append %v to %s: %v, %v", labels, to, receipt, err)
		switch {
		case p.crashed():
		case err == nil:
			s.tell(labels, receipt)
			return
		case errors.Is(err, stream.ErrLocked):
			s.refuse(labels)
			return
		}
		time.Sleep(time.Duration(luck.Int64N(int64(100 * time.Millisecond))))
	}
}

func (s *streamRun) tell(labels []string, r stream.Receipt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Appended++
	for i, label := range labels {
		if before, again := s.told[label]; again && before != r.Events[i] {
			s.run.report("dense sequences", "%s was answered with %v and with %v", label, before, r.Events[i])
		}
		s.told[label] = r.Events[i]
	}
}

func (s *streamRun) refuse(labels []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Locked++
	for _, label := range labels {
		s.locked[label] = true
	}
}

// consume starts a consumer that reads and acknowledges, sometimes out of order, sometimes moving back, until stop is closed.
func (s *streamRun) consume(name string, at, id int, stop <-chan struct{}) {
	home, luck := s.homes[at%len(s.homes)], dice(s.plan.seed, name)
	s.followers.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(luck.Int64N(int64(60*time.Millisecond))) + time.Nanosecond):
			}
			streams, _ := s.at(home)
			s.once(streams, luck, producerID(id))
		}
	})
}

// once reads once, acknowledges most of what it read, and sometimes moves the offset back.
func (s *streamRun) once(streams *stream.Streams, luck *rand.Rand, consumer stream.UUID) {
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	r := stream.Reading{Stream: streamNames[luck.IntN(len(streamNames))], Consumer: consumer, Limit: 1 + luck.IntN(4)}
	if luck.IntN(2) == 0 {
		r.Name = fmt.Sprint("n", luck.IntN(3))
	}
	if luck.IntN(3) == 0 {
		r.Timeout = 200 * time.Millisecond
	}
	events, err := streams.Read(ctx, r)
	if err != nil {
		return
	}
	s.inOrder(events)
	for _, e := range events {
		if luck.IntN(8) == 0 {
			continue // so that the next acknowledgement is out of order
		}
		if _, err := streams.Acknowledge(ctx, r.Stream, consumer, e.ID); err == nil {
			s.count(&s.report.Acks)
		}
	}
	if len(events) > 0 && luck.IntN(10) == 0 {
		to := events[0].Sequence - 1
		s.watch.expect(to)
		if streams.Move(ctx, r.Stream, consumer, events[0].Name, to) == nil {
			s.count(&s.report.Moves)
		}
	}
}

func (s *streamRun) count(what *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*what++
}

// inOrder demands that what was read at once has no gap in any name.
func (s *streamRun) inOrder(events []stream.Stored) {
	last, place := map[string]int64{}, int64(0)
	for _, e := range events {
		if before := last[e.Name]; before > 0 && e.Sequence != before+1 || e.Place <= place {
			s.run.report("dense sequences", "read %s %d at %d after %d and %d", e.Name, e.Sequence, e.Place, before, place)
		}
		last[e.Name], place = e.Sequence, e.Place
	}
}

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
			s.run.report("dense sequences", "%s was acknowledged as %v, and is %v", label, want, found[label])
		}
	}
	for label := range s.locked {
		if there, ok := found[label]; ok {
			s.run.report("one producer", "%s was refused, and is there: %v", label, there)
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
			s.run.report("ruled offsets", "consumer %d cannot go on to the end of %s: %v", old, name, err)
		}
	}
	o, headErr := streams.Describe(ctx, name, "", 100)
	if err != nil || headErr != nil || o.Events != int64(len(all)) {
		s.run.report("dense sequences", "%s has %d events, of which %d can be read: %v, %v", name, o.Events, len(all), err, headErr)
	}
	last := map[string]int64{}
	for i, e := range all {
		last[e.Name]++
		if e.Place != int64(i+1) || e.Sequence != last[e.Name] || i > 0 && e.EventID <= all[i-1].EventID {
			s.run.report("dense sequences", "event %d of %s is %s %d at %d, EventId %d", i+1, name, e.Name, e.Sequence, e.Place, e.EventID)
		}
		label, producer := streamLabel(e.Body)
		if producerID(producer) != o.Producer {
			s.run.report("one producer", "%s of %s is by producer %d, not %v", label, name, producer, o.Producer)
		}
		if before, twice := found[label]; twice {
			s.run.report("dense sequences", "%s is there twice: %v and %s %d", label, before, e.Name, e.Sequence)
		}
		found[label] = stream.Appended{ID: e.ID, Name: e.Name, Sequence: e.Sequence, EventID: e.EventID}
	}
	s.report.Events += len(all)
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
		s.run.report("liveness", "the journal cannot be read: %v", err)
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
		s.run.report("dense sequences", "the journal tells of %d events, there are %d", len(a.Events), len(found))
	}
	for label, e := range found {
		if !ids[e.ID.String()] {
			s.run.report("dense sequences", "the journal does not tell of %s", label)
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
