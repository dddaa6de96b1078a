package queue

import (
	"sync"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// addedTasks are the items of the tasks that this process has added last, so that a claim that comes soon need not read them. A claim uses one only
// for an entry of the same version, and starts the task under the condition that its item has it still.
type addedTasks struct {
	mu    sync.Mutex
	items map[string]*store.Item // by UUID
	order [mostAdded]string      // UUIDs, each in place of the one that came so many before
	next  int
}

const (
	mostAdded = 256     // tasks that are remembered: those of a line that hardly waits
	maxAdded  = 4 << 10 // bytes of a task that is
)

// remember keeps the item of a task that was written with an entry.
func (t *addedTasks) remember(p *layout.Place, value []byte) {
	if len(value) > maxAdded {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.items == nil {
		t.items = make(map[string]*store.Item, mostAdded)
	}
	delete(t.items, t.order[t.next])
	t.order[t.next], t.next = p.UUID, (t.next+1)%mostAdded
	t.items[p.UUID] = &store.Item{Key: layout.TaskKey(p.UUID), Version: p.Of, Value: value}
}

// keepItems keeps the items of an addition's tasks that are ready, for the claims that come soon.
func (a *addition) keepItems() {
	if a.q.store.Exclusive() {
		return // it reads nothing from elsewhere
	}
	for i, p := range a.places {
		if p != nil && p.At.Partition != layout.PartitionDue {
			a.q.added.remember(p, a.tasks[i].value)
		}
	}
}

// take returns the item of an entry's task, once, and nil if it is not known.
func (t *addedTasks) take(p *layout.Place) *store.Item {
	t.mu.Lock()
	defer t.mu.Unlock()
	item := t.items[p.UUID]
	if item == nil || item.Version != p.Of {
		return nil
	}
	delete(t.items, p.UUID)
	return item
}
