package order_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
)

// acting are ways in which an order of asked gets into a state.
var acting = map[string]func(b *bench){
	"not planned": func(b *bench) { b.planned(); b.do(order.Act{Kind: order.Suspend}, nil) },
	"planned":     (*bench).planned,
	"due":         func(b *bench) { b.add(nil) },
	"in line":     func(b *bench) { b.add(func(r *order.Request) { r.ID = "0" }); b.add(nil) },
	"running":     func(b *bench) { b.add(nil); b.claim() },
	"set back":    func(b *bench) { b.add(func(r *order.Request) { r.Node = "B" }); b.step("B", failed) },
	"prompt":      func(b *bench) { b.add(func(r *order.Request) { r.Node = "P" }) },
	"suspended":   func(b *bench) { b.add(nil); b.step("A", ok); b.do(order.Act{Kind: order.Suspend}, nil) },
	"blacklisted": func(b *bench) {
		b.add(func(r *order.Request) { r.Node = "P" })
		b.do(order.Act{Kind: order.Suspend}, nil)
		b.do(order.Act{Kind: order.SetNode, Node: "good"}, nil)
	},
}

func (b *bench) planned() {
	b.add(func(r *order.Request) { r.RunAt = b.now.Add(time.Hour) })
}

// asked is a chain with a step, one that may be set back, and a prompt; one order at a time.
func asked() definition.JobChain {
	return definition.JobChain{Path: "/c", MaxOrders: 1, Nodes: []definition.Node{
		{ID: "A", Job: "/j", Error: "bad"}, {ID: "B", Job: "/back", OnError: definition.ErrorSetsBack, Error: "bad"},
		{ID: "P", Prompt: &definition.Prompt{Role: "operator", Default: "good"}}, {ID: "good"}, {ID: "bad"},
	}}
}

// Each act in each state is done, or is refused (-), or names a node that is not there (?); what is not done changes nothing.
func TestActsByState(t *testing.T) {
	acts := []struct {
		name string
		order.Act
	}{
		{"suspend", order.Act{Kind: order.Suspend}}, {"resume", order.Act{Kind: order.Resume}}, {"to A", order.Act{Kind: order.SetNode, Node: "A"}},
		{"to none", order.Act{Kind: order.SetNode, Node: "none"}}, {"skip", order.Act{Kind: order.Skip}}, {"reset", order.Act{Kind: order.Reset}},
		{"run-now", order.Act{Kind: order.RunNow}}, {"move", order.Act{Kind: order.Move}}, {"remove", order.Act{Kind: order.Remove}},
	}
	want := map[string]string{
		//             suspend resume toA none skip reset run-now move remove
		"not planned": "-      +      -   ?    +    +     -       -    +",
		"planned":     "+      -      -   ?    +    -     +       -    +",
		"due":         "+      -      -   ?    +    -     -       -    +",
		"in line":     "+      -      -   ?    +    -     -       -    +",
		"running":     "+      -      +   ?    -    +     -       -    +",
		"set back":    "+      -      +   ?    +    +     +       -    +",
		"prompt":      "+      -      +   ?    +    -     -       -    +",
		"suspended":   "-      +      +   ?    +    +     -       -    +",
		"blacklisted": "-      +      +   ?    -    +     -       -    +",
	}
	marks := map[string]error{"+": nil, "-": order.ErrState, "?": order.ErrNoNode}
	for state, row := range want {
		for i, mark := range strings.Fields(row) {
			t.Run(state+"/"+acts[i].name, func(t *testing.T) {
				onBoth(t, chains(asked()), func(t *testing.T, b *bench) {
					acting[state](b)
					b.events()
					before, err := b.Get(t.Context(), "/c", "1")
					if err != nil {
						t.Fatal(err)
					}
					b.do(acts[i].Act, marks[mark])
					b.agree()
					if mark == "+" {
						return
					}
					after, err := b.Get(t.Context(), "/c", "1")
					if diff := cmp.Diff(before, after); diff != "" || err != nil {
						t.Errorf("it was refused, and has changed the order (%v):\n%s", err, diff)
					}
				})
			})
		}
	}
}
