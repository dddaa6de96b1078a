package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
)

func custom(n int) event.Event {
	return event.Event{Type: "Tick", Key: event.Key{Path: fmt.Sprintf("/k/%d", n%7)}, Fields: []byte(fmt.Sprintf(`"n":%d`, n))}
}

func open(t *testing.T, s store.Store, o journal.Options) *journal.Journal {
	t.Helper()
	j := journal.Open(s, o)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// counter is a fold that counts the events of each key.
var counter = journal.Fold{Name: "counter", Apply: func(s *journal.State, e *event.Event) {
	var n int
	_, _ = fmt.Sscan(string(s.Get(e.Key.Path)), &n)
	s.Put(e.Key.Path, []byte(fmt.Sprint(n+1)))
}}

func snapshot(ctx context.Context, j *journal.Journal) (map[string]string, event.ID, error) {
	objects := map[string]string{}
	stamp, err := j.Snapshot(ctx, "counter", func(key string, value []byte) { objects[key] = string(value) })
	return objects, stamp, err
}

func TestConcurrentEmittersAndFollowers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	j := open(t, memory.New(memory.Options{}), journal.Options{Folds: []journal.Fold{counter}})
	const writers, each = 16, 200
	var group sync.WaitGroup
	for _, limit := range []int{0, 1, 3, 7} {
		group.Go(func() {
			var last event.ID
			seen := map[string]int{}
			for n := 0; n < writers*each; {
				a, err := j.ReadAfter(ctx, journal.Request{After: last, Limit: limit, Timeout: time.Minute})
				if err != nil || a.Torn {
					t.Errorf("ReadAfter(%d) = %+v, %v", last, a, err)
					return
				}
				for _, e := range a.Events {
					if e.ID <= last {
						t.Errorf("limit %d: id %d after %d", limit, e.ID, last)
					}
					last = e.ID
					seen[string(e.Fields)]++
					n++
				}
			}
			if len(seen) != writers*each {
				t.Errorf("limit %d: saw %d different events, want %d", limit, len(seen), writers*each)
			}
		})
	}
	for w := range writers {
		group.Go(func() {
			for i := range each {
				if _, err := j.Emit(ctx, []event.Event{custom(w*each + i)}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	objects, stamp, err := snapshot(ctx, j)
	if err != nil || len(objects) != 7 {
		t.Fatalf("Snapshot = %v, %v, %v", objects, stamp, err)
	}
	a, err := j.ReadAfter(ctx, journal.Request{After: stamp})
	if err != nil || len(a.Events) != 0 {
		t.Fatalf("events after the stamp: %v, %v", a, err)
	}
}

func TestHoleIsFilledAfterGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		j := open(t, s, journal.Options{})
		first, err := j.Emit(t.Context(), []event.Event{custom(1)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		key := store.Key{Table: store.Journal, Partition: "H#main", Sort: "0"}
		if _, err := s.Reserve(t.Context(), key, 1, time.Now().UnixMicro()); err != nil {
			t.Fatal(err)
		}
		third, err := j.Emit(t.Context(), []event.Event{custom(3)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		a, err := j.ReadAfter(t.Context(), journal.Request{})
		if err != nil {
			t.Fatal(err)
		}
		want := append(first.EventIDs(), third.EventIDs()...)
		var got []event.ID
		for _, e := range a.Events {
			got = append(got, e.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ids (-want +got):\n%s", diff)
		}
		if waited := time.Since(began); waited < 150*time.Millisecond || waited > 400*time.Millisecond {
			t.Errorf("waited %v for the hole", waited)
		}
	})
}

// TestHolesAcrossPages: ReadNewest fills all holes on both sides of a page's beginning, however many.
func TestHolesAcrossPages(t *testing.T) {
	t.Parallel()
	for _, holes := range []int{2, 258, 600} {
		synctest.Test(t, func(t *testing.T) {
			s := memory.New(memory.Options{})
			j := open(t, s, journal.Options{})
			var last event.ID
			for range 254 { // a page has 256 positions, and the first has no 0
				receipt, err := j.Emit(t.Context(), []event.Event{custom(1)}, nil)
				if err != nil {
					t.Fatal(err)
				}
				last = receipt.EventIDs()[0]
			}
			key := store.Key{Table: store.Journal, Partition: "H#main", Sort: "0"}
			for range holes {
				if _, err := s.Reserve(t.Context(), key, 1, time.Now().UnixMicro()); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now()
			a, err := j.ReadNewest(t.Context(), journal.Request{Limit: 1})
			if err != nil || len(a.Events) != 1 || a.Events[0].ID != last {
				t.Errorf("%d holes: ReadNewest = %v, %v, want the event %d", holes, a, err, last)
			}
			if waited := time.Since(began); waited > 2*time.Second {
				t.Errorf("%d holes: waited %v", holes, waited)
			}
		})
	}
}

func TestRetentionTearsAndKeepsSnapshots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		o := journal.Options{Folds: []journal.Fold{counter}, Retention: journal.Retention{Events: 100}}
		j := open(t, s, o)
		var ids []event.ID
		for i := range 1000 {
			r, err := j.Emit(t.Context(), []event.Event{custom(i)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.FirstID)
		}
		swept, err := j.Sweep(t.Context())
		if err != nil || swept.Floor != 900 {
			t.Fatalf("Sweep = %+v, %v, want floor 900", swept, err)
		}
		for after, torn := range map[event.ID]bool{0: true, ids[898]: true, ids[899]: false, ids[999]: false} {
			a, err := j.ReadAfter(t.Context(), journal.Request{After: after})
			if err != nil || a.Torn != torn {
				t.Errorf("ReadAfter(%d) torn %v, %v, want %v", after, a.Torn, err, torn)
			}
		}
		time.Sleep(25 * time.Hour)
		if swept, err = j.Sweep(t.Context()); err != nil || swept.Removed != 900 {
			t.Fatalf("Sweep a day later = %+v, %v, want 900 removed", swept, err)
		}
		again := open(t, s, o)
		objects, _, err := snapshot(t.Context(), again)
		if err != nil || len(objects) != 7 || objects["/k/0"] != "143" {
			t.Fatalf("Snapshot of a fresh process = %v, %v", objects, err)
		}
		a, err := again.ReadNewest(t.Context(), journal.Request{Limit: 2})
		if err != nil || len(a.Events) != 2 || a.Events[0].ID != ids[999] {
			t.Fatalf("ReadNewest = %+v, %v", a, err)
		}
	})
}

// meddled is a store before whose next read of slots something else happens.
type meddled struct {
	store.Store
	before atomic.Pointer[func()]
}

func (s *meddled) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if strings.HasPrefix(r.Partition, "J#") {
		if do := s.before.Swap(nil); do != nil {
			(*do)()
		}
	}
	return s.Store.Query(ctx, r)
}

// What was at a moment above the floor is told also if the slots from which it was to be found out are removed meanwhile.
func TestTheSlotsOfAMomentAreRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{Shared: true})
		o := journal.Options{Folds: []journal.Fold{counter}, Retention: journal.Retention{Events: 100}}
		j := open(t, s, o)
		var at event.ID
		for i := range 5000 {
			r, err := j.Emit(t.Context(), []event.Event{custom(i)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if i == 4949 {
				at = r.FirstID
			}
		}
		slow := &meddled{Store: s}
		reader := open(t, slow, o)
		if _, _, err := snapshot(t.Context(), reader); err != nil {
			t.Fatal(err)
		}
		meanwhile := func() {
			for range 2 {
				if _, err := j.Sweep(t.Context()); err != nil {
					t.Error(err)
				}
				time.Sleep(25 * time.Hour)
			}
			if swept, err := j.Sweep(t.Context()); err != nil || swept.Removed < 4000 {
				t.Errorf("Sweep = %+v, %v, want some removed", swept, err)
			}
		}
		slow.before.Store(&meanwhile)
		objects := 0
		if err := reader.SnapshotAt(t.Context(), counter.Name, at, journal.Part{}, func(string, []byte) { objects++ }); err != nil || objects != 7 {
			t.Errorf("%d objects, %v", objects, err)
		}
		if slow.before.Load() != nil {
			t.Error("no slot was read")
		}
	})
}

// The newest events up to any id are those that were the newest when it was; what is above it costs no read.
func TestTheNewestUntil(t *testing.T) {
	t.Parallel()
	s := meter.New(memory.New(memory.Options{}))
	j := open(t, s, journal.Options{})
	var ids []event.ID
	for i := range 700 { // a page has 256 slots
		r, err := j.Emit(t.Context(), slices.Repeat([]event.Event{custom(i)}, 1+i%3), nil)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.EventIDs()...)
	}
	fresh := open(t, s, journal.Options{})
	for n := 0; n < len(ids); n += 13 {
		for _, until := range []event.ID{ids[n], ids[n] + 1} {
			want := 0
			for want < len(ids) && ids[want] <= until {
				want++
			}
			s.Reset()
			a, err := fresh.ReadNewest(t.Context(), journal.Request{Until: until, Limit: 5})
			if err != nil {
				t.Fatal(err)
			}
			if calls := s.Reset().Total().Calls; calls > 30 {
				t.Errorf("%d calls of the store for the newest up to %d", calls, until)
			}
			var got []event.ID
			for i := range a.Events {
				got = append(got, a.Events[i].ID)
			}
			slices.Reverse(got)
			if diff := cmp.Diff(ids[max(0, want-5):want], got); diff != "" {
				t.Errorf("the newest up to %d: %s", until, diff)
			}
			if a.LastEventID > until || a.LastEventID < ids[want-1] {
				t.Errorf("LastEventID = %d, want %d to %d", a.LastEventID, ids[want-1], until)
			}
		}
	}
	if a, err := fresh.ReadNewest(t.Context(), journal.Request{Until: ids[0] - 1, Limit: 5}); err != nil || len(a.Events) > 0 {
		t.Errorf("%d events before the first, %v", len(a.Events), err)
	}
}

// Who wants few events reads few slots, from either end, also where each slot has many events.
func TestALimitIsWhatIsRead(t *testing.T) {
	t.Parallel()
	s := meter.New(memory.New(memory.Options{}))
	j := open(t, s, journal.Options{})
	for range 600 {
		if _, err := j.Emit(t.Context(), slices.Repeat([]event.Event{custom(0)}, 50), nil); err != nil {
			t.Fatal(err)
		}
	}
	fresh := open(t, s, journal.Options{})
	first := journal.Request{Limit: 1}
	for _, read := range []func(context.Context, journal.Request) (journal.Answer, error){fresh.ReadAfter, fresh.ReadNewest} {
		s.Reset()
		for range 3 {
			if a, err := read(t.Context(), first); err != nil || len(a.Events) != 1 {
				t.Fatalf("%d events, %v", len(a.Events), err)
			}
		}
		if rcu := s.Reset().Query.RCU; rcu > 6 {
			t.Errorf("three reads of an event cost %.1f RCU", rcu)
		}
	}
	all, err := fresh.ReadAfter(t.Context(), journal.Request{Limit: 29_999})
	if err != nil || len(all.Events) != 29_999 {
		t.Errorf("%d events, %v", len(all.Events), err)
	}
	newest, err := fresh.ReadNewest(t.Context(), journal.Request{Limit: 29_999})
	slices.Reverse(newest.Events)
	if err != nil || len(newest.Events) != 29_999 || newest.Events[0].ID != all.Events[1].ID {
		t.Errorf("%d events of the newest, %v", len(newest.Events), err)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	j := open(t, memory.New(memory.Options{}), journal.Options{})
	once := &journal.Idempotency{Scope: "s", Key: "k", Fingerprint: [32]byte{1}}
	first, err := j.Emit(t.Context(), []event.Event{custom(1), custom(2)}, once)
	if err != nil {
		t.Fatal(err)
	}
	second, err := j.Emit(t.Context(), []event.Event{custom(1), custom(2)}, once)
	if err != nil || !second.Replayed {
		t.Fatalf("second Emit = %+v, %v", second, err)
	}
	if diff := cmp.Diff(first.EventIDs(), second.EventIDs()); diff != "" {
		t.Error(diff)
	}
	other := &journal.Idempotency{Scope: "s", Key: "k", Fingerprint: [32]byte{2}}
	if _, err := j.Emit(t.Context(), []event.Event{custom(9)}, other); !errors.Is(err, journal.ErrIdempotencyMismatch) {
		t.Errorf("other body = %v, want ErrIdempotencyMismatch", err)
	}
}

func TestLargeAppendGoesOnInParts(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	j := open(t, s, journal.Options{})
	var events []event.Event
	for i := range 8 {
		fields := fmt.Appendf(nil, `"n":%d,"pad":%q`, i, fmt.Sprintf("%0200000d", i))
		events = append(events, event.Event{Type: "Big", Fields: fields})
	}
	if _, err := j.Emit(t.Context(), events, nil); err != nil {
		t.Fatal(err)
	}
	for _, reader := range []*journal.Journal{j, open(t, s, journal.Options{})} {
		a, err := reader.ReadAfter(t.Context(), journal.Request{})
		if err != nil || len(a.Events) != len(events) {
			t.Fatalf("ReadAfter = %d events, %v", len(a.Events), err)
		}
		for i, e := range a.Events {
			if string(e.Fields) != string(events[i].Fields) {
				t.Errorf("event %d differs", i)
			}
		}
	}
}

func TestRestoredTearsEveryEarlierID(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	o := journal.Options{Folds: []journal.Fold{counter}}
	j := open(t, s, o)
	r, err := j.Emit(t.Context(), []event.Event{custom(1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	began, err := j.Restored(t.Context())
	if err != nil || began <= r.FirstID {
		t.Fatalf("Restored = %d, %v", began, err)
	}
	again := open(t, s, o)
	for after, torn := range map[event.ID]bool{r.FirstID: true, began - 1: true, began: false} {
		if a, err := again.ReadAfter(t.Context(), journal.Request{After: after}); err != nil || a.Torn != torn {
			t.Errorf("ReadAfter(%d) = %+v, %v, want torn %v", after, a, err, torn)
		}
	}
	objects, stamp, err := snapshot(t.Context(), again)
	if err != nil || stamp != began || objects["/k/1"] != "1" {
		t.Errorf("snapshot = %v at %d, %v", objects, stamp, err)
	}
	if v, err := again.Verify(t.Context()); err != nil || v.Events != 0 {
		t.Errorf("Verify = %+v, %v", v, err)
	}
}
