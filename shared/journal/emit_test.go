package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// gate is a store that other processes share, whose writes wait while it is closed.
type gate struct {
	store.Store
	opened chan struct{}

	mu  sync.Mutex
	ops []int // how many each write has that has passed
}

func newGate() *gate {
	g := &gate{Store: memory.New(memory.Options{}), opened: make(chan struct{})}
	close(g.opened)
	return g
}

func (*gate) Exclusive() bool { return false }

func (g *gate) Write(ctx context.Context, w store.Write) error {
	<-g.opened
	g.mu.Lock()
	g.ops = append(g.ops, len(w.Ops))
	g.mu.Unlock()
	return g.Store.Write(ctx, w)
}

// busyWriters is how many calls write side by side; the next ones wait for one of them.
const busyWriters = 16

// call is one call of Emit by an actor.
type call struct {
	actor   string
	events  []event.Event
	once    *journal.Idempotency
	ctx     context.Context // default: one without end
	receipt journal.Receipt
	err     error
}

// emitBehind makes calls while 16 others are held up, so that they share writes, and returns how many operations all writes had.
func emitBehind(t *testing.T, g *gate, j *journal.Journal, calls []*call) (ops []int) {
	t.Helper()
	var group sync.WaitGroup
	g.opened = make(chan struct{})
	for i := range busyWriters {
		group.Go(func() {
			if _, err := j.Emit(t.Context(), []event.Event{custom(i)}, busyKey(calls[0].once, i)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
	}
	for _, c := range calls {
		ctx := c.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		group.Go(func() { c.receipt, c.err = j.Emit(journal.WithActor(ctx, c.actor), c.events, c.once) })
		synctest.Wait()
	}
	g.ops = nil
	close(g.opened)
	group.Wait()
	return g.ops
}

// busyKey returns a key for one that holds others up, if they have keys.
func busyKey(of *journal.Idempotency, i int) *journal.Idempotency {
	if of == nil {
		return nil
	}
	return &journal.Idempotency{Scope: "busy", Key: fmt.Sprint(i)}
}

func key(k string, fingerprint byte) *journal.Idempotency {
	return &journal.Idempotency{Scope: "s", Key: k, Fingerprint: [32]byte{fingerprint}}
}

func ticks(from, to int) (events []event.Event) {
	for n := from; n <= to; n++ {
		events = append(events, custom(n))
	}
	return events
}

// said returns the events of a receipt as "by:fields", read from the journal.
func said(t *testing.T, j *journal.Journal, r journal.Receipt) string {
	t.Helper()
	a, err := j.ReadAfter(t.Context(), journal.Request{After: r.FirstID - 1, Limit: r.Count, Causes: true})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i, e := range a.Events {
		if e.ID != r.EventIDs()[i] {
			t.Errorf("event %d has id %d, want %d", i, e.ID, r.EventIDs()[i])
		}
		all = append(all, e.By+":"+string(e.Fields))
	}
	return strings.Join(all, " ")
}

// Each of those that share a write has its own neighbouring ids, and its events are its own.
func TestEmitsThatWaitShareAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		j := open(t, g, journal.Options{})
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		signed := custom(6)
		signed.By = "other"
		caused := custom(8)
		caused.Cause = event.CausedBefore(1)
		calls := []*call{
			{actor: "a", events: ticks(1, 2)},
			{events: ticks(3, 3)},
			{actor: "gone", events: ticks(4, 4), ctx: gone},
			{actor: "b", events: []event.Event{custom(5), signed}},
			{actor: "c", events: []event.Event{custom(7), caused}},
		}
		ops := emitBehind(t, g, j, calls)
		if len(ops) != busyWriters+1 {
			t.Errorf("%d writes, want one for all that waited", len(ops)-busyWriters)
		}
		if !errors.Is(calls[2].err, context.Canceled) {
			t.Errorf("a call that had ended: %v", calls[2].err)
		}
		calls = append(calls[:2], calls[3:]...)
		var got []string
		for _, c := range calls {
			if c.err != nil || c.receipt.Position != calls[0].receipt.Position {
				t.Errorf("receipts %+v and %+v, %v, want one position", c.receipt, calls[0].receipt, c.err)
			}
			got = append(got, said(t, j, c.receipt))
		}
		want := []string{`a:"n":1 a:"n":2`, `:"n":3`, `b:"n":5 other:"n":6`, `c:"n":7 c:"n":8`}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if signed.By != "other" || calls[2].events[0].By != "" {
			t.Error("a caller's events were changed")
		}
		last := calls[3].receipt
		a, err := j.ReadAfter(t.Context(), journal.Request{After: last.FirstID, Limit: 1, Causes: true})
		if err != nil || a.Events[0].Cause != event.CausedBy(last.FirstID) {
			t.Errorf("cause = %v, %v, want the event before it, %d", a.Events[0].Cause, err, last.FirstID)
		}
	})
}

// What does not fit into one write goes into the next.
func TestEmitsShareOnlyWhatFits(t *testing.T) {
	t.Parallel()
	large := func(bytes int) []event.Event {
		e := custom(0)
		e.Fields = fmt.Appendf(nil, `"x":"%s"`, strings.Repeat("x", bytes))
		return []event.Event{e}
	}
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		j := open(t, g, journal.Options{})
		calls := []*call{
			{events: large(200 << 10)}, {events: large(100 << 10)}, {events: ticks(1, 1)}, {events: large(100 << 10)},
			{events: large(4 << 20)}, {events: ticks(2, 2)},
		}
		emitBehind(t, g, j, calls)
		for i, c := range calls {
			if want := map[int]error{4: journal.ErrTooLarge}[i]; !errors.Is(c.err, want) || c.receipt.Count != 1 && want == nil {
				t.Errorf("call %d: %+v, %v, want %v", i, c.receipt, c.err, want)
			}
		}
		if first, third := calls[0].receipt, calls[2].receipt; first.Position != third.Position || first.Position == calls[1].receipt.Position {
			t.Errorf("positions %d, %d, %d, want the first and the third together", first.Position, calls[1].receipt.Position, third.Position)
		}
	})
}

// Of those with keys each that is new is appended once, and each that is not has what the first had, whatever becomes of its company.
func TestEmitsWithKeysShareAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		j := open(t, g, journal.Options{})
		before, err := j.Emit(t.Context(), ticks(0, 0), key("before", 1))
		if err != nil {
			t.Fatal(err)
		}
		calls := []*call{
			{actor: "a", events: ticks(1, 2), once: key("a", 1)},
			{events: ticks(0, 0), once: key("before", 1)},
			{events: ticks(0, 0), once: key("before", 2)},
			{actor: "b", events: ticks(3, 3), once: key("b", 1)},
			{actor: "b", events: ticks(3, 3), once: key("b", 1)},
			{actor: "c", events: ticks(4, 5), once: key("c", 1)},
		}
		ops := emitBehind(t, g, j, calls)
		if most := slices.Max(ops); most != 4+1 {
			t.Errorf("the largest write has %d operations, want the notes of four different keys and a slot", most)
		}
		if calls[3].receipt.Replayed { // which of two calls at the same time is the first is open
			calls[3], calls[4] = calls[4], calls[3]
		}
		var got []string
		for _, c := range calls {
			switch {
			case c.err != nil:
				got = append(got, c.err.Error())
			case c.receipt.Replayed:
				got = append(got, fmt.Sprint("replayed ", said(t, j, c.receipt)))
			default:
				got = append(got, said(t, j, c.receipt))
			}
		}
		want := []string{
			`a:"n":1 a:"n":2`, `replayed :"n":0`, journal.ErrIdempotencyMismatch.Error(), `b:"n":3`, `replayed b:"n":3`, `c:"n":4 c:"n":5`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if again := calls[1].receipt; again.FirstID != before.FirstID || again.Position != before.Position {
			t.Errorf("the receipt of an earlier call is %+v, want %+v", again, before)
		}
		for _, c := range calls { // also what shared a write has a note of its own
			again, err := j.Emit(t.Context(), c.events, c.once)
			if c.err == nil && (err != nil || !again.Replayed || again.FirstID != c.receipt.FirstID || again.Count != len(c.events)) {
				t.Errorf("again %+v, %v, want %+v", again, err, c.receipt)
			}
		}
	})
}

// away is a shared store that answers no write.
type away struct{ store.Store }

func (away) Exclusive() bool { return false }

func (away) Write(ctx context.Context, _ store.Write) error {
	<-ctx.Done()
	return store.ErrUnknown
}

// While a store is away, a call waits at most as long for a write to share as that write may take, so that those that wait are not more
// and more.
func TestEmitsAreBoundedWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	const longest = 10*time.Second + 12*time.Second // [journal.Timing]: Append; Append and Call
	for _, keyed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			j := open(t, away{memory.New(memory.Options{})}, journal.Options{})
			large := custom(0)
			large.Fields = fmt.Appendf(nil, `"x":"%s"`, strings.Repeat("x", 200<<10))
			var group sync.WaitGroup
			for i := range 200 {
				var once *journal.Idempotency
				if keyed {
					once = key(fmt.Sprint(i), 1)
				}
				group.Go(func() {
					began := time.Now()
					_, err := j.Emit(t.Context(), []event.Event{large}, once)
					if took := time.Since(began); took > longest || !errors.Is(err, journal.ErrUnknownOutcome) && !errors.Is(err, journal.ErrUnavailable) {
						t.Errorf("Emit took %v, %v", took, err)
					}
				})
			}
			group.Wait()
		})
	}
}
