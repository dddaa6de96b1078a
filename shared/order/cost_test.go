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
