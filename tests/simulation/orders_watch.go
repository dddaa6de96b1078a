package simulation

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// orderMoment is an order as it was committed; the order is nil when it was gone.
type orderMoment struct {
	at      time.Time
	version int64
	order   *order.Order
}

// orderWatch is a store between the network and the ledger; it checks every commit of an order.
type orderWatch struct {
	*ledger

	mu    sync.Mutex
	lives map[string][]orderMoment     // by path
	steps map[string]task.Task         // the unfinished ones, by UUID
	items map[string]map[string]order0 // of the other items: by kind, by the rest of their keys
}

// order0 is an item that belongs to orders.
type order0 struct {
	partition, sort, value string
}

var watched = []string{"orders-of", "places", "line", "orders-due", "lock", "lock-holders", "lock-line", "waits"}

func newOrderWatch(l *ledger) *orderWatch {
	w := &orderWatch{ledger: l, lives: map[string][]orderMoment{}, steps: map[string]task.Task{}, items: map[string]map[string]order0{}}
	for _, kind := range watched {
		w.items[kind] = map[string]order0{}
	}
	return w
}

// Write records what the Write did to orders, their steps and what lists them.
func (w *orderWatch) Write(ctx context.Context, write store.Write) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ledger.Write(ctx, write); err != nil {
		return err
	}
	changed := false
	for i := range write.Ops {
		key := write.Ops[i].Item.Key
		if key.Table == store.Work && write.Ops[i].Kind != store.OpCheck {
			changed = w.seen(key, w.ledger.items[key]) || changed
		}
	}
	if changed {
		w.checkOrders()
		w.checkLists()
		w.checkPlacesOfOrders()
		w.checkLocks()
	}
	return nil
}

// seen records an item as it is now; the zero item is one that is gone. It reports whether it has to do with orders.
func (w *orderWatch) seen(key store.Key, item store.Item) bool {
	kind, rest, _ := strings.Cut(key.Partition, "/")
	switch {
	case kind == "task":
		return w.seenStep(key.Sort, item)
	case kind == "order":
		w.seenOrder(rest, item)
		return true
	case slices.Contains(watched, kind):
		at := key.Partition + " " + key.Sort
		if item.Version == 0 && len(item.Value) == 0 {
			delete(w.items[kind], at)
		} else {
			w.items[kind][at] = order0{key.Partition, key.Sort, string(item.Value)}
		}
		return true
	}
	return false
}

func (w *orderWatch) seenStep(uuid string, item store.Item) bool {
	_, was := w.steps[uuid]
	delete(w.steps, uuid)
	if len(item.Value) == 0 {
		return was
	}
	var t task.Task
	if err := layout.Decode(&item, &t); err != nil || t.Order == nil {
		return false
	}
	if !t.State.Final() {
		w.steps[uuid] = t
	}
	return true
}

func (w *orderWatch) seenOrder(path string, item store.Item) {
	life := w.lives[path]
	now := orderMoment{at: time.Now(), version: item.Version}
	if len(item.Value) > 0 {
		now.order = new(order.Order)
		if err := json.Unmarshal(item.Value, now.order); err != nil {
			w.report("order", "%s cannot be read: %v", path, err)
		}
	}
	if len(life) > 0 {
		last := life[len(life)-1]
		if now.version == last.version && now.order != nil || now.order == nil && last.order == nil {
			return // a repeated request
		}
		if now.order != nil && now.version <= last.version {
			w.report("fence", "the order %s went from position %d back to %d", path, last.version, now.version)
		}
		if now.order == nil {
			now.version = last.version
		}
	}
	w.lives[path] = append(life, now)
}

// now returns the orders that are there, by path.
func (w *orderWatch) orders() map[string]*order.Order {
	there := map[string]*order.Order{}
	for path, life := range w.lives {
		if o := life[len(life)-1].order; o != nil {
			there[path] = o
		}
	}
	return there
}

// checkOrders demands that each order that is at a job's node and goes on has exactly one step's task, and that no other step is
// unfinished.
func (w *orderWatch) checkOrders() {
	there := w.orders()
	w.checkSteps(there)
	w.checkEach(there)
}

func (w *orderWatch) checkSteps(there map[string]*order.Order) {
	for uuid, t := range w.steps {
		o := there[t.Order.Path()]
		switch {
		case o == nil:
			w.report("one step", "the task %s at %s is unfinished, and its order %s is gone", uuid, t.Order.Node, t.Order.Path())
		case o.Task != t.ID:
			w.report("one step", "the task %s of %s at %s is unfinished beside %q at %s", uuid, o.Path(), t.Order.Node, o.Task, o.Node)
		case o.Node != t.Order.Node:
			w.report("one node", "%s is at %s, and its step is at %s", o.Path(), o.Node, t.Order.Node)
		case o.Suspended && t.State.Queued() && t.Attempt == 0:
			w.report("one step", "the step %s of the suspended order %s waits to start", uuid, o.Path())
		}
	}
}

func (w *orderWatch) checkEach(there map[string]*order.Order) {
	for path, o := range there {
		var t task.Task
		live := false
		if o.Task != "" {
			t, live = w.steps[o.Task.UUID()]
		}
		switch {
		case o.Path() != path:
			w.report("order", "%s is stored as %s", o.Path(), path)
		case o.Task != "" && !live:
			w.report("one step", "%s at %s has the step %s, which is over", path, o.Node, o.Task)
		case o.Then != nil && (!live || t.Attempt == 0):
			w.report("then", "%s at %s waits for the end of a step that does not run", path, o.Node)
		case o.Task == "" && !o.Suspended && !o.Idle && o.Waiting == "" && !w.hasAlarm(path):
			w.report("hang", "%s at %s waits for nothing, and has no step", path, o.Node)
		}
	}
}

func (w *orderWatch) hasAlarm(path string) bool {
	for _, item := range w.items["orders-due"] {
		if item.value == path {
			return true
		}
	}
	return false
}

// checkLists demands that each order is listed once.
func (w *orderWatch) checkLists() {
	there := w.orders()
	if len(there) != len(w.items["orders-of"]) {
		w.report("order", "%d orders are there, and %d are listed", len(there), len(w.items["orders-of"]))
	}
	for _, item := range w.items["orders-of"] {
		if path := strings.TrimPrefix(item.partition, "orders-of/") + "," + item.value; there[path] == nil {
			w.report("order", "%s is listed, and not there", path)
		}
	}
}

// fillIsDue reports whether an alarm says that a chain's places are to be given to those in line: one write does so for a few only.
func (w *orderWatch) fillIsDue() bool {
	for _, item := range w.items["orders-due"] {
		if strings.Contains(item.value, `"do":"fill"`) {
			return true
		}
	}
	return false
}

// checkPlacesOfOrders demands that the places of a chain are those of its orders, and no more than may be taken; and that who waits
// for one is in line.
func (w *orderWatch) checkPlacesOfOrders() {
	taken, waiting := 0, 0
	for _, o := range w.orders() {
		if o.Chain != fewChain && o.Chain != loopChain {
			continue
		}
		if o.Counted {
			taken++
		}
		if o.Waiting == "max_orders" {
			waiting++
		}
	}
	var counted struct {
		T int `json:"t"`
		W int `json:"w"`
	}
	for _, item := range w.items["places"] {
		_ = json.Unmarshal([]byte(item.value), &counted)
	}
	switch {
	case taken > fewOrders:
		w.report("max_orders", "%d orders are under way, %d may", taken, fewOrders)
	case taken != counted.T || waiting != counted.W || waiting != len(w.items["line"]):
		w.report("max_orders", "%d orders have a place and %d wait; %d and %d are counted, %d are in line", taken, waiting, counted.T, counted.W, len(w.items["line"]))
	case waiting > 0 && taken < fewOrders && !w.fillIsDue():
		w.report("max_orders", "%d orders wait in line, and only %d have a place", waiting, taken)
	case taken == fewOrders:
		w.count("full chain")
	}
}

// any returns the path of a random order that is there, empty if there is none.
func (w *orderWatch) any(luck func(int) int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	paths := slices.Sorted(maps.Keys(w.orders()))
	if len(paths) == 0 {
		return ""
	}
	return paths[luck(len(paths))]
}

// anyTask returns a random unfinished step.
func (w *orderWatch) anyTask(luck func(int) int) task.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	uuids := slices.Sorted(maps.Keys(w.steps))
	if len(uuids) == 0 {
		return ""
	}
	return w.steps[uuids[luck(len(uuids))]].ID
}

// graphs returns all versions of the chains, by name.
func (w *orderWatch) graphs() map[string]map[int]*definition.Graph {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]map[int]*definition.Graph{}
	for key, item := range w.ledger.items {
		chain, is := strings.CutPrefix(key.Partition, "versions/")
		if !is {
			continue
		}
		g, err := definition.ReadGraph(item.Value)
		if err != nil {
			w.report("order", "a version of %s cannot be read: %v", chain, err)
			continue
		}
		if all[chain] == nil {
			all[chain] = map[int]*definition.Graph{}
		}
		all[chain][atoi(key.Sort)] = g
	}
	return all
}
