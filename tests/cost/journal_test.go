package cost_test

import (
	"bytes"
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/tests/containers"
)

func TestMain(m *testing.M) { os.Exit(containers.Run(m)) }

// metered is a journal on DynamoDB whose cost is known.
type metered struct {
	*journal.Journal
	meter *meter.Meter
	last  event.ID // of its newest event
}

// setup returns a journal that has begun: its first append is behind it, and so is the comparison of the clock with the
// store's date, which is made once for each idle hour.
func setup(t *testing.T) *metered {
	t.Helper()
	m := &metered{meter: meter.New(containers.Dynamo(t))}
	m.open(t, m.meter)
	m.emit(t, small())
	m.meter.Reset()
	return m
}

func (m *metered) open(t *testing.T, s store.Store) {
	m.Journal = journal.Open(s, journal.Options{Timing: journal.Timing{Poll: 20 * time.Millisecond, Call: 30 * time.Second}})
	t.Cleanup(func() { m.Close() })
}

func (m *metered) emit(t *testing.T, events ...event.Event) {
	t.Helper()
	receipt, err := m.Emit(t.Context(), events, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.last = receipt.FirstID + event.ID(receipt.Count) - 1
}

// demand demands that the journal has used exactly that since the meter was set to zero.
func (m *metered) demand(t *testing.T, want meter.Usage) {
	t.Helper()
	if diff := cmp.Diff(want, m.meter.Usage()); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

func small() event.Event {
	return event.Event{Type: "OrderFinished", Key: event.Key{Path: "/chain,order"}, Fields: []byte(`"nodeId":"END"`)}
}

// sized returns an event whose JSON, with its EventId, has that many bytes.
func sized(size int) event.Event {
	e := small()
	e.ID = event.MaxID
	e.Fields = append(e.Fields, `,"text":""`...)
	gap := size - len(e.AppendJSON(nil, true))
	e.Fields = append(e.Fields[:len(e.Fields)-1], append(bytes.Repeat([]byte("x"), gap), '"')...)
	e.ID = 0
	return e
}

func TestAPlainAppendOfOneSmallEventCosts2WCU(t *testing.T) {
	t.Parallel()
	m := setup(t)
	m.emit(t, small())
	m.demand(t, meter.Usage{Reserve: meter.Cost{Calls: 1, WCU: 1}, Write: meter.Cost{Calls: 1, WCU: 1}})
}

// The budget is 10; a slot is smaller than the events' JSON, as it holds neither their ids nor their members' names.
func TestABatchOf25EventsOf300BytesCosts8WCU(t *testing.T) {
	t.Parallel()
	m := setup(t)
	batch := make([]event.Event, 25)
	for i := range batch {
		batch[i] = sized(300)
	}
	m.emit(t, batch...)
	m.demand(t, meter.Usage{Reserve: meter.Cost{Calls: 1, WCU: 1}, Write: meter.Cost{Calls: 1, WCU: 7}})
}

// watched is a store that reports each read of a sequencer after it was made, and priced.
type watched struct {
	store.Store
	read func(eventual bool)
}

func (w watched) Sequence(ctx context.Context, key store.Key, eventual bool) (store.Sequence, error) {
	state, err := w.Store.Sequence(ctx, key, eventual)
	w.read(eventual)
	return state, err
}

func TestIdleFollowersCostHalfAnRCUForEachPollHoweverManyTheyAre(t *testing.T) {
	t.Parallel()
	const (
		followers = 20
		polls     = 10
		poll      = 20 * time.Millisecond
	)
	m := setup(t)
	var (
		mu     sync.Mutex
		opened int
		polled int
		began  time.Time
		took   time.Duration
		usage  meter.Usage
		done   = make(chan struct{})
	)
	m.open(t, watched{m.meter, func(eventual bool) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case !eventual:
			opened++
		case opened <= followers: // one of them is the read below
		case began.IsZero():
			m.meter.Reset()
			began = time.Now()
		default:
			if polled++; polled == polls {
				usage, took = m.meter.Usage(), time.Since(began)
				close(done)
			}
		}
	}})
	if _, err := m.ReadAfter(t.Context(), journal.Request{After: m.last}); err != nil { // now the end is known
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range followers {
		group.Go(func() {
			_, _ = m.ReadAfter(ctx, journal.Request{After: m.last, Timeout: time.Minute})
		})
	}
	<-done
	cancel()
	group.Wait()
	want := meter.Usage{Sequence: meter.Cost{Calls: polls, RCU: polls * 0.5}}
	if diff := cmp.Diff(want, usage); diff != "" {
		t.Errorf("usage of %d polls (-want +got):\n%s", polls, diff)
	}
	if took < polls*poll {
		t.Errorf("%d polls took %v, want at least %v: there is one poller for all followers", polls, took, polls*poll)
	}
}

// A client that comes back each time its wait has ended pays for looking whether it has missed something: one strong read
// of the sequencer, and nothing else while nothing has come.
func TestAnEmptyReadAtTheEndCosts1RCU(t *testing.T) {
	t.Parallel()
	m := setup(t)
	for range 2 {
		m.meter.Reset()
		answer, err := m.ReadAfter(t.Context(), journal.Request{After: m.last})
		if err != nil || len(answer.Events) > 0 {
			t.Fatalf("ReadAfter = %+v, %v, want nothing", answer, err)
		}
	}
	m.demand(t, meter.Usage{Sequence: meter.Cost{Calls: 1, RCU: 1}})
}
