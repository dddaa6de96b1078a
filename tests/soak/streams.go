package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/millrace/millrace/client"
)

// streamNames are the streams; each has one producer.
var streamNames = []string{"soak", "soak / with a slash", "soak, a third"}

// factNames are the names of events; "" is the consumer of all names.
var factNames = []string{"Was made", "Was sent"}

// uuidText returns one of the UUIDs of this command's producers and consumers.
func uuidText(kind, n int) string { return fmt.Sprintf("2480b859-e08a-4414-9c7d-%04d%08d", kind, n) }

// fact is the nth event of a producer.
func fact(name string, n int) client.StreamEvent {
	return client.StreamEvent{
		Event:   client.StreamFact{Name: name},
		System:  client.StreamSystem{ID: uuidText(0, 0), Name: "soak", Time: "2026-03-10T22:13:32Z", Timezone: "Europe/Berlin"},
		Trigger: client.StreamTrigger{Type: "automatic", Name: "/soak"},
		Payload: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)),
	}
}

// flow is one stream: what its producer was told, and what its consumers saw.
type flow struct {
	name     string
	producer string

	mu     sync.Mutex
	number int
	has    map[string][]string // ids by event name, by their sequence
	eyes   []*eye
}

// eye is a consumer, and what it has seen.
type eye struct {
	client.Consumer
	next  map[string]int64 // the sequence that must come, by event name
	again int              // events that came once more, since their acknowledgement was lost
}

// flows begin the streams.
func flows(c *client.Client) []*flow {
	var all []*flow
	for i, name := range streamNames {
		f := &flow{name: name, producer: uuidText(1, i), has: map[string][]string{}}
		for j, of := range append([]string{""}, factNames...) {
			consumer := client.Consumer{Client: c, ID: uuidText(2, j), Stream: name, Name: of, Limit: 50}
			f.eyes = append(f.eyes, &eye{Consumer: consumer, next: map[string]int64{}})
		}
		all = append(all, f)
	}
	return all
}

// produce appends a few events. One at a time, so that the order is known.
func (f *flow) produce(ctx context.Context, k *clients) {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := make([]client.StreamEvent, 1+rand.N(3))
	for i := range events {
		f.number++
		events[i] = fact(pick(factNames...), f.number)
	}
	all, err := k.c.AppendToStream(ctx, f.producer, f.name, fmt.Sprintf("%s-%d", f.producer, f.number), events...)
	if k.failed(err, "append to a stream") {
		return
	}
	for i, a := range all {
		name := events[i].Event.Name
		f.has[name] = append(f.has[name], a.ID)
		if a.Sequence != int64(len(f.has[name])) || a.Name != name {
			k.ledger.wrong("stream %q: an event of %q was given the sequence %d, want %d", f.name, name, a.Sequence, len(f.has[name]))
		}
	}
}

// begin creates the stream, for consumers.
func (f *flow) begin(ctx context.Context, k *clients) { f.produce(ctx, k) }

// consume has the consumers read and acknowledge until ctx ends.
func (f *flow) consume(ctx context.Context, k *clients, group *sync.WaitGroup) {
	for _, e := range f.eyes {
		group.Go(func() {
			err := e.Run(ctx, func(_ context.Context, got *client.StreamEvent) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.saw(k, e, got)
				return nil
			})
			if ctx.Err() == nil {
				k.ledger.wrong("the consumer of %q of stream %q ended: %v", e.Name, f.name, err)
			}
		})
	}
}

// saw notes an event that a consumer got. An append may be consumed before its producer is told of it, so that ids are compared
// at the end.
func (f *flow) saw(k *clients, e *eye, got *client.StreamEvent) {
	name, next := got.Event.Name, e.next[got.Event.Name]+1
	switch got.Sequence {
	case next:
		e.next[name] = next
	case next - 1:
		e.again++
	default:
		k.ledger.wrong("stream %q: a consumer of %q got sequence %d of %q, want %d", f.name, e.Name, got.Sequence, name, next)
	}
}

// left returns how many events consumers have still to get.
func (f *flow) left() (n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.eyes {
		for _, name := range f.names(e) {
			n += int64(len(f.has[name])) - e.next[name]
		}
	}
	return n
}

func (f *flow) names(e *eye) []string {
	if e.Name != "" {
		return []string{e.Name}
	}
	return factNames
}

// reckon compares the stream as it is with what its producer was told, and the consumers' offsets with what they did.
func (f *flow) reckon(ctx context.Context, k *clients) {
	const page = 1000
	reader := uuidText(3, 0)
	for _, name := range factNames {
		want := f.has[name]
		for from := int64(0); ; from += page {
			if err := k.c.MoveOffset(ctx, reader, f.name, name, from); err != nil {
				k.ledger.wrong("stream %q: %v", f.name, err)
				return
			}
			events, err := k.c.ReadStream(ctx, client.StreamQuery{Stream: f.name, Consumer: reader, Name: name, Limit: page})
			if err != nil {
				k.ledger.wrong("stream %q: %v", f.name, err)
				return
			}
			for i, e := range events {
				at := from + int64(i)
				if e.Sequence != at+1 || at >= int64(len(want)) || e.Event.ID != want[at] {
					k.ledger.wrong("stream %q: event %d of %q is not the one that was acknowledged", f.name, at+1, name)
				}
			}
			if from+int64(len(events)) >= int64(len(want)) || len(events) == 0 {
				if got := from + int64(len(events)); got != int64(len(want)) {
					k.ledger.wrong("stream %q has %d events of %q, want %d", f.name, got, name, len(want))
				}
				break
			}
		}
	}
	f.reckonOffsets(ctx, k, reader)
}

func (f *flow) reckonOffsets(ctx context.Context, k *clients, reader string) {
	for consumer, err := range k.c.StreamConsumers(ctx, f.name) {
		if err != nil {
			k.ledger.wrong("consumers of %q: %v", f.name, err)
			return
		}
		if consumer.Consumer != reader && (consumer.Behind != 0 || consumer.Offset != int64(len(f.has[consumer.EventName]))) {
			k.ledger.wrong("stream %q: %+v, want the offset %d", f.name, consumer, len(f.has[consumer.EventName]))
		}
	}
}

// settle waits until the consumers have everything, but no longer than patience.
func settle(ctx context.Context, patience time.Duration, done func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !done() {
		if !wait(ctx, 50*time.Millisecond) {
			return false
		}
	}
	return true
}
