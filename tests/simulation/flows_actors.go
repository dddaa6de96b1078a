package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
)

// The event for which orders wait.
const (
	parcel  = "Simulated"
	parcels = "/parcels/"
)

// starter starts an actor that adds orders.
func (r *flowRun) starter(name string, at int) {
	c := r.caller(name, at)
	chains := r.defs.chains()
	r.busy.Go(func() {
		for n := range r.plan.requests {
			c.meet(r.plan.think)
			request := order.Request{Chain: chains[c.luck.IntN(len(chains))], ID: fmt.Sprintf("%s-%d", c.name, n)}
			if c.chance(20) {
				request.ID, request.Replace = "same", c.chance(50)
			}
			list := []string{`[]`, `["x"]`, `[1,2,3]`, `["a","b","c","d","e"]`, `"no list"`}[c.luck.IntN(5)]
			c.ask(asked{what: "add", path: request.Chain + "," + request.ID, replace: request.Replace}, func(m *mover, q *asked) error {
				request.Variables = fmt.Appendf(nil, `{"n":%q,"list":%s}`, q.label, list)
				_, err := m.orders.Add(journal.WithActor(r.ctx, q.label), nil, request)
				return err
			})
		}
	})
}

// answerer starts an actor that answers prompts.
func (r *flowRun) answerer(name string, at int) {
	c := r.caller(name, at)
	r.upkeep.Go(func() {
		for !r.is(&r.over) {
			c.rest(2 * r.plan.think)
			path := r.watch.anyAt(c.luck.IntN, "ask", "choose")
			if path == "" {
				continue
			}
			for range 1 + c.luck.IntN(2) {
				c.answer(path, []string{"yes", "yes", "no", "again", "go"}[c.luck.IntN(5)])
			}
		}
	})
}

func (c *caller) answer(path, answer string) {
	chain, id := order.Split(path)
	c.ask(asked{what: "answer", path: path}, func(m *mover, q *asked) error {
		return m.orders.Answer(journal.WithActor(c.run.ctx, q.label), chain, id, order.Answer{Answer: answer, May: func(string) bool { return true }})
	})
}

// carrier starts an actor that emits events for which orders wait, and others.
func (r *flowRun) carrier(name string, at int) {
	c := r.caller(name, at)
	r.upkeep.Go(func() {
		for n := 0; !r.is(&r.over); n++ {
			c.rest(2 * r.plan.think)
			path := r.watch.anyAt(c.luck.IntN, "event")
			if path == "" || c.chance(20) {
				path = waitChain + ",none"
			}
			m := c.home.now()
			_, err := m.journal.Emit(r.ctx, []event.Event{delivery(path, fmt.Sprintf("%s-%d", c.name, n))}, nil)
			c.part()
			r.note("%s: parcel for %s: %v", c.name, path, err)
		}
	})
}

// delivery returns the event for which an order waits.
func delivery(path, label string) event.Event {
	_, id := order.Split(path)
	return labelled(label, parcels+"p", fmt.Sprintf(`,"order":%q`, id))
}

// matcher starts an actor that lets orders go on whose events have happened.
func (r *flowRun) matcher(name string, at int) {
	c := r.caller(name, at)
	r.upkeep.Go(func() {
		for !r.is(&r.over) {
			c.rest(3 * r.plan.think)
			r.notBusy("match", c.home.now().orders.Match(r.ctx))
			c.part()
		}
	})
}

// chief starts an actor that acts on many orders at once, and stops and resumes such acts.
func (r *flowRun) chief(name string, at int) {
	c := r.caller(name, at)
	r.busy.Go(func() {
		for range r.plan.requests {
			c.rest(2 * r.plan.think)
			a := act{kind: []order.ActKind{order.Suspend, order.Resume, order.Resume}[c.luck.IntN(3)]}
			filter := order.Filter{Paths: event.AllPaths()}
			if a.kind == order.Resume && c.chance(70) {
				filter.Obstacle = "Suspended"
			} else if c.chance(30) {
				filter.State = projection.Due
			}
			c.ask(asked{what: "act on many", path: string(a.kind)}, func(m *mover, q *asked) error {
				a.label = q.label
				b, err := m.orders.ActOnAll(journal.WithActor(r.ctx, q.label), nil, order.Act{Kind: a.kind}, filter)
				a.id = b.ID
				return err
			})
			r.mu.Lock()
			r.acts = append(r.acts, a)
			known := r.acts[c.luck.IntN(len(r.acts))].id
			r.mu.Unlock()
			c.interrupt(known)
		}
	})
}

// interrupt stops an act on many, and resumes it, most often.
func (c *caller) interrupt(id string) {
	if id == "" || c.chance(50) {
		return
	}
	for _, call := range []func(m *mover) error{
		func(m *mover) error { return m.orders.StopBulk(c.run.ctx, id) },
		func(m *mover) error { return m.orders.ResumeBulk(c.run.ctx, id) },
	} {
		err := call(c.home.now())
		c.part()
		c.run.note("%s: act %s stopped or resumed: %v", c.name, id, err)
		if err == nil {
			c.run.count("act interrupted")
		}
		c.rest(c.run.plan.think)
		if c.chance(20) {
			return
		}
	}
}

// helpOut does what persons and the world do: it answers prompts, and brings what orders wait for.
func (r *flowRun) helpOut(m *mover) {
	for _, path := range r.watch.at("ask", "choose") {
		chain, id := order.Split(path)
		answer := order.Answer{Answer: map[string]string{waitChain: "yes", loopChain: "go"}[chain], May: func(string) bool { return true }}
		if err := m.orders.Answer(r.ctx, chain, id, answer); err != nil && !errors.Is(err, order.ErrState) {
			r.report("liveness", "%s cannot be answered when all is quiet: %v", path, err)
		}
	}
	for _, path := range r.watch.at("event") {
		if _, err := m.journal.Emit(r.ctx, []event.Event{delivery(path, "last")}, nil); err != nil {
			r.report("liveness", "an event cannot be emitted when all is quiet: %v", err)
		}
	}
	if err := m.orders.Match(r.ctx); err != nil {
		r.report("liveness", "waits cannot be matched when all is quiet: %v", err)
	}
}

// endActs waits until whoever died during an act on many does not keep it any more, and lets all of them come to their ends.
func (r *flowRun) endActs() {
	time.Sleep(40 * time.Second)
	m := r.homes[0].now()
	for _, a := range r.acts {
		if a.id == "" {
			continue
		}
		if err := m.orders.ResumeBulk(r.ctx, a.id); err != nil && !errors.Is(err, order.ErrState) && !errors.Is(err, order.ErrNoBulk) {
			r.report("liveness", "an act on many cannot be resumed when all is quiet: %v", err)
		}
	}
}
