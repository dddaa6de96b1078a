package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// caller is an actor of a run with orders.
type caller struct {
	*actor
	run  *orderRun
	home *home[*mover]
}

// asked is one call that changes orders, and what became of it. Its label is the actor of its events.
type asked struct {
	label        string
	what         string // "add", "chain", "start" or the kind of an act
	path         string
	node         string // of set-node
	replace      bool
	outcome      Outcome
	replayed     bool
	key          string // idempotency key
	began, ended time.Time
	err          error
}

// ask makes a call under a label of its own, and records what became of it.
func (c *caller) ask(q asked, call func(m *mover, q *asked) error) {
	c.run.mu.Lock()
	c.run.labels++
	q.label = fmt.Sprintf("%s-%d", c.name, c.run.labels)
	c.run.mu.Unlock()
	m := c.home.now()
	q.began = time.Now()
	q.err = call(m, &q)
	c.part()
	q.ended, q.outcome = time.Now(), judge(m.engine, q.err)
	if errors.Is(q.err, store.ErrUnknown) {
		q.outcome = Unknown
	}
	c.run.note("%s: %s %s %s: %v %v", q.label, q.what, q.path, q.node, q.outcome, q.err)
	c.run.count(q.what + " " + q.outcome.String())
	c.run.notBusy(q.what, q.err)
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	c.run.asked = append(c.run.asked, q)
}

// adder starts an actor that adds orders.
func (r *orderRun) adder(name string, at int) {
	c := r.caller(name, at)
	r.busy.Go(func() {
		for n := range r.plan.requests {
			c.meet(r.plan.think)
			c.add(n)
		}
	})
}

// add adds an order. Some have an id that others have too; some are added with an idempotency key, again and again.
func (c *caller) add(n int) {
	request := order.Request{Chain: chainPaths[c.luck.IntN(len(chainPaths))], ID: fmt.Sprintf("%s-%d", c.name, n)}
	if c.chance(40) {
		request.ID = fmt.Sprint("same", c.luck.IntN(3))
	}
	request.Replace = c.chance(40)
	request.Priority = int64(c.luck.IntN(2))
	if c.chance(25) {
		request.RunAt = time.Now().Add(time.Duration(c.luck.Int64N(int64(longestWait))))
	}
	if request.Chain != otherChain && c.chance(15) {
		request.Node = "B"
	}
	end := ""
	if c.chance(15) {
		end = "B"
	}
	request.EndNode = end
	var once *journal.Idempotency
	tries := 1
	if c.chance(25) {
		request.ID = fmt.Sprint("once", n)
		request.Chain, request.Node, request.EndNode, request.Replace, request.RunAt = lineChain, "", "", false, time.Time{}
		once, tries = &journal.Idempotency{Scope: "s", Key: fmt.Sprint("order", n), Fingerprint: [32]byte{2}}, 3
		end = ""
	}
	for range tries {
		q := asked{what: "add", path: request.Chain + "," + request.ID, replace: request.Replace}
		if once != nil {
			q.key = once.Key
		}
		c.ask(q, func(m *mover, q *asked) error {
			r := request
			r.Variables = fmt.Appendf(nil, `{"n":%q,"end":%q}`, q.label, end)
			added, err := m.orders.Add(journal.WithActor(c.run.ctx, q.label), once, r)
			q.replayed = added.Replayed
			return err
		})
	}
}

// stepper starts an actor that runs steps until the adders have ended.
func (r *orderRun) stepper(name string, at int) {
	c := r.caller(name, at)
	r.upkeep.Go(func() {
		for !r.is(&r.over) {
			c.meet(r.plan.think)
			c.steps(1 + c.luck.IntN(3))
		}
	})
}

func (c *caller) steps(most int) {
	m := c.home.now()
	leases, err := m.Claim(c.run.ctx, queue.Claimer{Instance: c.name}, most)
	c.part()
	if m.crashed() {
		return
	}
	c.run.notBusy("claim", err)
	for _, l := range leases {
		c.run.count("started")
		c.step(l)
	}
}

// step runs a step: it ends well or not, with or without variables, too late, or not at all.
func (c *caller) step(l queue.Lease) {
	if c.chance(10) {
		c.run.count("forgotten")
		return
	}
	c.rest(leaseLength / 3)
	if c.chance(10) {
		c.run.count("late")
		c.rest(3 * leaseLength)
	}
	if len(c.run.homes) > 1 && c.chance(30) {
		c = &caller{actor: c.actor, run: c.run, home: c.run.homes[c.luck.IntN(len(c.run.homes))]}
	}
	m := c.home.now()
	result := queue.Result{Outcome: queue.OK}
	if c.chance(40) {
		result = queue.Result{Outcome: queue.Failed, Code: []int{0, 1, 5, 7, 9}[c.luck.IntN(5)]}
	}
	if c.chance(40) {
		result.Variables = fmt.Appendf(nil, `{"step":%d}`, c.luck.IntN(1000))
	}
	if c.chance(5) {
		result.Variables = json.RawMessage(`{"wrong":null}`)
	}
	var err error
	var leases []queue.Lease
	if c.chance(40) {
		_, leases, err = m.CompleteAndClaim(c.run.ctx, l.Token, result, queue.Claimer{Instance: c.name}, 1)
	} else {
		_, err = m.Complete(c.run.ctx, l.Token, result)
	}
	c.part()
	c.run.note("%s: step of %s at %s ended as %s %d: %v", c.name, l.Task.Order.Path(), l.Task.Order.Node, result.Outcome, result.Code, err)
	if m.crashed() {
		return
	}
	c.run.notBusy("complete", err)
	for _, l := range leases {
		c.step(l)
	}
}

// repairer starts an actor that acts on orders.
func (r *orderRun) repairer(name string, at int) {
	c := r.caller(name, at)
	r.busy.Go(func() {
		for range 2 * r.plan.requests {
			c.meet(r.plan.think)
			c.repair()
		}
	})
}

var actKinds = []order.ActKind{
	order.Suspend, order.Suspend, order.Resume, order.Resume, order.Resume, order.SetNode, order.Skip, order.Reset, order.RunNow, order.Remove,
}

// repair does something with an order, most often one that is there.
func (c *caller) repair() {
	path := c.run.watch.any(c.luck.IntN)
	if path == "" || c.chance(3) {
		path = lineChain + ",none"
	}
	act := order.Act{Kind: actKinds[c.luck.IntN(len(actKinds))]}
	if act.Kind == order.SetNode {
		nodes := c.run.defs.nodes()
		act.Node = nodes[c.luck.IntN(len(nodes))]
	}
	marked := act.Kind == order.Resume && c.chance(40)
	chain, id := order.Split(path)
	c.ask(asked{what: string(act.Kind), path: path, node: act.Node}, func(m *mover, q *asked) error {
		if marked {
			act.Variables = fmt.Appendf(nil, `{"by":%q}`, q.label)
		}
		return m.orders.Act(journal.WithActor(c.run.ctx, q.label), chain, id, act)
	})
}

// foreman starts an actor that stops and starts chains, sets the actions of nodes, stops tasks, and changes the definitions, in so many
// percent of its turns.
func (r *orderRun) foreman(name string, at, busy int) {
	c := r.caller(name, at)
	r.busy.Go(func() {
		for range r.plan.requests {
			c.rest(2 * r.plan.think)
			chains, nodes := r.defs.chains(), r.defs.nodes()
			chain := chains[c.luck.IntN(len(chains))]
			if !c.chance(busy) {
				continue
			}
			switch n := c.luck.IntN(100); {
			case n < 15:
				r.defs.change()
				r.count("redefined")
			case n < 45:
				stop := c.chance(50)
				c.ask(asked{what: "chain", path: chain}, func(m *mover, q *asked) error {
					return m.orders.StopChain(journal.WithActor(r.ctx, q.label), chain, stop)
				})
			case n < 80:
				node, action := nodes[c.luck.IntN(len(nodes))], order.Actions[c.luck.IntN(len(order.Actions))]
				c.ask(asked{what: "chain", path: chain, node: node}, func(m *mover, q *asked) error {
					return m.orders.SetAction(journal.WithActor(r.ctx, q.label), chain, node, action)
				})
			default:
				if id := r.watch.anyTask(c.luck.IntN); id != "" {
					_, err := c.home.now().Stop(r.ctx, id)
					c.part()
					r.note("%s: stop %s: %v", c.name, id, err)
					r.count("stopped")
				}
			}
		}
	})
}

// planner starts an actor that plans starts of a permanent order, as a schedule does.
func (r *orderRun) planner(name string, at int) {
	c := r.caller(name, at)
	r.busy.Go(func() {
		for range r.plan.requests {
			c.rest(2 * r.plan.think)
			at := time.Now().Add(time.Duration(c.luck.Int64N(int64(time.Second))) - 200*time.Millisecond)
			for range 1 + c.luck.IntN(2) {
				c.ask(asked{what: "start", path: otherChain + ",timed"}, func(m *mover, q *asked) error {
					_, err := m.orders.Start(journal.WithActor(r.ctx, q.label), nil, otherChain, "timed", at)
					return err
				})
			}
			if c.chance(10) {
				c.ask(asked{what: "unstart", path: otherChain + ",timed"}, func(m *mover, q *asked) error {
					return m.orders.Unstart(journal.WithActor(r.ctx, q.label), otherChain, "timed", time.Now())
				})
			}
		}
	})
}

// keeper starts an actor that sweeps orders and tasks.
func (r *orderRun) keeper(name string, at int) {
	c := r.caller(name, at)
	r.upkeep.Go(func() {
		for !r.is(&r.over) {
			c.rest(4 * r.plan.think)
			m := c.home.now()
			r.notBusy("sweep of "+r.moves, m.orders.Sweep(r.ctx))
			c.part()
			swept, err := m.Sweep(r.ctx)
			r.notBusy("sweep", err)
			for range swept.Lost {
				r.count("lost")
			}
			_, err = m.Promote(r.ctx)
			r.notBusy("promote", err)
			c.part()
		}
	})
}

// release starts all chains, and has all nodes process.
func (r *orderRun) release() {
	m := r.homes[0].now()
	for _, chain := range r.defs.chains() {
		if err := m.orders.StopChain(r.ctx, chain, false); err != nil && !errors.Is(err, order.ErrState) {
			r.report("liveness", "a chain cannot be started when all is quiet: %v", err)
		}
		for _, node := range r.defs.nodes() {
			err := m.orders.SetAction(r.ctx, chain, node, definition.ActionProcess)
			if err != nil && !errors.Is(err, order.ErrState) && !errors.Is(err, order.ErrNoNode) {
				r.report("liveness", "a node cannot be started when all is quiet: %v", err)
			}
		}
	}
}
