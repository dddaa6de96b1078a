package order_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
)

// Orders in line that end as soon as they get a place hand it on to the next at once, however many there are.
func TestALineOfOrdersThatEndAtOnce(t *testing.T) {
	const orders = 200
	one := func(n definition.Node) definition.JobChain {
		n.Next = "end"
		return definition.JobChain{Path: "/c", Nodes: []definition.Node{n, {ID: "end"}}}
	}
	for name, line := range map[string]struct {
		chain definition.JobChain
		first string       // variables of the first orders, which keep their places for a while
		until func(*bench) // these go on
	}{
		"next_state": {one(definition.Node{ID: "A", Job: "/j"}), `{}`, func(b *bench) {
			all := b.running()
			if err := b.SetAction(b.t.Context(), "/c", "A", definition.ActionNextState); err != nil {
				b.t.Error(err)
			}
			for _, l := range all {
				b.complete(l, ok)
			}
		}},
		"a time that is past": {
			one(definition.Node{ID: "W", Wait: &definition.Wait{Until: "2026-01-01T01:00:00Z"}}), `{}`,
			func(b *bench) { b.now = b.now.Add(time.Hour) },
		},
		"an empty list": {
			one(definition.Node{ID: "F", Fork: &definition.Fork{Each: "list", Job: "/j"}}), `{"list":[1]}`,
			func(b *bench) {
				for _, l := range b.running() {
					b.complete(l, ok)
				}
			},
		},
	} {
		for _, most := range []int{1, 3} {
			t.Run(fmt.Sprint(name, " ", most), func(t *testing.T) {
				line.chain.MaxOrders = most
				onBoth(t, chains(line.chain), func(t *testing.T, b *bench) {
					for i := range orders {
						variables := `{"list":[]}`
						if i < most {
							variables = line.first
						}
						b.add(func(r *order.Request) { r.ID, r.Variables = fmt.Sprint(i), json.RawMessage(variables) })
					}
					b.sweep()
					line.until(b)
					b.sweep()
					for i := range orders {
						b.absent(fmt.Sprint(i))
					}
					b.now = b.now.Add(time.Minute)
					b.sweep()
					b.nothingLeft()
				})
			})
		}
	}
}
