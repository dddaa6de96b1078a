package order_test

import (
	"encoding/json"
	"testing"

	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
)

// A step costs 24 write units at most, from its start to the next step, which its end adds; with variables that change too.
func TestAStepCostsNoMoreThanItsBudget(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]queue.Result{"success": ok, "variables": vars(`{"n":2,"said":"twenty characters..."}`)} {
		m := meter.New(shared{memory.New(memory.Options{})})
		b := open(t, m, chains(ab()))
		b.add(func(r *order.Request) { r.ID = "warm" }) // what is read or written once in a while is behind us
		b.step("A", ok)
		b.step("B", ok)
		b.add(func(r *order.Request) { r.Variables = json.RawMessage(`{"n":1,"file":"/in/2026-01-01/report.csv"}`) })
		m.Reset()
		b.step("A", result)
		if used := m.Usage().Total().WCU; used > 24 {
			t.Errorf("%s: a step costs %d write units, want at most 24", name, used)
		} else {
			t.Logf("%s: a step costs %d write units and %.1f read units", name, used, m.Usage().Total().RCU)
		}
	}
}

// A child of a fork costs 10 write units at most to make, 24 for its step with its end, and 3 to be counted.
func TestAForkCostsNoMoreThanItsBudget(t *testing.T) {
	t.Parallel()
	const children = 100
	m := meter.New(shared{memory.New(memory.Options{})})
	b := open(t, m, chains(each(nil)))
	if _, err := b.Add(t.Context(), nil, some(children)); err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		name   string
		budget int
		run    func()
	}{
		{"to make it", 10, b.sweep},
		{"its step", 24, func() {
			for range children {
				b.complete(b.claim(), ok)
			}
		}},
		{"to count it", 3, b.sweep},
	} {
		m.Reset()
		part.run()
		if used := m.Usage().Total().WCU; used > part.budget*children {
			t.Errorf("%s: a child costs %.1f write units, want at most %d", part.name, float64(used)/children, part.budget)
		}
	}
}
