package order_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// combos makes chains of everything that an order may meet, and does everything with their orders, all by its seed.
type combos struct {
	*rand.Rand
	*bench
	nodes int
	log   []string
}

func pick[T any](c *combos, all ...T) T { return all[c.IntN(len(all))] }

func (c *combos) locks() (locks []definition.NodeLock) {
	for _, name := range []string{"a", "b", "db"} {
		if c.IntN(3) == 0 {
			locks = append(locks, definition.NodeLock{Name: name, Shared: c.IntN(2) == 0})
		}
	}
	return locks
}

// node returns any node, which has no further forks below if depth is 0.
func (c *combos) node(depth int) definition.Node {
	c.nodes++
	n := definition.Node{ID: fmt.Sprint("N", c.nodes)}
	switch kind := c.IntN(12); {
	case kind < 5 || kind < 8 && depth == 0:
		n.Job, n.Locks = pick(c, "/j", "/again", "/back"), c.locks()
		n.OnError = pick(c, "", "", definition.ErrorSetsBack, definition.ErrorSuspends)
	case kind < 7:
		n.Fork = &definition.Fork{Branches: map[string][]definition.Node{}}
		for i := range 1 + c.IntN(5) {
			n.Fork.Branches[fmt.Sprint("b", i)] = c.list(depth - 1)
		}
	case kind == 7:
		n.Fork = &definition.Fork{Each: "list", Job: "/j"}
	case kind == 8:
		n.Prompt = &definition.Prompt{Role: "operator", Answers: map[string]string{}}
		return n
	default:
		n.Wait = pick(c, &definition.Wait{Event: "X"}, &definition.Wait{Event: "Y", Timeout: time.Hour},
			&definition.Wait{Until: "2026-01-01T01:00:00Z"}, &definition.Wait{For: time.Minute})
	}
	if n.Fork != nil {
		n.Fork.OnFailed = pick(c, definition.FailedWaits, definition.FailedCancels)
		n.Join = pick(c, nil, &definition.Join{AtLeast: 1})
	}
	return n
}

func (c *combos) list(depth int) (nodes []definition.Node) {
	for range 1 + c.IntN(3) {
		nodes = append(nodes, c.node(depth))
	}
	for i := range nodes {
		if p := nodes[i].Prompt; p != nil && i+1 == len(nodes) {
			nodes[i] = definition.Node{ID: nodes[i].ID, Job: "/j"}
		} else if p != nil {
			p.Answers["yes"] = nodes[i+1].ID
		}
	}
	return nodes
}

func (c *combos) set() *definition.Set {
	chain := func(path string) definition.JobChain {
		nodes := append(c.list(2), definition.Node{ID: "good"}, definition.Node{ID: "bad"})
		for i := range nodes[:len(nodes)-2] {
			if n := &nodes[i]; n.Prompt == nil && n.OnError == "" {
				n.Error = pick(c, "", "bad", nodes[0].ID)
			}
		}
		return definition.JobChain{Path: path, MaxOrders: pick(c, 0, 1, 2), MaxVisits: 20, Nodes: nodes}
	}
	set := chains(chain("/c"), chain("/d"))
	inner := chain("/inner")
	set.JobChains = append(set.JobChains, inner)
	set.JobChains[1].Nodes = append([]definition.Node{{ID: "O", Chain: "/inner"}}, set.JobChains[1].Nodes...)
	set.Locks = []definition.Lock{{Name: "a"}, {Name: "b"}, {Name: "db", MaxShared: 2}}
	return set
}

// may fails the test unless an act was done, or refused for a reason.
func (c *combos) may(what string, err error) {
	c.t.Helper()
	c.log = append(c.log, what)
	for _, refusal := range []error{nil, order.ErrState, order.ErrNoOrder, order.ErrNoNode, order.ErrExists, queue.ErrFinished} {
		if errors.Is(err, refusal) {
			return
		}
	}
	c.t.Fatalf("%s: %v\nafter %q", what, err, c.log)
}

// anything does something.
func (c *combos) anything() {
	ctx := c.t.Context()
	path := "/c,1"
	if all := c.orders(); len(all) > 0 {
		path = pick(c, all...)
	}
	chain, id := order.Split(path)
	g, err := c.declared.set.Graph(chain)
	if err != nil {
		c.t.Fatal(err)
	}
	node := pick(c, g.Nodes...).ID
	switch c.IntN(16) {
	case 0, 1, 2:
		r := order.Request{Chain: pick(c, "/c", "/c", "/d"), ID: fmt.Sprint(c.IntN(12)), Replace: c.IntN(3) == 0}
		r.Variables = json.RawMessage(pick(c, `{}`, `{"list":[]}`, `{"list":[1,2,3,4,5,6]}`))
		_, err := c.Add(ctx, nil, r)
		c.may(fmt.Sprint("add ", r.Chain, ",", r.ID, " ", r.Replace, string(r.Variables)), err)
	case 3, 4, 5, 6:
		for range 1 + c.IntN(4) {
			c.stepOf(pick(c, ok, ok, failed))
		}
	case 7:
		c.now = c.now.Add(pick(c, time.Second, time.Minute, time.Hour))
	case 8:
		c.emit(pick(c, "X", "Y"), "k", "")
		c.may("match", c.Match(ctx))
	case 9:
		c.may("action", c.SetAction(ctx, chain, node, pick(c, order.Actions...)))
	case 10:
		c.may("stop", c.StopChain(ctx, chain, c.IntN(2) == 0))
	case 11, 12:
		a := order.Act{Kind: pick(c, order.Suspend, order.Resume, order.SetNode, order.Skip, order.Reset, order.RunNow, order.Remove), Node: node}
		c.may(fmt.Sprintf("%s %s %s", a.Kind, path, node), c.Act(ctx, chain, id, a))
	case 13:
		_, err := c.Start(ctx, nil, pick(c, "/c", "/d"), "p", c.now.Add(pick(c, 0, time.Minute, time.Hour)))
		c.may("plan", err)
	case 14:
		c.may("unplan", c.Unstart(ctx, pick(c, "/c", "/d"), "p", c.now))
	}
	c.may("sweep", c.Sweep(ctx))
}

// stepOf ends a step, if one can be started.
func (c *combos) stepOf(r queue.Result) (any bool) {
	l := c.claim()
	if l == nil {
		return false
	}
	_, err := c.queue.Complete(c.t.Context(), l.Token, r)
	c.may(fmt.Sprintf("%s %s %s", r.Outcome, l.Task.Order.Path(), l.Task.Order.Node), err)
	return true
}

// allEnd lets all orders go on, and demands that they end.
func (c *combos) allEnd() {
	ctx := c.t.Context()
	for i := range c.declared.set.JobChains {
		chain := c.declared.set.JobChains[i].Path
		c.may("start", c.StopChain(ctx, chain, false))
		g, _ := c.declared.set.Graph(chain)
		for _, n := range g.Nodes {
			c.may("action", c.SetAction(ctx, chain, n.ID, definition.ActionProcess))
		}
	}
	for _, chain := range []string{"/c", "/d"} {
		c.may("remove", c.Act(ctx, chain, "p", order.Act{Kind: order.Remove}))
	}
	resume := order.Act{Kind: order.Resume, Variables: json.RawMessage(`{"list":[1]}`)}
	for round := 0; len(c.orders()) > 0 && round < 500; round++ {
		c.now = c.now.Add(time.Hour)
		c.emit("X", "k", "")
		c.emit("Y", "k", "")
		c.may("match", c.Match(ctx))
		c.may("sweep", c.Sweep(ctx))
		for c.stepOf(ok) {
			c.may("sweep", c.Sweep(ctx))
		}
		for _, path := range c.orders() {
			chain, id := order.Split(path)
			c.may("resume "+path, c.Act(ctx, chain, id, resume))
			yes := order.Answer{Answer: "yes", May: func(string) bool { return true }}
			c.may("answer "+path, c.Answer(ctx, chain, id, yes))
		}
	}
	c.now = c.now.Add(time.Minute)
	c.may("sweep", c.Sweep(ctx))
	for _, path := range c.orders() {
		chain, id := order.Split(path)
		o, err := c.Get(ctx, chain, id)
		why, _ := c.Why(ctx, chain, id)
		c.t.Errorf("left: %+v, %v: %s", o, err, why.Reason)
	}
	c.free("a", "b", "db")
	c.agree()
	for _, chain := range []string{"/c", "/d"} {
		items, err := c.store.Get(ctx, store.Key{Table: store.Work, Partition: "places/" + chain, Sort: "-"})
		if err != nil {
			c.t.Fatal(err)
		}
		if items[0] != nil && string(items[0].Value) != `{"t":0}` {
			c.t.Errorf("places of %s: %s", chain, items[0].Value)
		}
	}
	if c.nothingLeft(); c.t.Failed() {
		c.t.Logf("after %q", c.log)
	}
}

// TestCombosOfEverythingEnd: whatever orders with forks, locks, places, waits and nested chains meet, and whatever is done with
// them, no write is refused, and all end.
func TestCombosOfEverythingEnd(t *testing.T) {
	seeds := 30
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := &combos{Rand: rand.New(rand.NewPCG(uint64(seed), 1))}
			onBoth(t, c.set(), func(t *testing.T, b *bench) {
				c := &combos{Rand: rand.New(rand.NewPCG(uint64(seed), 2)), bench: b}
				for range 80 {
					c.anything()
				}
				c.allEnd()
			})
		})
	}
}
