package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/stream"
)

// RunStreams runs producers and consumers of streams, in processes that fail, with the plan of a seed, and checks:
//
//	one producer     every event of a stream is of one producer; what was refused as another's is absent
//	dense sequences  sequences are dense from 1 for each name, and places for each stream, both in the journal's order; under one
//	                 idempotency key there is one event, at the place that the receipt names
//	ruled offsets    offsets go from n to n+1, or to where they were moved; in the end every consumer can acknowledge everything
func RunStreams(t *testing.T, seed uint64, trace func(string)) Report {
	t.Helper()
	return simulate(t, seed, trace, func(d *deployment) {
		s := &streamRun{told: map[string]stream.Appended{}, locked: map[string]bool{}, access: map[*process]*stream.Streams{}}
		s.watch = &watch{Store: memory.New(memory.Options{}), report: d.report}
		s.run = newRun(d, seed, s.watch)
		s.plan.keep = 1 << 20 // the journal is compared with the streams in the end
		s.play()
	})
}

// streamRun is a run of streams.
type streamRun struct {
	*run
	watch *watch

	mu     sync.Mutex
	access map[*process]*stream.Streams
	told   map[string]stream.Appended // by label: as the receipt named it
	locked map[string]bool            // labels that were refused
}

var streamNames = []string{"s", "s/n"}

func producerID(n int) stream.UUID { return stream.UUID{6: 0x40, 8: 0x80, 15: byte(n)} }

func (s *streamRun) play() {
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
	s.homes.settle()
	time.Sleep(settling)
	s.judge()
	s.cancel()
	s.homes.close()
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
	home, luck := s.homes.at(at), dice(s.plan.seed, name)
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
	s.count("appended")
	for i, label := range labels {
		if before, again := s.told[label]; again && before != r.Events[i] {
			s.report("dense sequences", "%s was answered with %v and with %v", label, before, r.Events[i])
		}
		s.told[label] = r.Events[i]
	}
}

func (s *streamRun) refuse(labels []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count("locked")
	for _, label := range labels {
		s.locked[label] = true
	}
}

// consume starts a consumer that reads and acknowledges, sometimes out of order, sometimes moving back, until stop is closed.
func (s *streamRun) consume(name string, at, id int, stop <-chan struct{}) {
	home, luck := s.homes.at(at), dice(s.plan.seed, name)
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
			s.count("acknowledged")
		}
	}
	if len(events) > 0 && luck.IntN(10) == 0 {
		to := events[0].Sequence - 1
		s.watch.expect(to)
		if streams.Move(ctx, r.Stream, consumer, events[0].Name, to) == nil {
			s.count("moved")
		}
	}
}

// inOrder demands that what was read at once has no gap in any name.
func (s *streamRun) inOrder(events []stream.Stored) {
	last, place := map[string]int64{}, int64(0)
	for _, e := range events {
		if before := last[e.Name]; before > 0 && e.Sequence != before+1 || e.Place <= place {
			s.report("dense sequences", "read %s %d at %d after %d and %d", e.Name, e.Sequence, e.Place, before, place)
		}
		last[e.Name], place = e.Sequence, e.Place
	}
}
