package simulation

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// audit is a store between the network and the real one; it sees what is really applied. Its archive keeps every slot as it was
// first written, and nothing is removed from it.
type audit struct {
	store.Store
	report func(invariant, format string, args ...any)

	mu      sync.Mutex
	slots   map[store.Key]string // the token of each slot's first writer
	labels  map[string]int       // how many slots hold each label
	archive *memory.Store
	items   map[store.Key]store.Item // work items, as last written
	floors  []floor
	voids   int
}

type floor struct {
	at       time.Time
	position int64
	id       event.ID
}

func newAudit(base store.Store, report func(invariant, format string, args ...any)) *audit {
	return &audit{
		Store: base, report: report,
		slots: map[store.Key]string{}, labels: map[string]int{}, archive: memory.New(memory.Options{}),
		items: map[store.Key]store.Item{}, floors: []floor{{at: time.Now()}},
	}
}

// Write records what the Write did.
func (a *audit) Write(ctx context.Context, w store.Write) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.Store.Write(ctx, w); err != nil {
		return err
	}
	for _, op := range w.Ops {
		if op.Kind != store.OpPut {
			continue
		}
		found, err := a.Store.Get(ctx, op.Item.Key)
		if err != nil || found[0] == nil || found[0].Token != w.Token {
			continue // a repeated request, after whose first arrival another Write replaced the item
		}
		switch {
		case op.Item.Key.Table == store.Journal && strings.HasPrefix(op.Item.Key.Partition, "J#"):
			a.slot(*found[0])
		case op.Item.Key.Table == store.Work:
			a.item(*found[0])
		}
	}
	return nil
}

func (a *audit) slot(item store.Item) {
	first, written := a.slots[item.Key]
	if written {
		if first != item.Token {
			a.report("acknowledged once", "slot %s was written a second time", item.Key.Sort)
		}
		return
	}
	a.slots[item.Key] = item.Token
	labels := labelsIn(item.Value)
	if len(labels) == 0 && !strings.Contains(item.Key.Sort, ".") { // and not a slot's continuation
		a.voids++
	}
	for _, label := range labels {
		a.labels[label]++
	}
	w := store.Write{Token: item.Token, Ops: []store.Op{store.Put(item, store.Absent)}}
	if err := a.archive.Write(context.Background(), w); err != nil {
		panic(err)
	}
}

func (a *audit) item(item store.Item) {
	before, ok := a.items[item.Key]
	if ok && before.Token != item.Token && item.Version <= before.Version {
		a.report("refused is absent", "item %s went from position %d back to %d", item.Key.Sort, before.Version, item.Version)
	}
	a.items[item.Key] = item
}

// Raise raises the floor and records it.
func (a *audit) Raise(ctx context.Context, key store.Key, position, id int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.Store.Raise(ctx, key, position, id); err != nil {
		return err
	}
	if last := a.floors[len(a.floors)-1]; position > last.position {
		a.floors = append(a.floors, floor{at: time.Now(), position: position, id: event.ID(id)})
	}
	return nil
}

// floorAt returns the floor as it was at a moment.
func (a *audit) floorAt(moment time.Time) floor {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.floors[0]
	for _, f := range a.floors {
		if !f.at.After(moment) {
			at = f
		}
	}
	return at
}

// history is the archive as a store whose floor never moved.
type history struct {
	*memory.Store
	sequencer store.Store
}

// Exclusive returns false, as the stores of the run's processes do, so that slots are looked for where they were written.
func (history) Exclusive() bool { return false }

// Sequence returns the sequencer of the run, with its floor at 0.
func (h history) Sequence(ctx context.Context, key store.Key, eventual bool) (store.Sequence, error) {
	seq, err := h.sequencer.Sequence(ctx, key, eventual)
	seq.FloorPosition, seq.FloorID = 0, 0
	return seq, err
}

// labelMark begins the member of an event's fields that names the event uniquely.
const labelMark = `"n":"`

func labelsIn(value []byte) []string {
	var labels []string
	for {
		_, rest, found := bytes.Cut(value, []byte(labelMark))
		if !found {
			return labels
		}
		label, rest, _ := bytes.Cut(rest, []byte(`"`))
		labels = append(labels, string(label))
		value = rest
	}
}

// labelled returns an event with that label; more is appended to its fields.
func labelled(label, path string, more string) event.Event {
	return event.Event{Type: "Simulated", Key: event.Key{Path: path}, Fields: fmt.Appendf(nil, `%s%s"%s`, labelMark, label, more)}
}

func labelOf(e *event.Event) string { return labelsIn(e.Fields)[0] }

// numberIn returns the number of a member of an event's fields.
func numberIn(e *event.Event, member string) int {
	_, rest, _ := strings.Cut(string(e.Fields), `"`+member+`":`)
	digits, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(err)
	}
	return n
}
