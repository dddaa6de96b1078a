package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// Membership keeps the instances; a [membership.Membership] is one.
type Membership interface {
	Register(ctx context.Context, n membership.New) (membership.Instance, error)
	Get(ctx context.Context, id string) (membership.Instance, error)
	Heartbeat(ctx context.Context, id string, c membership.Change) (membership.Instance, error)
	Extend(ctx context.Context, id string, expires time.Time) error
	Drain(ctx context.Context, id string) error
	Leave(ctx context.Context, id string) error
	List(ctx context.Context) ([]membership.Instance, error)
	Leader(ctx context.Context) (membership.Leadership, error)
}

// Leaser gives tasks to instances; a [queue.Queue] is one.
type Leaser interface {
	Wait(by queue.Claimer) *queue.Waiting
	Claim(ctx context.Context, by queue.Claimer, max int) ([]queue.Lease, error)
	Rouse(instance string)
	Heartbeat(ctx context.Context, token string, b queue.Beat) (queue.Alive, error)
	Complete(ctx context.Context, token string, r queue.Result) (task.State, error)
	Refused(ctx context.Context, token string, outcome queue.Outcome) error
	Dialect(ctx context.Context, token string) (task.Dialect, error)
	Running(ctx context.Context, instances []string) ([]int, error)
}

// remote is the state of the operations of instances.
type remote struct {
	membership Membership
	leases     Leaser
	flight     flight
}

func describeRegister() *operation {
	return &operation{
		ID: "register", Tags: []string{"Instances"}, Summary: "Register an instance",
		Description: aboutWorkers, Parameters: params{idempotencyKey()}, Body: jsonBody(ref("NewInstance"), instanceExample()),
		Responses: answers(http.StatusCreated, typeJSON, object("", members{
			"id": text("For all further calls"), "term": whole("Counts registrations", 1), "lease": instanceLease(),
		}, false, "id", "term", "lease")),
	}
}

func describeInstances() *operation {
	return &operation{
		ID: "instances", Tags: []string{"Instances"}, Summary: "The instances, the oldest first",
		Description: "A worker's token sees those that it has registered.", Parameters: pageParams(),
		Responses: pageIn("instances", ref("Instance")),
	}
}

func describeHeartbeat() *operation {
	return &operation{
		ID: "heartbeatInstance", Tags: []string{"Instances"}, Summary: "Say that an instance is alive",
		Description: "Due after a third of the lease, unless the instance claims, or keeps or completes a lease, which is as good. An " +
			"instance that sends nothing until its lease ends is gone: 404, and it registers anew. What it runs goes on: leases have " +
			"heartbeats of their own.",
		Parameters: instanceParams(),
		Body:       jsonBody(ref("InstanceChange"), map[string]any{}),
		Responses: answers(http.StatusOK, typeJSON, object("", members{
			"expires_at": dateTime(""), "lease": instanceLease(), "draining": yesNo("It is to finish what it runs, and to leave"),
		}, false, "expires_at", "lease")),
		failures: []int{404},
	}
}

func describeLeave() *operation {
	return &operation{
		ID: "leave", Tags: []string{"Instances"}, Summary: "Remove an instance",
		Description: "For an instance that has finished what it ran.", Parameters: instanceParams(),
		Responses: empty(), failures: []int{404},
	}
}

func describeDrain() *operation {
	return &operation{
		ID: "drainInstance", Tags: []string{"Instances"}, Summary: "Drain an instance: give it no more tasks",
		Description: "The response to its next heartbeat tells it.", Parameters: instanceParams(),
		Responses: empty(), failures: []int{404},
	}
}

func instanceParams() params { return params{pathParam("id", "The instance's id")} }

// own returns the instance that the path names. A worker's token sees only those that it has registered.
func (r *remote) own(x *exchange) (membership.Instance, error) {
	i, err := r.membership.Get(x.r.Context(), x.r.PathValue("id"))
	if err == nil && !x.sees(&i) {
		err = membership.ErrNoInstance
	}
	return i, ofMembership(err)
}

func (x *exchange) sees(i *membership.Instance) bool {
	return x.token.Role != access.Worker || i.Owner == x.token.Name
}

// ofMembership returns an error of package membership as a client may know it.
func ofMembership(err error) error {
	switch {
	case errors.Is(err, membership.ErrNoInstance):
		return problem(CodeNotFound, "there is no such instance, or it was not heard of in time; register again")
	case errors.Is(err, membership.ErrInvalid):
		field, message, _ := strings.Cut(strings.TrimPrefix(err.Error(), membership.ErrInvalid.Error()+": "), ": ")
		return invalid("body."+field, "%s", message)
	}
	return err
}

// patterns reads the list of patterns in the member jobs.
func patterns(into *[]string) member {
	return member{name: "jobs", read: func(location string, value jsontext.Value) error {
		return readList(location, value, membership.MaxJobs, func(location string, value jsontext.Value) error {
			pattern, err := readText(location, value)
			*into = append(*into, pattern)
			return err
		})
	}}
}

func (r *remote) register(x *exchange) error {
	n := membership.New{Owner: x.token.Name}
	var capacity int64
	name, jobs := textMember("name", membership.MaxName, &n.Name), patterns(&n.Jobs)
	room := integerMember("capacity", 1, membership.MaxCapacity, &capacity)
	name.required, jobs.required, room.required = true, true, true
	b := take()
	defer b.give()
	body, err := x.parsed(b)
	if err != nil {
		return err
	}
	if err := readObject("body", body, name, jobs, room); err != nil {
		return err
	}
	n.Capacity = int(capacity)
	once, leave, err := r.flight.once(x, b.bytes, "")
	if err != nil {
		return err
	}
	defer leave()
	n.Once = once
	i, err := r.membership.Register(x.r.Context(), n)
	if err != nil {
		return ofMembership(err)
	}
	x.replayed(i.Replayed)
	return x.value(http.StatusCreated, struct {
		ID    string  `json:"id"`
		Term  int64   `json:"term"`
		Lease float64 `json:"lease"` // seconds
	}{i.ID, i.Term, i.Lease.Seconds()})
}

func (r *remote) heartbeat(x *exchange) error {
	var c membership.Change
	var capacity int64
	room := noted(integerMember("capacity", 1, membership.MaxCapacity, &capacity), func() { c.Capacity = new(int) })
	if err := x.object(patterns(&c.Jobs), room); err != nil {
		return err
	}
	if c.Capacity != nil {
		*c.Capacity = int(capacity)
	}
	i, err := r.own(x)
	if err != nil {
		return err
	}
	if i, err = r.membership.Heartbeat(x.r.Context(), i.ID, c); err != nil {
		return ofMembership(err)
	}
	if c.Jobs != nil || c.Capacity != nil {
		r.leases.Rouse(i.Claimer())
	}
	return x.value(http.StatusOK, struct {
		Expires  string  `json:"expires_at"`
		Lease    float64 `json:"lease"` // seconds
		Draining bool    `json:"draining,omitempty"`
	}{formatTime(i.Expires), i.Lease.Seconds(), i.Draining})
}

func (r *remote) leave(x *exchange) error {
	i, err := r.own(x)
	if err != nil {
		return err
	}
	if err := r.membership.Leave(x.r.Context(), i.ID); err != nil {
		return ofMembership(err)
	}
	r.leases.Rouse(i.Claimer()) // so that its waiting claims find that it is gone
	return x.done()
}

func (r *remote) drain(x *exchange) error {
	i, err := r.membership.Get(x.r.Context(), x.r.PathValue("id"))
	if err == nil {
		err = r.membership.Drain(x.r.Context(), i.ID)
	}
	if err != nil {
		return ofMembership(err)
	}
	r.leases.Rouse(i.Claimer()) // so that its waiting exchange learns of it
	return x.done()
}

// instanceView is an instance as clients see it.
type instanceView struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Jobs     []string `json:"jobs"`
	Capacity int      `json:"capacity"`
	Running  int      `json:"running"`
	Leader   bool     `json:"leader"`
	Draining bool     `json:"draining,omitempty"`
	Expires  string   `json:"expires_at"`
}

func (r *remote) list(x *exchange) error {
	query, limit, cursor, err := x.paging()
	if err != nil {
		return err
	}
	if _, err := strconv.ParseUint(cursor, 16, 64); cursor != "" && (err != nil || len(cursor) != 16) {
		return badCursor()
	}
	all, err := r.membership.List(x.r.Context())
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(i membership.Instance) bool { return !x.sees(&i) })
	all = listAfter(x, query, all, func(i *membership.Instance) string { return fmt.Sprintf("%016x", i.Term) }, cursor, limit)
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Claimer()
	}
	running, err := r.leases.Running(x.r.Context(), names)
	if err != nil {
		return err
	}
	leader, err := r.membership.Leader(x.r.Context())
	if err != nil {
		return err
	}
	views := []instanceView{}
	for n, i := range all {
		views = append(views, instanceView{
			i.ID, i.Name, i.Jobs, i.Capacity, running[n], leader.Holder == i.ID && leader.Expires.After(time.Now()),
			i.Draining, formatTime(i.Expires),
		})
	}
	return x.value(http.StatusOK, map[string][]instanceView{"instances": views})
}
