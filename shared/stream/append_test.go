package stream_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/stream"
)

func TestTwentyProducersRaceForAStream(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		var wg sync.WaitGroup
		errs := make([]error, 20)
		for i := range errs {
			s, _ := b.process()
			wg.Go(func() {
				_, errs[i] = s.Append(t.Context(), stream.Append{
					Stream: "s", Producer: uuid(i), Events: []stream.Event{named("n", i)},
				})
			})
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case !errors.Is(err, stream.ErrLocked):
				t.Errorf("producer %d: %v, want ErrLocked", i, err)
			}
		}
		o, err := b.Describe(t.Context(), "s", "", 10)
		want := stream.Overview{Stream: "s", Producer: uuid(winner), Events: 1, Names: []stream.NameCount{{Name: "n", Sequence: 1}}}
		if diff := cmp.Diff(want, o); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if got := len(b.appended()); got != 1 {
			t.Errorf("the journal has %d events, want 1", got)
		}
	})
}

// appended returns the journal's events of streams.
func (b *bench) appended() []event.Event {
	b.t.Helper()
	a, err := b.journal.ReadAfter(b.t.Context(), journal.Request{})
	if err != nil {
		b.t.Fatal(err)
	}
	return a.Events
}

func TestAForeignAppendTakesNoSequence(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		b.append("s", "n")
		_, err := b.Append(t.Context(), stream.Append{Stream: "s", Producer: uuid(2), Events: []stream.Event{named("n", 0)}})
		if !errors.Is(err, stream.ErrLocked) {
			t.Fatalf("Append = %v, want ErrLocked", err)
		}
		if got := b.append("s", "n")[0].Sequence; got != 2 {
			t.Errorf("the owner's next sequence is %d, want 2", got)
		}
	})
}

// The sequences are dense, and in the order of the journal, under concurrent appends of several processes.
func TestConcurrentAppends(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		const n = 500
		var wg sync.WaitGroup
		got := make([]stream.Appended, n)
		for p := range 4 {
			s, _ := b.process()
			for i := p; i < n; i += 4 {
				wg.Go(func() {
					r, err := s.Append(t.Context(), stream.Append{Stream: "s", Producer: owner, Events: []stream.Event{named("n", i)}})
					if err != nil {
						t.Error(err)
						return
					}
					got[i] = r.Events[0]
				})
			}
		}
		wg.Wait()
		slices.SortFunc(got, func(a, b stream.Appended) int { return int(a.EventID - b.EventID) })
		for i, e := range got {
			if e.Sequence != int64(i+1) {
				t.Fatalf("event %d in the journal's order has the sequence %d", i+1, e.Sequence)
			}
		}
		all, _ := b.read("s", "n", n+1)
		if len(all) != n || all[n-1].Sequence != n {
			t.Errorf("a consumer reads %d events, want %d", len(all), n)
		}
	})
}

func TestABatchIsAllOrNothing(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		var events []stream.Event
		for i := range stream.MaxBatch {
			events = append(events, stream.Event{
				Name: "n" + fmt.Sprint(i%3), Version: 1, Body: []byte(`"payload":{"x":"` + strings.Repeat("x", 900) + `"}`),
			})
		}
		r, err := b.Append(t.Context(), stream.Append{Stream: "s", Producer: owner, Events: events})
		if err != nil || len(r.Events) != stream.MaxBatch {
			t.Fatalf("Append = %d, %v", len(r.Events), err)
		}
		all, _ := b.read("s", "", stream.MaxBatch+1)
		if len(all) != stream.MaxBatch || all[999].ID != r.Events[999].ID || all[999].Sequence != 334 {
			t.Errorf("across names: %d events, the last %d", len(all), all[len(all)-1].Sequence)
		}
		events = events[:stream.MaxNames+1]
		for i := range events {
			events[i].Name = fmt.Sprint(i)
		}
		_, err = b.Append(t.Context(), stream.Append{Stream: "other", Producer: owner, Events: events})
		if !errors.Is(err, stream.ErrTooManyNames) {
			t.Errorf("one name too many: %v, want ErrTooManyNames", err)
		}
		if _, err := b.Describe(t.Context(), "other", "", 1); !errors.Is(err, stream.ErrNoStream) {
			t.Errorf("what was refused has left a stream: %v", err)
		}
	})
}

// TestMostNames: an append of as many names as there may be is stored whatever the sizes of its events; of one more, nothing is.
func TestMostNames(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		for name, sizes := range map[string][]int{
			"no others": nil,
			"no two in one item, and no more in a request": slices.Repeat([]int{195 << 10}, 5),
			"more than half a run":                         slices.Repeat([]int{18 << 10}, 55),
		} {
			var events []stream.Event
			for i := range stream.MaxNames {
				events = append(events, named(fmt.Sprint(i), i))
			}
			for _, size := range sizes {
				events = append(events, stream.Event{Name: "0", Version: 1, Body: []byte(`"payload":"` + strings.Repeat("x", size) + `"`)})
			}
			once := &journal.Idempotency{Scope: "s", Key: "k" + name}
			ask := stream.Append{Stream: name, Producer: owner, Events: events, Once: once}
			if _, err := b.Append(t.Context(), ask); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			all, err := b.Read(t.Context(), stream.Reading{Stream: name, Consumer: consumer, Limit: len(events) + 1})
			if len(all) != len(events) || err != nil {
				t.Errorf("%s: %d events are read, %v, want %d", name, len(all), err, len(events))
			}
		}
	})
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		once := func(content string) *journal.Idempotency {
			return &journal.Idempotency{Scope: "s", Key: "k", Fingerprint: sha256.Sum256([]byte(content))}
		}
		ask := stream.Append{Stream: "s", Producer: owner, Events: []stream.Event{named("a", 1), named("b", 1)}, Once: once("x")}
		first, err := b.Append(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := b.process() // as after a restart
		second, err := again.Append(t.Context(), ask)
		want := stream.Receipt{Events: first.Events, Replayed: true}
		if diff := cmp.Diff(want, second); err != nil || diff != "" {
			t.Errorf("the second time %v (-want +got):\n%s", err, diff)
		}
		ask.Once = once("y")
		if _, err := again.Append(t.Context(), ask); !errors.Is(err, journal.ErrIdempotencyMismatch) {
			t.Errorf("another content: %v, want ErrIdempotencyMismatch", err)
		}
		if got := len(b.appended()); got != 2 {
			t.Errorf("the journal has %d events, want 2", got)
		}
	})
}

func TestOneKeyUsedAtOnceAppendsOnce(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		var wg sync.WaitGroup
		for range 3 {
			s, _ := b.process()
			for range 5 {
				wg.Go(func() {
					once := &journal.Idempotency{Scope: "s", Key: "k"}
					r, err := s.Append(t.Context(), stream.Append{Stream: "s", Producer: owner, Events: []stream.Event{named("a", 1)}, Once: once})
					if err != nil || r.Events[0].Sequence != 1 {
						t.Errorf("Append = %v, %v, want sequence 1", r, err)
					}
				})
			}
		}
		wg.Wait()
		if got := len(b.appended()); got != 1 {
			t.Errorf("the journal has %d events, want 1", got)
		}
	})
}

// A follower of the journal sees what is appended to all streams, and finds each event by its id.
func TestTheJournalTells(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, b *bench) {
		e := b.append(`a "stream"`, `ü "n"`)[0]
		told := b.appended()[0]
		want := fmt.Sprintf(`{"eventId":%d,"key":"a \"stream\"","TYPE":"StreamAppended","name":"ü \"n\"","sequence":1,"id":"%s","producer":"%s"}`,
			e.EventID, e.ID, owner)
		if got := string(told.AppendJSON(nil, true)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		found, of, err := b.Get(t.Context(), e.ID)
		if err != nil || of != `a "stream"` || found.Name != e.Name || found.EventID != e.EventID {
			t.Errorf("Get = %v, %q, %v", found, of, err)
		}
		if _, _, err := b.Get(t.Context(), uuid(9)); !errors.Is(err, stream.ErrNoEvent) {
			t.Errorf("an id that is none: %v, want ErrNoEvent", err)
		}
	})
}
