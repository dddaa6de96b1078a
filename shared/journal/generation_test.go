package journal_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
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
	"github.com/millrace/millrace/shared/store/limited"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
	"github.com/millrace/millrace/shared/store/pebble"
)

const (
	largeValue = 16 << 10
	perEvent   = 64 // objects, so that a large state takes few events
)

// large is a fold of which each event makes 1 MB of objects.
var large = journal.Fold{Name: "large", Apply: func(s *journal.State, e *event.Event) {
	for i := range perEvent {
		value := make([]byte, largeValue)
		for at := 0; at < len(value); at += 8 {
			binary.LittleEndian.PutUint64(value[at:], uint64(e.ID)*uint64(at+i+1))
		}
		s.Put(fmt.Sprintf("%s/%d", e.Key.Path, i), value)
	}
}}

// grow appends an event for each MB.
func grow(t *testing.T, j *journal.Journal, mb int) {
	t.Helper()
	for from := 0; from < mb; from += 64 {
		var events []event.Event
		for i := from; i < min(from+64, mb); i++ {
			events = append(events, event.Event{Type: "Grow", Key: event.Key{Path: fmt.Sprintf("/mb/%d", i)}})
		}
		if _, err := j.Emit(t.Context(), events, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// sum returns how many objects a fold has, and a sum over all of them.
func sum(t *testing.T, j *journal.Journal, fold string) (objects int, all uint64) {
	t.Helper()
	h := fnv.New64a()
	_, err := j.Snapshot(t.Context(), fold, func(key string, value []byte) {
		objects++
		_, _ = h.Write([]byte(key))
		_, _ = h.Write(value[:16])
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects, h.Sum64()
}

// sweepUntil sweeps once a minute, with so much time for each, until the newest generation has reached the journal's end.
func sweepUntil(t *testing.T, open func() *journal.Journal, each time.Duration, most int) {
	t.Helper()
	for n := 1; ; n++ {
		ctx, cancel := context.WithTimeout(t.Context(), each)
		began := time.Now()
		swept, err := open().Sweep(ctx)
		cancel()
		if err != nil {
			t.Fatalf("sweep %d: %v", n, err)
		}
		if swept.Generation > 0 && swept.Generation == swept.Position {
			t.Logf("complete after %d sweeps, the last of which took %v", n, time.Since(began))
			return
		}
		if n == most {
			t.Fatalf("after %d sweeps: %+v", n, swept)
		}
		time.Sleep(time.Minute - time.Since(began))
	}
}

// A state of 1 GB is stored within what DynamoDB takes, by sweeps of a minute each, and read in less than one.
func TestAGenerationOfAGigabyte(t *testing.T) {
	mb := 1024
	if testing.Short() {
		mb = 32
	}
	synctest.Test(t, func(t *testing.T) {
		s := limited.New(memory.New(memory.Options{}), limited.Limits{})
		o := journal.Options{Folds: []journal.Fold{large}}
		j := open(t, s, o)
		grow(t, j, mb)
		sweepUntil(t, func() *journal.Journal { return j }, time.Minute, 2+mb/64)
		if busy := s.TurnedAway(); busy > mb/4 {
			t.Errorf("%d requests were turned away: others are in need of the table too", busy)
		}
		objects, want := sum(t, j, large.Name)
		_ = j.Close()
		j = nil
		began := time.Now()
		again := open(t, s, o)
		if n, got := sum(t, again, large.Name); n != objects || n != mb*perEvent || got != want {
			t.Errorf("a fresh process shows %d objects with sum %x, want %d with %x", n, got, objects, want)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("a fresh process takes %v to begin", took)
		}
		t.Logf("%d MB, %d requests turned away; a fresh process began in %v", mb, s.TurnedAway(), time.Since(began))
	})
}

// Each sweep is a process of its own, which has time for a part only, while events are appended.
func TestABaseIsStoredByManyProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Options{})
		s := limited.New(m, limited.Limits{})
		o := journal.Options{Folds: []journal.Fold{large, counter}, Retention: journal.Retention{Events: 5}}
		writer := open(t, s, o)
		grow(t, writer, 48)
		sweeps := 0
		sweepUntil(t, func() *journal.Journal {
			sweeps++
			if sweeps > 1 && sweeps < 5 {
				grow(t, writer, 2) // changes what is stored already, and what is not
			}
			return open(t, s, o)
		}, 15*time.Second, 12)
		if sweeps < 4 {
			t.Errorf("%d sweeps were enough: they have more time than this test thinks", sweeps)
		}
		objects, want := sum(t, writer, large.Name)
		again := open(t, s, o)
		if n, got := sum(t, again, large.Name); n != objects || got != want {
			t.Errorf("a fresh process shows %d objects with sum %x, want %d with %x", n, got, objects, want)
		}
		if a, err := again.ReadAfter(t.Context(), journal.Request{}); err != nil || !a.Torn {
			t.Errorf("ReadAfter(0) = %+v, %v, want torn: the floor has moved behind the generation", a, err)
		}
	})
}

// registry is a fold in which events put and remove objects.
var registry = journal.Fold{Name: "registry", Apply: func(s *journal.State, e *event.Event) {
	if e.Type == "Gone" {
		s.Delete(e.Key.Path)
		return
	}
	s.Put(strings.Clone(e.Key.Path), []byte(e.ID.Time().Format(time.RFC3339Nano)))
}}

// stores are one of each kind.
func stores(t *testing.T) map[string]store.Store {
	t.Helper()
	disk, err := pebble.Open(t.TempDir(), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = disk.Close() })
	return map[string]store.Store{
		"memory": memory.New(memory.Options{}),
		"pebble": disk,
		"shared": limited.New(memory.New(memory.Options{}), limited.Limits{Latency: time.Microsecond}),
	}
}

// A process that starts from a base sees what was put, changed and removed since it was stored.
func TestChangesAreLaidAboveABase(t *testing.T) {
	t.Parallel()
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := journal.Options{Folds: []journal.Fold{registry, counter}, Retention: journal.Retention{Events: 8}, Chunk: 64}
			j := open(t, s, o)
			for n := range 400 {
				typ := "Here"
				if n%3 == 2 {
					typ = "Gone"
				}
				e := event.Event{Type: typ, Key: event.Key{Path: fmt.Sprintf("/%d", n*n%37)}}
				if _, err := j.Emit(t.Context(), []event.Event{e}, nil); err != nil {
					t.Fatal(err)
				}
				if n%5 != 0 {
					continue
				}
				if _, err := j.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if n%20 != 0 {
					continue
				}
				want, got := shown(t, j, registry.Name), shown(t, open(t, s, o), registry.Name)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("after %d events, a fresh process shows (-want +got):\n%s", n+1, diff)
				}
			}
		})
	}
}

func shown(t *testing.T, j *journal.Journal, fold string) map[string]string {
	t.Helper()
	all := map[string]string{}
	if _, err := j.Snapshot(t.Context(), fold, func(key string, value []byte) { all[key] = string(value) }); err != nil {
		t.Fatal(err)
	}
	return all
}

// However large the state is, a process that starts folds at most the events after which changes are stored, and those since
// the newest sweep; and storing changes costs a small part of what appending the events did.
func TestAProcessThatStartsFoldsAFewEvents(t *testing.T) {
	t.Parallel()
	const (
		objects    = 20_000
		between    = 1000 // events from one sweep to the next
		atMost     = 4096 + between
		queries    = atMost/16 + 16 // slots of a page that share a partition
		partOfCost = 4              // storing generations may cost a quarter of the appends
	)
	var folded atomic.Int64
	fold := journal.Fold{Name: "counted", Apply: func(s *journal.State, e *event.Event) {
		folded.Add(1)
		s.Put(strings.Clone(e.Key.Path), []byte("some forty bytes of what an overview shows"))
	}}
	synctest.Test(t, func(t *testing.T) {
		m := meter.New(limited.New(memory.New(memory.Options{}), limited.Limits{Latency: time.Microsecond, TableWrites: 1e9, PartitionWrites: 1e9}))
		o := journal.Options{Folds: []journal.Fold{fold}}
		j := open(t, m, o)
		var all []event.Event
		for n := range objects {
			all = append(all, event.Event{Type: "Object", Key: event.Key{Path: fmt.Sprintf("/object/%d", n)}})
		}
		for from := 0; from < objects; from += 5000 {
			if _, err := j.Emit(t.Context(), all[from:from+5000], nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := j.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		var appended, stored, most int
		var reads float64
		for n := range 24 {
			m.Reset()
			for i := range between {
				if _, err := j.Emit(t.Context(), all[(n*between+i)*7%objects:][:1], nil); err != nil {
					t.Fatal(err)
				}
			}
			appended += m.Reset().Total().WCU
			if n%5 == 4 { // the tail is at its longest
				fresh := open(t, m, o)
				folded.Store(0)
				sum(t, fresh, fold.Name)
				u := m.Reset()
				most, reads = max(most, int(folded.Load())), max(reads, u.Total().RCU)
				if u.Query.Calls > queries {
					t.Errorf("a process that starts makes %d queries, want at most %d", u.Query.Calls, queries)
				}
			}
			if _, err := j.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			stored += m.Reset().Total().WCU
		}
		t.Logf("at most %d events folded and %g RCU read at a start; appends cost %d WCU, generations %d", most, reads, appended, stored)
		if most > atMost {
			t.Errorf("a process that starts folds %d events, want at most %d", most, atMost)
		}
		if stored > appended/partOfCost {
			t.Errorf("storing generations costs %d WCU, appending %d", stored, appended)
		}
	})
}

// keeping counts the bytes in the partitions of generations.
type keeping struct {
	store.Store
	t      *testing.T
	mu     sync.Mutex
	chunks map[string]int // bytes by partition
	refuse int            // so many writes of the manifest are refused
}

func (k *keeping) Write(ctx context.Context, w store.Write) error {
	key := w.Ops[0].Item.Key
	if key.Sort == "newest" && k.refuse > 0 {
		k.refuse--
		return store.ErrInvalid // an error that is not tried again
	}
	err := k.Store.Write(ctx, w)
	if err != nil || !strings.HasPrefix(key.Partition, "G#main#") {
		return err
	}
	k.mu.Lock() // chunks are written side by side
	defer k.mu.Unlock()
	if w.Ops[0].Kind == store.OpDelete {
		delete(k.chunks, key.Partition)
	} else {
		k.chunks[key.Partition] = len(w.Ops[0].Item.Value)
	}
	return nil
}

func (k *keeping) bytes() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for size := range maps.Values(k.chunks) {
		n += size
	}
	return n
}

// Layers that no generation needs are removed a day later, also those of a sweep that was cut off before it named them.
func TestNoLayerIsLeftBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &keeping{Store: memory.New(memory.Options{}), t: t, chunks: map[string]int{}}
		o := journal.Options{Folds: []journal.Fold{counter}, Retention: journal.Retention{Events: 8}, Chunk: 64}
		j := open(t, k, o)
		for day := range 40 {
			for n := range 40 {
				if _, err := j.Emit(t.Context(), []event.Event{custom(n)}, nil); err != nil {
					t.Fatal(err)
				}
			}
			k.refuse = day % 3
			swept, err := j.Sweep(t.Context())
			if failed := err != nil; failed != (day%3 != 0) {
				t.Fatalf("day %d: Sweep = %+v, %v", day, swept, err)
			}
			k.refuse = 0
			time.Sleep(25 * time.Hour)
		}
		for range 3 {
			if _, err := j.Emit(t.Context(), []event.Event{custom(1), custom(2), custom(3), custom(4)}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := j.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(25 * time.Hour)
		}
		if k.bytes() > 3<<10 || len(k.chunks) == 0 {
			t.Errorf("%d bytes are kept in %d chunks, of a state of 70", k.bytes(), len(k.chunks))
		}
	})
}

// A generation of the older layout, all in one partition, is ignored and removed.
func TestAGenerationOfAnOlderLayoutIsRemoved(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	const id = "0000000000000005-TOKEN"
	manifest, _ := json.Marshal(map[string]any{
		"id": id, "chunks": 1, "folds": []string{"counter"}, "ledger": map[string]any{"position": 5, "events": 5},
	})
	old := map[string]store.Key{
		string(manifest): {Table: store.Journal, Partition: "G#main", Sort: "newest"},
		"1700000000000":  {Table: store.Journal, Partition: "G#main", Sort: "all#" + id},
		"\x00\x03/k/1":   {Table: store.Journal, Partition: "G#main#" + id, Sort: "000001"},
	}
	for value, key := range old {
		op := store.Put(store.Item{Key: key, Version: 5, Value: []byte(value)}, store.Absent)
		if err := s.Write(t.Context(), store.Write{Token: value, Ops: []store.Op{op}}); err != nil {
			t.Fatal(err)
		}
	}
	o := journal.Options{Folds: []journal.Fold{counter}}
	j := open(t, s, o)
	for n := range 7 {
		if _, err := j.Emit(t.Context(), []event.Event{custom(n)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, process := range []*journal.Journal{j, open(t, s, o)} {
		if swept, err := process.Sweep(t.Context()); err != nil || swept.Generation != 7 {
			t.Fatalf("Sweep = %+v, %v, want a generation at 7", swept, err)
		}
		if got := len(shown(t, process, counter.Name)); got != 7 {
			t.Errorf("%d objects, want 7", got)
		}
	}
	for _, sort := range []string{"all#" + id, "000001"} {
		for _, key := range old {
			if items, err := s.Get(t.Context(), key); key.Sort == sort && (err != nil || items[0] != nil) {
				t.Errorf("%v is still there: %v", key, err)
			}
		}
	}
}

// A generation of which a part is missing is reported as damaged, without waiting.
func TestAMissingPartOfAGenerationIsDamage(t *testing.T) {
	t.Parallel()
	k := &keeping{Store: memory.New(memory.Options{}), t: t, chunks: map[string]int{}}
	o := journal.Options{Folds: []journal.Fold{counter}}
	j := open(t, k, o)
	if _, err := j.Emit(t.Context(), []event.Event{custom(1)}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for partition := range k.chunks {
		if err := k.Remove(t.Context(), store.Range{Table: store.Journal, Partition: partition}); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := snapshot(t.Context(), open(t, k, o))
	if !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("Snapshot = %v, want ErrDamaged", err)
	}
}
