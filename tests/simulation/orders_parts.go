package simulation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
)

// part is a snapshot of what a path query selects of one kind of objects.
type part struct {
	kind    string // an overview's name
	query   string
	stamp   event.ID
	objects map[string]string // their JSON, by what objectKey returns
}

// family is that of the objects of each kind, whose paths a query selects.
var family = map[string]event.Family{
	projection.OrdersName: event.OrderEvent, projection.TasksName: event.TaskEvent,
	"JobOverview": event.JobEvent, "JobChainOverview": event.JobChainEvent,
}

// partKinds are the kinds, always in the same order.
var partKinds = []string{projection.OrdersName, projection.TasksName, "JobOverview", "JobChainOverview"}

// parter starts an actor that takes snapshots of folders, of objects, and of lists of both: of now, and of the moments of earlier ones.
func (r *orderRun) parter(name string, at int) {
	c := r.caller(name, at)
	r.upkeep.Go(func() {
		for !r.is(&r.over) {
			c.rest(2 * r.plan.think)
			r.lookAtPart(c, partKinds[c.luck.IntN(len(partKinds))])
			c.part()
		}
	})
}

// lookAtPart takes a snapshot of a part, and another one of what it was when an earlier one was taken.
func (r *orderRun) lookAtPart(c *caller, kind string) {
	m, query := c.home.now(), r.drawQuery(c, kind)
	of := r.partOf(kind, query)
	now := part{kind: kind, query: query, objects: map[string]string{}}
	var err error
	now.stamp, err = m.journal.SnapshotOf(r.ctx, kind, of, now.add)
	if err != nil || m.crashed() {
		return
	}
	past := part{kind, query, r.keepPart(now, c.luck.IntN), map[string]string{}}
	if past.stamp >= now.stamp {
		return
	}
	if err := m.journal.SnapshotAt(r.ctx, kind, past.stamp, of, past.add); err != nil || m.crashed() {
		return // retention may have evicted it
	}
	r.keepPart(past, nil)
	r.count("past parts")
}

// lookAtAllParts takes a snapshot of all objects of each kind.
func (r *orderRun) lookAtAllParts(m *mover) {
	for _, kind := range partKinds {
		p := part{kind: kind, query: "/", objects: map[string]string{}}
		var err error
		if p.stamp, err = m.journal.SnapshotOf(r.ctx, kind, r.partOf(kind, p.query), p.add); err != nil {
			r.report("liveness", "no snapshot of %s can be had when all is quiet: %v", kind, err)
			continue
		}
		r.keepPart(p, nil)
	}
}

// keepPart keeps a snapshot for the end, and returns the stamp of an earlier one by luck; its own if there is none, or no luck.
func (r *orderRun) keepPart(p part, luck func(int) int) (earlier event.ID) {
	r.count("parts")
	r.mu.Lock()
	defer r.mu.Unlock()
	earlier = p.stamp
	if luck != nil && len(r.parts) > 0 {
		earlier = r.parts[luck(len(r.parts))].stamp
	}
	r.parts = append(r.parts, p)
	return earlier
}

func (p *part) add(key string, value []byte) {
	if len(value) > 0 {
		p.objects[key] = string(value)
	}
}

// drawQuery returns a random path query: of one or two paths of objects, or of folders above them.
func (r *orderRun) drawQuery(c *caller, kind string) string {
	names := r.defs.chains()
	if kind == projection.TasksName || kind == "JobOverview" {
		names = names[:0]
		for _, j := range r.defs.set(0).Jobs {
			names = append(names, j.Path)
		}
	}
	paths := make([]string, 1+c.luck.IntN(2))
	for i := range paths {
		name := names[c.luck.IntN(len(names))]
		folder := strings.TrimSuffix(path.Dir(name), "/") + "/"
		paths[i] = []string{name, folder, folder + "*"}[c.luck.IntN(3)]
	}
	return strings.Join(paths, "|")
}

// partOf returns what a snapshot of a query is asked for.
func (r *orderRun) partOf(kind, query string) journal.Part {
	q, err := event.ParsePath(query)
	if err != nil {
		r.report("snapshot and events", "the query %s: %v", query, err)
	}
	return journal.Part{
		Prefixes: q.Prefixes(family[kind]),
		Match:    func(key string) bool { return q.MatchKey(family[kind], objectKey(kind, key)) },
	}
}

func objectKey(kind, key string) event.Key {
	if kind == projection.TasksName {
		return projection.TaskKey(key)
	}
	return event.Key{Path: key}
}

// verifyParts demands that each snapshot of a part is what the events up to its stamp make of those objects that its query selects. So
// any of them and the events after it make a later one.
func (r *orderRun) verifyParts(all []event.Event) {
	slices.SortStableFunc(r.parts, func(a, b part) int { return cmp.Compare(a.stamp, b.stamp) })
	seen := newBystander()
	at := 0
	for _, p := range r.parts {
		for ; at < len(all) && all[at].ID <= p.stamp; at++ {
			seen.see(&all[at])
		}
		of := r.partOf(p.kind, p.query)
		want := map[string]any{}
		for key, object := range seen.objects(p.kind) {
			if of.Match(key) {
				want[key] = r.asJSON(object)
			}
		}
		is := map[string]any{}
		for key, object := range p.objects {
			is[key] = r.asJSON(json.RawMessage(object))
		}
		if diff := gocmp.Diff(want, is); diff != "" {
			r.report("snapshot and events", "%s of %s at %d (-by events +by the snapshot):\n%s", p.kind, p.query, p.stamp, diff)
			return
		}
	}
}

// asJSON returns an object as JSON has it.
func (r *orderRun) asJSON(object any) (v any) {
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		r.report("snapshot and events", "%v: %v", object, err)
	}
	return v
}

// bystander knows all objects by their events, as documented.
type bystander struct {
	onlooker
	tasks  map[string]any
	jobs   map[string]any
	chains map[string]*projection.JobChainOverview
}

func newBystander() *bystander {
	return &bystander{
		onlooker{map[string]*projection.OrderOverview{}}, map[string]any{}, map[string]any{}, map[string]*projection.JobChainOverview{},
	}
}

func (b *bystander) see(e *event.Event) {
	b.onlooker.see(e)
	switch event.FamilyOf(e.Type) {
	case event.TaskEvent:
		b.seeTask(e)
	case event.JobChainEvent:
		b.seeChain(e)
	}
}

func (b *bystander) seeTask(e *event.Event) {
	key := fmt.Sprintf("%s\x00%s", e.Key.Path, e.Key.TaskID)
	state, shown := map[string]string{event.TaskAdded: "Added", event.TaskStarted: "Started", event.TaskEnded: "Ended"}[e.Type]
	switch {
	case e.Type == event.TaskClosed || e.Type == event.TaskRemoved:
		delete(b.tasks, key)
	case shown:
		b.tasks[key] = map[string]string{"TYPE": "TaskOverview", "taskId": e.Key.TaskID, "jobPath": e.Key.Path, "state": state}
	}
	b.jobs[e.Key.Path] = projection.JobOverview{TYPE: "JobOverview", Path: e.Key.Path, State: "run"} // no rule is ever set
}

func (b *bystander) seeChain(e *event.Event) {
	c := b.chains[e.Key.Path]
	if c == nil {
		c = &projection.JobChainOverview{TYPE: "JobChainOverview", Path: e.Key.Path, State: "running", Nodes: []typed.NodeAction{}}
		b.chains[e.Key.Path] = c
	}
	if e.Type == event.JobChainStateChanged {
		c.State = typed.ReadOrder[typed.JobChainStateChanged](e).State
	} else {
		is := typed.NodeAction(typed.ReadOrder[typed.JobChainNodeActionChanged](e))
		c.Nodes = slices.DeleteFunc(c.Nodes, func(n typed.NodeAction) bool { return n.NodeID == is.NodeID })
		c.Nodes = append(c.Nodes, is)
		slices.SortFunc(c.Nodes, func(a, b typed.NodeAction) int { return cmp.Compare(a.NodeID, b.NodeID) })
	}
	if c.State == "running" && len(c.Nodes) == 0 {
		delete(b.chains, e.Key.Path) // its definition is not on the journal
	}
}

// objects returns all objects of a kind, by key.
func (b *bystander) objects(kind string) map[string]any {
	all := map[string]any{}
	switch kind {
	case projection.TasksName:
		return b.tasks
	case "JobOverview":
		return b.jobs
	case projection.OrdersName:
		for key, o := range b.orders {
			all[key] = o
		}
	default:
		for key, c := range b.chains {
			all[key] = c
		}
	}
	return all
}
