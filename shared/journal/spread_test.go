package journal_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// counting counts the slots in each partition.
type counting struct {
	*memory.Store
	exclusive bool

	mu    sync.Mutex
	slots map[string]int
}

func (c *counting) Exclusive() bool { return c.exclusive }

func (c *counting) Write(ctx context.Context, w store.Write) error {
	c.mu.Lock()
	for _, op := range w.Ops {
		if strings.HasPrefix(op.Item.Key.Partition, "J#") {
			c.slots[op.Item.Key.Partition]++
		}
	}
	c.mu.Unlock()
	return c.Store.Write(ctx, w)
}

// Consecutive slots go to many partitions where processes share the store, and to one where a process has it to itself. Either way
// all of them are read, in order.
func TestSharedSlotsAreSpreadOverPartitions(t *testing.T) {
	t.Parallel()
	const appends = 600
	for exclusive, want := range map[bool]int{false: 16, true: 3} {
		s := &counting{Store: memory.New(memory.Options{}), exclusive: exclusive, slots: map[string]int{}}
		j := open(t, s, journal.Options{})
		for range appends {
			if _, err := j.Emit(t.Context(), []event.Event{custom(1)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		most := 0
		for _, n := range s.slots {
			most = max(most, n)
		}
		if len(s.slots) != want || !exclusive && most > appends/16+journal.ShortRun {
			t.Errorf("exclusive %v: %d partitions with at most %d slots, want %d", exclusive, len(s.slots), most, want)
		}
		a, err := open(t, s, journal.Options{}).ReadAfter(t.Context(), journal.Request{})
		if err != nil || len(a.Events) != appends {
			t.Errorf("exclusive %v: %d events, %v, want %d", exclusive, len(a.Events), err, appends)
		}
		for i := 1; i < len(a.Events); i++ {
			if a.Events[i].ID <= a.Events[i-1].ID {
				t.Fatalf("event %d is out of order", i)
			}
		}
	}
}

// scanty is a shared store of which each query returns three items at most, and every seventh nothing but an error. It takes no writes.
type scanty struct {
	store.Store
	away            string // the end of the name of a partition that cannot be read
	queries, writes atomic.Int64
}

func (*scanty) Exclusive() bool { return false }

func (s *scanty) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if s.queries.Add(1)%7 == 0 || s.away != "" && strings.HasSuffix(r.Partition, s.away) {
		return store.Page{}, store.ErrUnavailable
	}
	r.Limit = 3
	return s.Store.Query(ctx, r)
}

func (s *scanty) Write(context.Context, store.Write) error {
	s.writes.Add(1)
	return store.ErrUnavailable
}

// What some partitions do not tell yet is no hole: a reader reads on, and fills nothing.
func TestPartitionsThatTellLittleAreReadOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		base := newGate()
		j := open(t, base, journal.Options{})
		events, large := 0, bytes.Repeat([]byte("x"), 400<<10)
		for n := range 300 {
			e := custom(n)
			if n%50 == 0 { // a slot of several items
				e.Fields = fmt.Appendf(nil, `"n":%d,"x":"%s"`, n, large)
			}
			if _, err := j.Emit(t.Context(), []event.Event{e}, nil); err != nil {
				t.Fatal(err)
			}
		}
		s := &scanty{Store: base}
		reader := open(t, s, journal.Options{})
		for last, failed := event.ID(0), 0; events < 300; {
			a, err := reader.ReadAfter(t.Context(), journal.Request{After: last})
			if err != nil {
				if failed++; failed > 200 {
					t.Fatal(err)
				}
			}
			for _, e := range a.Events {
				if want := fmt.Sprintf(`"n":%d`, events); !strings.HasPrefix(string(e.Fields), want) || e.ID <= last {
					t.Fatalf("event %d is %.20s, want %s", events, e.Fields, want)
				}
				events, last = events+1, e.ID
			}
		}
		s.away = "#00"
		for range 10 {
			a, err := open(t, s, journal.Options{}).ReadAfter(t.Context(), journal.Request{Timeout: time.Second})
			if err == nil || len(a.Events) > 0 {
				t.Errorf("%d events, %v, though where the first ones are cannot be read", len(a.Events), err)
			}
		}
		if n := s.writes.Load(); n > 0 {
			t.Errorf("the readers wrote %d times", n)
		}
	})
}
