package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/projection"
)

// OrderEngine moves orders along job chains; an [order.Engine] is one.
type OrderEngine interface {
	Add(ctx context.Context, once *journal.Idempotency, r order.Request) (order.Added, error)
	Get(ctx context.Context, chain, id string) (projection.OrderOverview, error)
	Act(ctx context.Context, chain, id string, a order.Act) error
	Answer(ctx context.Context, chain, id string, a order.Answer) error
	Why(ctx context.Context, chain, id string) (order.Reason, error)
	StopChain(ctx context.Context, chain string, stop bool) error
	SetAction(ctx context.Context, chain, node, action string) error
}

// ordering is the state of the operations on orders.
type ordering struct {
	orders OrderEngine
	flight flight
}

func describeAddOrder() *operation {
	return &operation{
		ID: "addOrder", Tags: []string{"Orders"}, Summary: "Add an order to a job chain",
		Description: "It begins at once, unless run_at, a delay, or something that is stopped keeps it. With replace, an order of the chain " +
			"that has the id makes room for it; if a step of that one runs, once the step has ended.",
		Parameters: append(chainParams(), idempotencyKey()),
		Body:       jsonBody(ref("NewOrder"), map[string]any{"id": "117", "variables": map[string]any{"file": "in.csv"}}),
		Responses:  answers(http.StatusCreated, typeJSON, ref("OrderOverview")), failures: []int{404, 409, 422},
	}
}

func describeOrder() *operation {
	return &operation{
		ID: "showOrder", Tags: []string{"Orders"}, Summary: "An order", Parameters: orderParams(),
		Responses: answers(http.StatusOK, typeJSON, ref("OrderOverview")), failures: []int{404},
	}
}

func describeWhyOrder() *operation {
	return &operation{
		ID: "whyOrder", Tags: []string{"Orders"}, Summary: "Why an order's step is not running, in one sentence", Parameters: orderParams(),
		Responses: answers(http.StatusOK, typeJSON, ref("WhyOrder")), failures: []int{404},
	}
}

// describeAct returns what describes an act on an order.
func describeAct(kind order.ActKind, summary string, more members, required ...string) func() *operation {
	return func() *operation {
		id, rest, _ := strings.Cut(string(kind), "-")
		if rest != "" {
			rest = strings.ToUpper(rest[:1]) + rest[1:]
		}
		op := &operation{
			ID: id + rest + "Order", Tags: []string{"Orders"}, Summary: summary, Parameters: orderParams(), Responses: empty(),
			Description: "409 changes nothing: the order cannot do that as it is, or it would make no difference.",
			failures:    []int{404, 409},
		}
		if more != nil {
			op.Body = jsonBody(object("", more, false, required...), actExample(more))
			op.failures = append(op.failures, 422)
		}
		return op
	}
}

func actExample(m members) map[string]any {
	if _, is := m["node"]; is {
		return map[string]any{"node": "200"}
	}
	return map[string]any{"variables": map[string]any{"file": "other.csv"}}
}

func describeStopChain() *operation {
	return onChain("stopChain", "Stop a job chain: its orders wait where they are")
}
func describeStartChain() *operation {
	return onChain("startChain", "Start a job chain that is stopped")
}

func onChain(id, summary string) *operation {
	return &operation{
		ID: id, Tags: []string{"Orders"}, Summary: summary, Parameters: chainParams(), Responses: empty(), failures: []int{404, 409},
		Description: "409 changes nothing: it is so already. Steps that run go on to their ends.",
	}
}

func describeNodeAction() *operation {
	op := onChain("setNodeAction", "Set what a node does with orders: process, stop, or next_state (they pass it)")
	op.Parameters = append(op.Parameters, pathParam("node", "The node's id; its slashes are escaped"))
	op.Body = jsonBody(object("", members{"action": choice("", order.Actions...)}, false, "action"), map[string]any{"action": "stop"})
	return op
}

func chainParams() params {
	return params{pathParam("chain", "The job chain's path, escaped: %2Ffolder%2Fchain, or folder%2Fchain")}
}

func orderParams() params { return append(chainParams(), pathParam("id", "The order's id, escaped")) }

// chain returns the path of the chain that the request's path names, with or without the slash at its beginning.
func (x *exchange) chain() string {
	return "/" + strings.TrimPrefix(x.r.PathValue("chain"), "/")
}

func (o *ordering) add(x *exchange) error {
	r := order.Request{Chain: x.chain()}
	id := textMember("id", order.MaxID, &r.ID)
	id.required = true
	once, leave, err := x.objectOnce(&o.flight, r.Chain, id, variablesMember(&r.Variables), textMember("node", maxBody, &r.Node),
		textMember("end_node", maxBody, &r.EndNode), integerMember("priority", -1<<31, 1<<31-1, &r.Priority),
		timeMember("run_at", &r.RunAt), yesMember("replace", &r.Replace))
	if err != nil {
		return err
	}
	defer leave()
	added, err := o.orders.Add(x.r.Context(), once, r)
	if errors.Is(err, order.ErrInvalid) { // the id: the variables have been checked with the body
		return invalid("body.id", "%s", strings.TrimPrefix(err.Error(), order.ErrInvalid.Error()+": id: "))
	}
	if err != nil {
		return err
	}
	x.replayed(added.Replayed)
	return x.value(http.StatusCreated, added.Order)
}

// variablesMember is the member variables: those of an order, or changes of them.
func variablesMember(into *json.RawMessage) member {
	return member{name: "variables", read: func(location string, value jsontext.Value) error {
		if value.Kind() != '{' {
			return invalid(location, "want an object, not %s", kindOfJSON(value))
		}
		if err := value.Compact(); err != nil {
			return invalid(location, "is not JSON in UTF-8")
		}
		*into = json.RawMessage(value.Clone())
		err := order.CheckVariables(*into)
		if errors.Is(err, order.ErrTooLarge) {
			return problem(CodeTooLarge, "variables have at most %d bytes together", order.MaxVariables).at(location)
		}
		return err
	}}
}

func yesMember(name string, into *bool) member {
	return member{name: name, read: func(location string, value jsontext.Value) error {
		if value.Kind() != 't' && value.Kind() != 'f' {
			return invalid(location, "want a boolean, not %s", kindOfJSON(value))
		}
		*into = value.Kind() == 't'
		return nil
	}}
}

func (o *ordering) show(x *exchange) error {
	found, err := o.orders.Get(x.r.Context(), x.chain(), x.r.PathValue("id"))
	if err != nil {
		return err
	}
	return x.value(http.StatusOK, found)
}

// act returns what does an act; known are the members that its body may have.
func (o *ordering) act(kind order.ActKind, known ...string) func(*exchange) error {
	return func(x *exchange) error {
		a := order.Act{Kind: kind}
		node := textMember("node", maxBody, &a.Node)
		node.required = true
		var of []member
		for _, m := range []member{node, toVersion(&a.Version), variablesMember(&a.Variables)} {
			if slices.Contains(known, m.name) {
				of = append(of, m)
			}
		}
		if err := x.objectIfAny(of...); err != nil {
			return err
		}
		if err := o.orders.Act(x.r.Context(), x.chain(), x.r.PathValue("id"), a); err != nil {
			return err
		}
		return x.done()
	}
}

func (o *ordering) why(x *exchange) error {
	r, err := o.orders.Why(x.r.Context(), x.chain(), x.r.PathValue("id"))
	if err != nil {
		return err
	}
	v := whyOrderView{State: r.State, Reason: r.Reason, Code: r.Code, Details: map[string]any{}}
	if !r.Since.IsZero() {
		v.Since = formatTime(r.Since)
	}
	for name, detail := range r.Details {
		if at, is := detail.(time.Time); is {
			detail = formatTime(at)
		}
		v.Details[name] = detail
	}
	return x.value(http.StatusOK, v)
}

// whyOrderView is a reason as clients see it.
type whyOrderView struct {
	State   string         `json:"state"`
	Reason  string         `json:"reason"`
	Code    string         `json:"code"`
	Since   string         `json:"since,omitempty"`
	Details map[string]any `json:"details"`
}

func (o *ordering) stop(x *exchange) error  { return o.setChain(x, true) }
func (o *ordering) start(x *exchange) error { return o.setChain(x, false) }

func (o *ordering) setChain(x *exchange, stop bool) error {
	if err := o.orders.StopChain(x.r.Context(), x.chain(), stop); err != nil {
		return err
	}
	return x.done()
}

func (o *ordering) setAction(x *exchange) error {
	var action string
	of := oneMember("action", &action, order.Actions)
	of.required = true
	if err := x.object(of); err != nil {
		return err
	}
	node := x.r.PathValue("node")
	err := o.orders.SetAction(x.r.Context(), x.chain(), node, action)
	if errors.Is(err, order.ErrNoNode) {
		return problem(CodeNotFound, "the job chain has no node %s", quoted(node))
	}
	if err != nil {
		return err
	}
	return x.done()
}

func newOrderSchema() *schema {
	return object("", members{
		"id": textOf("Once in its chain", 1, order.MaxID), "variables": variablesSchema(),
		"node": textOf("Where it begins; default: the chain's first node", 1, maxBody), "end_node": textOf("It finishes after the step of this node, unless that fails", 1, maxBody),
		"priority": between("Of its steps' tasks: higher starts earlier", -1<<31, 1<<31-1),
		"run_at":   dateTime("The earliest start"), "replace": yesNo("An order that has the id makes room"),
	}, false, "id")
}

// variablesSchema is an order's variables.
func variablesSchema() *schema {
	return object("Texts, numbers, booleans, and lists of these; 64 KiB together", nil, true)
}

func whyOrderSchema() *schema {
	return object("", members{
		"state": text("As the order's overview has it"), "reason": text("One sentence"),
		"code":  choice("Stable and machine-readable", order.ReasonCodes()...),
		"since": dateTime("Since when this has been so, where that is known"), "details": object("The values that the sentence names", nil, true),
	}, false, "state", "reason", "code", "details")
}
