package journal_test

import (
	"context"
	"strings"
	"sync"
	"testing"

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
		if len(s.slots) != want || !exclusive && most > 2*32 {
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
