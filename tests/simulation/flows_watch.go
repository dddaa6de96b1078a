package simulation

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// at returns the paths of the orders that are at one of some nodes, sorted.
func (w *orderWatch) at(nodes ...string) (paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for path, o := range w.orders() {
		if slices.Contains(nodes, o.Node) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// anyAt returns the path of a random order at one of some nodes, empty if there is none.
func (w *orderWatch) anyAt(luck func(int) int, nodes ...string) string {
	paths := w.at(nodes...)
	if len(paths) == 0 {
		return ""
	}
	return paths[luck(len(paths))]
}

// checkLocks demands that each lock is held by as many orders as it says, by no more than may, and that who waits for it is in line.
func (w *orderWatch) checkLocks() {
	w.checkLockItems()
	type holders struct{ shared, alone, waiting int }
	by := map[string]*holders{"alone": {}, "pool": {}}
	for _, o := range w.orders() {
		for _, l := range o.Locks {
			if l.Shared {
				by[l.Name].shared++
			} else {
				by[l.Name].alone++
			}
		}
		if o.Line != nil {
			by[o.Line.Name].waiting++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		is := by[name]
		if is.alone > 1 || is.alone > 0 && is.shared > 0 || name == "pool" && is.shared > poolHolders {
			w.report("lock", "%d orders hold %s alone, and %d with others", is.alone, name, is.shared)
		}
		if listed := w.listed("lock-holders/" + name); listed != is.alone+is.shared {
			w.report("lock", "%d orders hold %s, and %d are listed", is.alone+is.shared, name, listed)
		}
		if listed := w.listed("lock-line/" + name); listed != is.waiting {
			w.report("lock", "%d orders wait for %s, and %d are in line", is.waiting, name, listed)
		}
		if is.waiting > 0 && is.alone > 0 {
			w.count("lock awaited")
		}
	}
}

// listed returns how many watched items a partition has.
func (w *orderWatch) listed(partition string) (n int) {
	for _, kind := range watched {
		for _, item := range w.items[kind] {
			if item.partition == partition {
				n++
			}
		}
	}
	return n
}

// checkNoLocks demands that nobody holds a lock or waits for one, and that nobody waits for an event.
func (w *orderWatch) checkNoLocks() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range []string{"lock-holders", "lock-line", "waits", "line"} {
		for _, item := range w.items[kind] {
			w.report("leak", "when all orders have ended, there is %s %s", item.partition, item.sort)
		}
	}
	for _, item := range w.items["lock"] {
		var l lockItem
		if err := json.Unmarshal([]byte(item.value), &l); err != nil || l.Alone || l.Shared != 0 || l.Waiting != 0 {
			w.report("leak", "when all orders have ended, %s is %s", item.partition, item.value)
		}
	}
}

// lockItem is a lock as it is stored.
type lockItem struct {
	Alone   bool `json:"a"`
	Shared  int  `json:"s"`
	Waiting int  `json:"w"`
}

// checkLockItems demands that the numbers of each lock are those of its lists.
func (w *orderWatch) checkLockItems() {
	for _, item := range w.items["lock"] {
		var l lockItem
		if err := json.Unmarshal([]byte(item.value), &l); err != nil {
			w.report("lock", "%s cannot be read: %v", item.partition, err)
		}
		held := l.Shared
		if l.Alone {
			held++
		}
		name := strings.TrimPrefix(item.partition, "lock/")
		if holders, line := w.listed("lock-holders/"+name), w.listed("lock-line/"+name); held != holders || l.Waiting != line {
			w.report("lock", "%s is %s, with %d holders and %d in line", name, item.value, holders, line)
		}
	}
}
