package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/queue"
)

// BulkEngine acts on many orders or jobs at once; an [order.Engine] is one.
type BulkEngine interface {
	Count(ctx context.Context, f order.Filter) (int, error)
	ActOnAll(ctx context.Context, once *journal.Idempotency, a order.Act, f order.Filter) (order.Bulk, error)
	CountJobs(ctx context.Context, f order.JobFilter) (int, error)
	ActOnJobs(ctx context.Context, once *journal.Idempotency, a order.JobAct, f order.JobFilter) (order.Bulk, error)
	Bulk(ctx context.Context, id string) (order.Bulk, error)
	StopBulk(ctx context.Context, id string) error
	ResumeBulk(ctx context.Context, id string) error
}

// bulking is the state of the operations that act on many.
type bulking struct {
	engine BulkEngine
	flight flight
}

var (
	orderActs = []string{
		string(order.Suspend), string(order.Resume), string(order.SetNode), string(order.Skip), string(order.Reset),
		string(order.RunNow), string(order.Move), string(order.Remove),
	}
	jobActs = []string{string(order.RemoveJobs), string(order.StopJobs), string(order.RetryJobs)}
)

// onOrders acts on all orders that a filter selects.
func (k *bulking) onOrders(x *exchange) error {
	var a order.Act
	var kind string
	var dry bool
	f := order.Filter{Paths: event.AllPaths()}
	act, filter := oneMember("act", &kind, orderActs), member{name: "filter", required: true, read: readOrderFilter(&f)}
	act.required = true
	given := map[string]bool{}
	once, leave, err := x.objectOnce(&k.flight, "", act, filter, noting(given, textMember("node", maxBody, &a.Node)), noting(given, toVersion(&a.Version)),
		noting(given, variablesMember(&a.Variables)), yesMember("dry_run", &dry), portionMember("limit", maxLimit, &f.Limit), portionMember("per_second", maxPerSecond, &f.PerSecond))
	if err != nil {
		return err
	}
	defer leave()
	a.Kind = order.ActKind(kind)
	if err := fitting(a.Kind, given); err != nil {
		return err
	}
	if dry {
		n, err := k.engine.Count(x.r.Context(), f)
		return x.selected(n, err)
	}
	began, err := k.engine.ActOnAll(x.r.Context(), once, a, f)
	return x.beganAct(began, err)
}

// noting is a member of which it is noted that it is given.
func noting(given map[string]bool, m member) member {
	read := m.read
	m.read = func(location string, value jsontext.Value) error {
		given[m.name] = true
		return read(location, value)
	}
	return m
}

// fitting returns a 400 unless the members that are given beside an act are its own.
func fitting(kind order.ActKind, given map[string]bool) error {
	own := map[string]order.ActKind{"node": order.SetNode, "version": order.Move, "variables": order.Resume}
	for _, name := range []string{"node", "version", "variables"} {
		if given[name] && own[name] != kind {
			return invalid("body."+name, "belongs to the act %s only", own[name])
		}
	}
	if kind == order.SetNode && !given["node"] {
		return invalid("body.node", "is missing")
	}
	return nil
}

func readOrderFilter(f *order.Filter) func(string, jsontext.Value) error {
	return func(location string, value jsontext.Value) error {
		return readObject(location, value, pathsMember(&f.Paths), oneMember("state", &f.State, order.States),
			textMember("node", maxBody, &f.Node), oneMember("obstacle", &f.Obstacle, order.Obstacles))
	}
}

// pathsMember is the member path: a path query, as in the URLs of snapshots.
func pathsMember(into *event.PathQuery) member {
	return member{name: "path", read: func(location string, value jsontext.Value) error {
		text, err := readText(location, value)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(text, "/") {
			return invalid(location, "does not begin with a slash: everything is \"/\"")
		}
		*into, err = event.ParsePath(text)
		if e, ok := errors.AsType[*event.Error](err); ok {
			return invalid(location, "%s", e.Problems[0].Message)
		}
		return err
	}}
}

// onJobs acts on all jobs of topics that a filter selects.
func (k *bulking) onJobs(x *exchange) error {
	var kind string
	var dry bool
	var f jobFilter
	act, filter := oneMember("act", &kind, jobActs), member{name: "filter", required: true, read: f.read}
	act.required = true
	var portion order.Portion
	once, leave, err := x.objectOnce(&k.flight, "", act, filter, yesMember("dry_run", &dry),
		portionMember("limit", maxLimit, &portion.Limit), portionMember("per_second", maxPerSecond, &portion.PerSecond))
	if err != nil {
		return err
	}
	defer leave()
	selects, err := f.of(order.JobAct(kind))
	if err != nil {
		return err
	}
	selects.Portion = portion
	if dry {
		n, err := k.engine.CountJobs(x.r.Context(), selects)
		return x.selected(n, err)
	}
	began, err := k.engine.ActOnJobs(x.r.Context(), once, order.JobAct(kind), selects)
	return x.beganAct(began, err)
}

// What a portion of what a filter selects may be.
const (
	maxLimit     = math.MaxInt32
	maxPerSecond = 1000
)

// portionMember is the member limit or per_second: how much of what a filter selects, and how fast.
func portionMember(name string, most int64, into *int) member {
	var number int64
	m := integerMember(name, 1, most, &number)
	read := m.read
	m.read = func(location string, value jsontext.Value) error {
		err := read(location, value)
		*into = int(number)
		return err
	}
	return m
}

// jobFilter selects jobs as a client says it.
type jobFilter struct {
	paths                 event.PathQuery
	topic, state, message string
}

func (f *jobFilter) read(location string, value jsontext.Value) error {
	f.paths = event.AllPaths()
	topic := member{name: "topic", read: func(location string, value jsontext.Value) (err error) {
		if f.topic, err = readText(location, value); err == nil && !definition.ValidTopic(f.topic) {
			err = invalid(location, "%s is no topic", quoted(f.topic))
		}
		return err
	}}
	return readObject(location, value, pathsMember(&f.paths), topic, oneMember("state", &f.state, JobTypes()), textMember("message", maxBody, &f.message))
}

// of returns what is selected for an act. Unless a state is given, it is the jobs that are not finished; for retry, those given up.
func (f *jobFilter) of(a order.JobAct) (order.JobFilter, error) {
	if f.state == "" && a == order.RetryJobs {
		f.state = "GIVEN_UP"
	}
	kind, err := jobTypeOf("body.filter.state", cmp.Or(f.state, jobTypes[0].name))
	if err != nil {
		return order.JobFilter{}, err
	}
	if kind.history != (a == order.RetryJobs) && a != order.RemoveJobs {
		return order.JobFilter{}, problem(CodeImpossible, "%s is not possible with jobs that are %s", a, f.state).at("body.filter.state")
	}
	selects := order.JobFilter{Paths: f.paths, History: kind.history, States: slices.Clone(kind.states), Message: f.message}
	if f.topic != "" {
		selects.Topic = queue.TopicPath(f.topic)
	}
	return selects, nil
}

// selected responds to a dry run.
func (x *exchange) selected(n int, err error) error {
	if err != nil {
		return err
	}
	return x.value(http.StatusOK, map[string]int{"count": n})
}

// beganAct responds that an act has begun.
func (x *exchange) beganAct(b order.Bulk, err error) error {
	if err != nil {
		return err
	}
	x.replayed(b.Replayed)
	return x.value(http.StatusAccepted, beganView{ID: b.ID, Count: b.Count})
}

type beganView struct {
	ID    string `json:"id"`
	Count int    `json:"count"`
}

// bulkView is an act on many as clients see it.
type bulkView struct {
	Act    string          `json:"act"`
	By     string          `json:"by"`
	Count  int             `json:"count"`
	Done   int             `json:"done"`
	Failed int             `json:"failed"`
	State  order.BulkState `json:"state"`

	PerSecond int `json:"per_second,omitempty"`
}

func (k *bulking) show(x *exchange) error {
	b, err := k.engine.Bulk(x.r.Context(), x.r.PathValue("id"))
	if err != nil {
		return err
	}
	return x.value(http.StatusOK, bulkView{b.Kind, b.By, b.Count, b.Done, b.Failed, b.State, b.PerSecond})
}

func (k *bulking) stop(x *exchange) error   { return k.set(x, k.engine.StopBulk) }
func (k *bulking) resume(x *exchange) error { return k.set(x, k.engine.ResumeBulk) }

func (k *bulking) set(x *exchange, state func(context.Context, string) error) error {
	if err := state(x.r.Context(), x.r.PathValue("id")); err != nil {
		return err
	}
	return x.done()
}

const aboutBulk = "What the filter selects is counted and written down first, and then done step by step, whatever becomes of this server; %s. " +
	"422 says that nothing is selected. With dry_run it is only counted, which keeps no Idempotency-Key. With limit only so many are selected, the first " +
	"that are found; with per_second no more are done in a second."

func describeActOnOrders() *operation {
	op := &operation{
		ID: "actOnOrders", Tags: []string{"Orders"}, Summary: "Act on all orders that a filter selects",
		Description: fmt.Sprintf(aboutBulk, "orders that refuse the act, as they would alone, count as failed"),
		Parameters:  params{idempotencyKey()},
		Body: jsonBody(object("", members{
			"act": choice("", orderActs...), "dry_run": yesNo("Count only"),
			"filter": object("All of it holds. {} selects every order", members{
				"path": text("Path query of job chains: /a/ is all below, /a/* what is directly below, | joins several"), "node": textOf("Where they are", 1, maxBody),
				"state": choice("TYPE of their orderProcessingState", order.States...), "obstacle": choice("TYPE of one of their obstacles", order.Obstacles...),
			}, false),
			"limit": limitSchema(), "per_second": perSecondSchema(),
			"node": textOf("Of set-node, which needs it", 1, maxBody), "version": versionSchema(), "variables": variablesSchema(),
		}, false, "act", "filter"), map[string]any{"act": "resume", "filter": map[string]any{"path": "/folder/", "obstacle": "Suspended"}}),
		failures: []int{413, 422},
	}
	op.Responses = begun()
	return op
}

func describeActOnJobs() *operation {
	op := &operation{
		ID: "actOnJobs", Tags: []string{"Jobs"}, Summary: "Remove, stop or retry all jobs that a filter selects",
		Description: fmt.Sprintf(aboutBulk, "jobs that refuse the act count as failed") + " Without a state, those are selected that are not finished; for retry those " +
			"that were given up. Finished jobs cannot be stopped, others cannot be retried.",
		Parameters: params{idempotencyKey()},
		Body: jsonBody(object("", members{
			"act": choice("", jobActs...), "dry_run": yesNo("Count only"), "limit": limitSchema(), "per_second": perSecondSchema(),
			"filter": object("All of it holds. {} selects every job", members{
				"path": text("Path query of the jobs, /topics/TOPIC"), "topic": topicSchema(), "state": choice("As in lists of jobs", JobTypes()...),
				"message": textOf("Their newest message is as this one, but for numbers, ids and what is quoted", 1, maxBody),
			}, false),
		}, false, "act", "filter"), map[string]any{"act": "retry", "filter": map[string]any{"topic": "mail/send", "state": "GIVEN_UP"}}),
		failures: []int{422},
	}
	op.Responses = begun()
	return op
}

func limitSchema() *schema     { return between("So many at most; without it all", 1, maxLimit) }
func perSecondSchema() *schema { return between("So many at most in a second", 1, maxPerSecond) }

func begun() responses {
	all := answers(http.StatusAccepted, typeJSON, ref("BegunAct"))
	for status, r := range answers(http.StatusOK, typeJSON, object("Of a dry run", members{"count": whole("How many are selected", 0)}, false, "count")) {
		all[status] = r
	}
	return all
}

func describeBulk() *operation {
	return &operation{
		ID: "showAct", Tags: []string{"Orders"}, Summary: "An act on many: how far it is", Parameters: bulkParams(),
		Description: "It can be asked for until a week after it is done or stopped.",
		Responses:   answers(http.StatusOK, typeJSON, ref("Act")), failures: []int{404},
	}
}

func describeStopBulk() *operation {
	return &operation{
		ID: "stopAct", Tags: []string{"Orders"}, Summary: "Stop an act on many", Parameters: bulkParams(), Responses: empty(),
		Description: "What is done stays done. Some of those under way at this moment may still follow.", failures: []int{404, 409},
	}
}

func describeResumeBulk() *operation {
	return &operation{
		ID: "resumeAct", Tags: []string{"Orders"}, Summary: "Let an act on many go on that was stopped", Parameters: bulkParams(), Responses: empty(),
		failures: []int{404, 409},
	}
}

func bulkParams() params { return params{pathParam("id", "The act's id")} }

func bulkSchema() *schema {
	return object("An act on many orders or jobs", members{
		"act": text("What is done"), "by": text("Name of the token of who asked for it"), "count": whole("How many were selected", 1),
		"done": whole("How many it was done with", 0), "failed": whole("How many refused it, or were gone", 0),
		"state":      choice("", string(order.BulkRunning), string(order.BulkStopped), string(order.BulkDone)),
		"per_second": perSecondSchema(),
	}, false, "act", "by", "count", "done", "failed", "state")
}

func begunActSchema() *schema {
	return object("", members{"id": text("Of the act"), "count": whole("How many are selected", 1)}, false, "id", "count")
}
