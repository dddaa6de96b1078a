package simulation

import (
	"strings"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// checkLimits demands that no more tasks run than each limit allows.
func (l *ledger) checkLimits() {
	running := map[string]int{}
	for _, uuid := range l.order {
		t := &l.now(uuid).task
		if t.State != task.Running {
			continue
		}
		l.runs(running, "queue", t.Queue, limits[t.Queue])
		if c := t.Concurrency; c != nil {
			l.runs(running, "key", c.Key, c.Limit)
		}
		if strings.HasSuffix(t.Instance, roomy) {
			l.runs(running, "instance", t.Instance, room)
		}
	}
}

// runs counts one more task that runs under a limit; a limit of 0 is none.
func (l *ledger) runs(running map[string]int, kind, name string, limit int) {
	running[kind+name]++
	switch n := running[kind+name]; {
	case limit == 0:
	case n > limit:
		l.report("limit", "%d tasks of the %s %s run, %d may", n, kind, name, limit)
	case n == limit:
		l.count("full " + kind)
	}
}

// checkPlaces demands that each place of a limit that is taken belongs to a lease, and that each lease's places are taken,
// whichever process dies between any two calls.
func (l *ledger) checkPlaces() {
	taken, wanted := 0, 0
	for key, item := range l.items {
		switch kind, _, _ := strings.Cut(key.Partition, "/"); kind {
		case "permit":
			taken++
			token, _, _ := strings.Cut(string(item.Value), " ") // the mark of a claim with a key follows
			if !l.holds(token) {
				l.report("leak", "the place %s %s is of a lease that is over", key.Partition, key.Sort)
			}
		case "task":
			if lease, _ := l.leaseOf(&item); lease != nil {
				wanted += len(lease.Slots)
			}
		}
	}
	if taken != wanted {
		l.report("leak", "%d places are taken, and leases have %d", taken, wanted)
	}
}

// holds reports whether a lease with that token is held.
func (l *ledger) holds(token string) bool {
	uuid, _, _ := strings.Cut(token, ".")
	item, there := l.items[layout.TaskKey(uuid)]
	if !there {
		return false
	}
	_, held := l.leaseOf(&item)
	return held == token
}

// leaseOf returns the lease of a task's item, as it was changed last, and its token; nil if the task does not run.
func (l *ledger) leaseOf(item *store.Item) (lease *layout.Lease, token string) {
	var t layout.Started
	if err := layout.Decode(item, &t); err != nil {
		l.report("leak", "a task cannot be read: %v", err)
	}
	given, runs := t.AsGiven()
	if !runs {
		return nil, ""
	}
	if changed, there := l.items[layout.LeaseKey(t.Lease)]; there {
		if err := layout.Decode(&changed, &given); err != nil {
			l.report("leak", "a lease cannot be read: %v", err)
		}
	}
	return &given, t.Lease
}
