package simulation

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
)

func atoi(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// view is a snapshot of orders.
type view struct {
	stamp  event.ID
	orders map[string]*projection.OrderOverview
}

// viewer starts an actor that takes snapshots.
func (r *orderRun) viewer(name string, at int) {
	c := r.caller(name, at)
	r.upkeep.Go(func() {
		for !r.is(&r.over) {
			c.rest(4 * r.plan.think)
			r.look(c.home.now())
			c.part()
		}
	})
}

// look takes a snapshot.
func (r *orderRun) look(m *mover) *view {
	v := view{orders: map[string]*projection.OrderOverview{}}
	var err error
	v.stamp, err = m.journal.Snapshot(r.ctx, projection.OrdersName, func(key string, value []byte) {
		if len(value) == 0 {
			return
		}
		o := new(projection.OrderOverview)
		if err := json.Unmarshal(value, o); err != nil {
			r.report("snapshot and events", "%s: %v", value, err)
		}
		v.orders[key] = o
	})
	if err != nil || m.crashed() {
		return nil
	}
	r.countOrders(m)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.views = append(r.views, v)
	return &v
}

// countOrders demands that the numbers of each chain's orders are a full count at their stamp.
func (r *orderRun) countOrders(m *mover) {
	chains, orders := map[string]projection.OrderStatistics{}, map[string]projection.OrderStatistics{}
	_, err := m.journal.SnapshotOf(r.ctx, projection.OrdersName, journal.Part{Raw: true}, func(key string, value []byte) {
		is := projection.ReadOrderCount(key, value).OrderStatistics
		if chain, counts := strings.CutPrefix(key, projection.OrderCounts); counts {
			chains[chain] = is
		} else if strings.HasPrefix(key, "/") {
			chain, _ := order.Split(key)
			sum := orders[chain]
			sum.Add(is)
			orders[chain] = sum
		}
	})
	if err != nil || m.crashed() {
		return
	}
	for chain, numbers := range chains {
		if numbers != orders[chain] {
			r.report("statistics", "%s has %+v, one by one %+v", chain, numbers, orders[chain])
		}
	}
}

// settle runs all steps to their ends, first while some orders are held and then with nothing that holds them, and demands that none
// is left.
func (r *orderRun) settle() {
	r.drainOrders()
	r.agree()
	for path, o := range r.watch.orders() {
		if !o.Suspended && !o.Idle && o.Waiting == "" {
			r.report("hang", "%s at %s goes on for ever", path, o.Node)
		}
	}
	r.release()
	for tries := 0; tries == 0 || tries < 4 && r.suspended() > 0; tries++ { // what is resumed may be suspended once more
		r.resumeAll()
		r.drainOrders()
	}
	for path, o := range r.watch.orders() {
		if !o.Permanent {
			r.report("hang", "%s is at %s for ever: waits for %q, suspended: %t", path, o.Node, o.Waiting, o.Suspended)
		}
	}
	r.agree()
}

// suspended returns how many orders are suspended, beside those that never end.
func (r *orderRun) suspended() (n int) {
	for _, o := range r.watch.orders() {
		if o.Suspended && !o.Permanent {
			n++
		}
	}
	return n
}

// resumeAll resumes what is suspended.
func (r *orderRun) resumeAll() {
	m := r.homes[len(r.homes)-1].now()
	for path, o := range r.watch.orders() {
		if o.Suspended && !o.Permanent {
			chain, id := order.Split(path)
			if err := m.orders.Act(r.ctx, chain, id, order.Act{Kind: order.Resume}); err != nil && !errors.Is(err, order.ErrNoOrder) {
				r.report("liveness", "%s cannot be resumed when all is quiet: %v", path, err)
			}
		}
	}
}

// drainOrders runs steps until there are none for some rounds.
func (r *orderRun) drainOrders() {
	quietFor := 0
	for round := 0; round < 60 && quietFor < 12; round++ {
		quietFor++
		for _, h := range r.homes {
			m := h.now()
			if err := m.orders.Sweep(r.ctx); err != nil {
				r.report("liveness", "orders cannot be swept when all is quiet: %v", err)
			}
			if _, err := m.Sweep(r.ctx); err != nil {
				r.report("liveness", "a sweep fails when all is quiet: %v", err)
			}
			if _, err := m.Promote(r.ctx); err != nil {
				r.report("liveness", "due tasks cannot be promoted when all is quiet: %v", err)
			}
			if r.help != nil {
				r.help(m)
			}
			if r.runSteps(m) > 0 {
				quietFor = 0
			}
		}
		time.Sleep(leaseLength / 2)
	}
}

// runSteps runs all steps that can be started, and returns how many there were.
func (r *orderRun) runSteps(m *mover) (n int) {
	for n < 500 {
		leases, err := m.Claim(r.ctx, queue.Claimer{Instance: "drain"}, 5)
		if err != nil {
			r.report("liveness", "a claim fails when all is quiet: %v", err)
		}
		if len(leases) == 0 {
			return n
		}
		for _, l := range leases {
			n++
			if _, err := m.Complete(r.ctx, l.Token, queue.Result{Outcome: queue.OK}); err != nil {
				r.report("liveness", "a step cannot be ended when all is quiet: %v", err)
			}
		}
	}
	r.report("hang", "steps never end")
	return n
}

// agree demands that a snapshot shows each order as the engine does.
func (r *orderRun) agree() {
	m := r.homes[0].now()
	v := r.look(m)
	if v == nil {
		r.report("liveness", "no snapshot can be had when all is quiet")
		return
	}
	r.lookAtAllParts(m)
	there := r.watch.orders()
	for path := range there {
		if v.orders[path] == nil {
			r.report("order is its events", "%s is there, and no snapshot shows it", path)
		}
	}
	for path, told := range v.orders {
		chain, id := order.Split(path)
		is, err := m.orders.Get(r.ctx, chain, id)
		if err != nil {
			r.report("order is its events", "a snapshot shows %s: %v", path, err)
			continue
		}
		if told.StartedAt.IsZero() != is.StartedAt.IsZero() {
			r.report("order is its events", "%s started at %v, by its events at %v", path, is.StartedAt, told.StartedAt)
		}
		shown := *told
		shown.StartedAt = is.StartedAt // of the step's claim, which is a little before its event
		shown.AsOf(m.now())
		if diff := cmp.Diff(shown, is); diff != "" {
			r.report("order is its events", "%s (-by its events +by the engine):\n%s", path, diff)
		}
	}
}

// verify compares what each call returned with what the journal has.
func (r *orderRun) verify() {
	all := r.events()
	r.verifyAsked(all)
	r.verifyWalks(all)
	r.verifyViews(all)
	r.verifyParts(all)
	r.happened["events"] = len(all)
}

// verifyAsked demands that what was acknowledged is on the journal once, and that nothing is there of what was refused.
func (r *orderRun) verifyAsked(all []event.Event) {
	by, added := map[string]int{}, map[string]int{}
	for i := range all {
		by[all[i].By]++
		isChild := strings.Contains(all[i].Key.Path, "!") // which has its parent's label
		if labels := labelsIn(all[i].Fields); all[i].Type == event.OrderAdded && len(labels) == 1 && !isChild {
			added[labels[0]]++
		}
	}
	r.verifyAdded(added)
	for _, q := range r.asked {
		if q.outcome == Refused && by[q.label]+added[q.label] > 0 {
			r.report("refused is absent", "%s of %s by %s was refused (%v), and has %d events", q.what, q.path, q.label, q.err, by[q.label])
		}
	}
}

// verifyAdded demands that each request has added its order once, where it was acknowledged, and that a key has added one.
func (r *orderRun) verifyAdded(added map[string]int) {
	keys := map[string]string{}
	for _, q := range r.asked {
		switch n := added[q.label]; {
		case n > 1:
			r.report("acknowledged once", "the order %s of %s was added %d times", q.path, q.label, n)
		case q.what == "add" && q.outcome == Acknowledged && !q.replayed && n == 0 && !q.replace:
			r.report("acknowledged once", "the order %s of %s was acknowledged, and was not added", q.path, q.label)
		case q.key != "" && n == 1 && keys[q.key] != "":
			r.report("acknowledged once", "the key %s has added %s and %s", q.key, keys[q.key], q.label)
		case q.key != "" && n == 1:
			keys[q.key] = q.label
		}
	}
}
