package order_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// Three processes move orders that want locks over a bad network, and others suspend and send them elsewhere. In the end all locks are
// free.
func TestLocksOverABadNetwork(t *testing.T) {
	overABadNetwork(t, 30*time.Millisecond, locksOverABadNetwork)
}

func locksOverABadNetwork(t *testing.T, n network) {
	chain := ab()
	chain.MaxOrders = 5
	chain.Nodes[0].Locks = []definition.NodeLock{{Name: "b"}, {Name: "a", Shared: true}}
	chain.Nodes[1].Locks = []definition.NodeLock{{Name: "a"}}
	set := chains(chain)
	set.Locks = []definition.Lock{{Name: "a", MaxShared: 2}, {Name: "b"}}
	b := n.walk(t, set, 20)
	b.exclusive()
	for _, name := range []string{"a", "b"} {
		for _, partition := range []string{"lock/", "lock-holders/", "lock-line/"} {
			for item, err := range store.All(context.Background(), n.base, store.Range{Table: store.Work, Partition: partition + name}) {
				if err != nil {
					t.Fatal(err)
				}
				var l struct{ A, S, W int }
				if partition != "lock/" || json.Unmarshal(item.Value, &l) != nil || l.S != 0 || l.W != 0 {
					t.Errorf("%s%s: %s is left", partition, name, item.Value)
				}
			}
		}
	}
}

// exclusive checks that a step at A, or at B, never ran beside another.
func (b *bench) exclusive() {
	b.t.Helper()
	all, err := b.journal.ReadAfter(b.t.Context(), journal.Request{Limit: 100_000})
	if err != nil {
		b.t.Fatal(err)
	}
	running := ""
	for i := range all.Events {
		e := &all.Events[i]
		switch e.Type {
		case "OrderStepStarted":
			if running != "" {
				b.t.Errorf("%s begins a step while %s runs one", e.Key.Path, running)
			}
			running = e.Key.Path
		case "OrderStepEnded":
			running = ""
		}
	}
}
