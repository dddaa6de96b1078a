package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/faulty"
	"github.com/millrace/millrace/shared/task"
)

// RunExchanges runs the task engine with instances that get their tasks by exchanges, go from process to process, and repeat an exchange until
// they have its response, while some of them are drained. It checks "told" and "drained" beside what RunEngine checks. As with RunInstances, a run
// is not a function of its seed alone.
func RunExchanges(t *testing.T, seed uint64, trace func(string)) Report {
	t.Helper()
	return simulate(t, seed, trace, func(d *deployment) {
		r := &exchangeRun{engineRun: newEngineRun(d, drawExchanges(seed), declare()), desks: map[*engine]*desk{}, drained: map[string]draining{}}
		r.homes = newHomes(d, r.plan.processes, r.open)
		r.play()
		r.homes.settle()
		time.Sleep(settling)
		r.drain()
		r.homes.close()
		r.verify()
		r.happened["tasks"] = len(r.ledger.order)
	})
}

// drawExchanges returns the plan of a seed. In one run of two the store is quick and has no faults, and many tasks go to who waits; in the others
// processes crash less often than elsewhere, since an instance would hardly come to exchange anything.
func drawExchanges(seed uint64) enginePlan {
	p := drawFaults(seed)
	p.alone, p.heap, p.skew, p.processes = false, false, 0, 2
	if p.faults.Crash /= 2; dice(seed, "exchanges").IntN(2) == 0 {
		way := faulty.Spread{Min: 200 * time.Microsecond, Max: time.Millisecond}
		p.faults = faulty.Faults{Seed: seed, There: way, Back: way}
	}
	return p
}

// exchangeRun is a run with instances that exchange.
type exchangeRun struct {
	*engineRun
	over chan struct{} // closed when nothing is added any more

	desksMu sync.Mutex
	desks   map[*engine]*desk
	drained map[string]draining // by instance; guarded by the deployment's mutex
}

// desk is what a process has beside its queue to serve exchanges.
type desk struct {
	*exchanges.Exchanges
	members *membership.Membership
	of      *engine
}

// draining is when an instance was drained, and by which process.
type draining struct {
	at time.Time
	by *engine
}

// at returns the desk of the process that runs in a home.
func (r *exchangeRun) at(h *home[*engine]) *desk {
	e := h.now()
	r.desksMu.Lock()
	defer r.desksMu.Unlock()
	if r.desks[e] == nil {
		s := r.storeOf(e.line)
		m := membership.Open(membership.Options{Store: s, Now: time.Now})
		r.desks[e] = &desk{exchanges.Open(exchanges.Options{Store: s, Members: m, Queue: e.Queue}), m, e}
	}
	return r.desks[e]
}

func (r *exchangeRun) play() {
	r.over = make(chan struct{})
	var producers, others sync.WaitGroup
	for i := range 2 {
		a := r.actor(fmt.Sprintf("adds%d", i), i)
		producers.Go(func() { r.add(a) })
	}
	for i := range 3 {
		a := r.actor(fmt.Sprintf("works%d", i), i)
		others.Go(func() { r.work(a) })
	}
	a := r.actor("drains", 1)
	others.Go(func() { r.drains(a) })
	r.caretaker("sweep", 0)
	producers.Wait()
	time.Sleep(time.Second)
	close(r.over)
	others.Wait()
	r.mark(&r.engineRun.over)
	r.upkeep.Wait()
}

// add adds tasks, most of them one by one.
func (r *exchangeRun) add(a *actor) {
	for n := range 40 {
		a.rest(120 * time.Millisecond)
		news := make([]queue.New, 1+a.luck.IntN(8)/7)
		for i := range news {
			job := []string{"/far/wide", "/far/main"}[a.luck.IntN(2)]
			news[i] = queue.New{Dialect: task.Job, Job: job, Payload: fmt.Appendf(nil, `"%s-%d-%d"`, a.name, n, i)}
		}
		_, _ = a.home.now().Enqueue(r.ctx, nil, news...) // the ledger sees what is there
		a.part()
	}
}

// drains drains an instance now and then, as the API does.
func (r *exchangeRun) drains(a *actor) {
	for !isClosed(r.over) {
		a.rest(500 * time.Millisecond)
		d := r.at(r.homes.at(a.luck.IntN(len(r.homes))))
		all, err := d.members.List(r.ctx)
		if err != nil || len(all) == 0 {
			continue
		}
		i := all[a.luck.IntN(len(all))]
		if d.members.Drain(r.ctx, i.ID) != nil {
			continue // it may have been drained, or may yet be
		}
		d.of.Rouse(i.Claimer())
		r.count("drained")
		r.note("%s: %s is drained", a.name, i.ID)
		r.mu.Lock()
		r.drained[i.ID] = draining{time.Now(), d.of}
		r.mu.Unlock()
	}
}

// work is an instance after the other: each works until it is drained, or until all is over.
func (r *exchangeRun) work(a *actor) {
	for !isClosed(r.over) {
		d := r.at(a.home)
		i, err := d.members.Register(r.ctx, membership.New{Name: a.name, Jobs: []string{"/far/*"}, Capacity: 1 + a.luck.IntN(4)})
		if err != nil {
			a.rest(100 * time.Millisecond)
			continue
		}
		w := &staff{exchangeRun: r, actor: a, id: i.ID, capacity: i.Capacity}
		w.run()
	}
}

// staff is an instance.
type staff struct {
	*exchangeRun
	*actor
	id       string
	capacity int
}

func (w *staff) run() {
	var held []queue.Lease
	for seq := int64(1); ; seq++ {
		ask := exchanges.Request{Seq: seq, Explain: func(err error) (string, string) { return err.Error(), "" }}
		leaves := isClosed(w.exchangeRun.over)
		if !leaves {
			ask.Max, ask.Wait = max(w.capacity-len(held), len(held)), time.Duration(1+w.luck.IntN(4))*time.Second
		}
		for _, l := range held {
			ask.Results = append(ask.Results, queue.Completion{Token: l.Token, Result: queue.Result{Outcome: queue.OK}})
		}
		got, ok := w.exchange(ask)
		if !ok || leaves || got.Draining && len(got.Claims) == 0 {
			_ = w.at(w.home).members.Leave(w.ctx, w.id)
			return
		}
		held = got.Claims
		switch {
		case len(held) == 0:
		case w.chance(20):
			w.rest(3 * leaseLength) // the results may come too late
		default:
			w.rest(15 * time.Millisecond)
		}
	}
}

// exchange makes an exchange until there is a response, which it sometimes asks for once more. ok is false if the instance is no more.
func (w *staff) exchange(ask exchanges.Request) (got exchanges.Response, ok bool) {
	first, held := time.Now(), w.rulesInForce()
	for {
		if w.chance(15) {
			w.home = w.homes.at(w.luck.IntN(len(w.homes)))
		}
		began, d := time.Now(), w.at(w.home)
		response, err := w.once(d, ask)
		w.part()
		w.note("%s: exchange %d of %s in %s: %d claims, %v", w.actor.name, ask.Seq, w.id, w.home.name, len(response.Claims), err)
		switch {
		case d.of.crashed():
		case errors.Is(err, membership.ErrNoInstance) || errors.Is(err, exchanges.ErrOld):
			return exchanges.Response{}, false
		case err == nil && len(got.Claims) == 0: // nothing was stored, and the next try may claim
			got = response
			w.count("exchanges")
			w.demandUndrained(&got, began, first, d)
			w.given(got.Claims, first, held)
			if !w.chance(30) {
				return got, true
			}
			continue // as if the response were lost
		case err == nil:
			w.demandSame(&ask, &got, &response)
			return response, true
		}
		w.rest(20 * time.Millisecond)
	}
}

// once makes an exchange as the API does, and sometimes leaves before it is over.
func (w *staff) once(d *desk, ask exchanges.Request) (exchanges.Response, error) {
	ctx, cancel := context.WithTimeout(w.ctx, ask.Wait+5*time.Second)
	defer cancel()
	if w.chance(5) {
		ctx, cancel = context.WithTimeout(w.ctx, time.Duration(w.luck.Int64N(int64(50*time.Millisecond))))
		defer cancel()
	}
	look, err := d.Look(ctx, w.id, &ask)
	defer look.End()
	if err != nil {
		return exchanges.Response{}, err
	}
	ask.Look = &look
	return d.Exchange(ctx, w.id, ask)
}

// demandSame demands that a repeated exchange tells no task that a response with tasks has not told.
func (w *staff) demandSame(ask *exchanges.Request, first, again *exchanges.Response) {
	w.count("repeated")
	told := map[string]bool{}
	for i := range first.Claims {
		told[first.Claims[i].Token] = true
	}
	for i := range again.Claims {
		if token := again.Claims[i].Token; !told[token] {
			w.report("told", "exchange %d of %s is repeated, and tells %s, which it has not told before", ask.Seq, w.id, token)
		}
	}
}

// remembered is how long a process may go by an instance that another has changed; see package exchanges.
const remembered = 110 * time.Millisecond

// demandUndrained demands that an exchange gives no task to an instance that was drained before it began, wherever it was made first.
func (w *staff) demandUndrained(got *exchanges.Response, began, first time.Time, by *desk) {
	w.mu.Lock()
	was, is := w.drained[w.id]
	w.mu.Unlock()
	if !is || len(got.Claims) == 0 {
		return
	}
	if by.of == was.by && began.Equal(first) && began.After(was.at) || first.After(was.at.Add(remembered)) {
		w.report("drained", "%s has got %s, %s after it was drained", w.id, got.Claims[0].Task.ID, first.Sub(was.at))
	}
}
