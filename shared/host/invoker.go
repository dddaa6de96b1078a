package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// Invoker runs a function's Lambda invocations. It implements lambda.Handler.
type Invoker struct{ f Function }

// NewInvoker returns the invoker of a function, or an error if the function has nothing to run.
func NewInvoker(f Function) (*Invoker, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	return &Invoker{f: f}, nil
}

// payload is the union of the events that a function may be invoked with. The kinds share no field of different meaning
// except version, "2.0" of an HTTP API's request and "0" of EventBridge.
type payload struct {
	events.APIGatewayV2HTTPRequest
	Records    []events.SQSMessage `json:"Records"`
	HTTPMethod string              `json:"httpMethod"` // of a REST API or a load balancer
	Tick       *string             `json:"tick"`
	DetailType string              `json:"detail-type"`
	Time       time.Time           `json:"time"`
}

// Invoke handles one invocation. The context of the function ends a little before Lambda's deadline, so that there is time
// for a response.
func (i *Invoker) Invoke(ctx context.Context, raw []byte) ([]byte, error) {
	ctx, cancel := withMargin(ctx)
	defer cancel()
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("host: %s cannot read its payload: %w", i.f.Name, err)
	}
	switch {
	case p.Version == "2.0" && p.RequestContext.HTTP.Method != "" && i.f.HTTP != nil:
		return i.serve(ctx, &p.APIGatewayV2HTTPRequest)
	case len(p.Records) > 0 && p.Records[0].EventSource == "aws:sqs" && i.f.Messages != nil:
		return json.Marshal(i.batch(ctx, p.Records))
	case p.Tick != nil && i.f.Tick != nil:
		return nil, i.f.tick(ctx, *p.Tick, p.Time)
	case p.DetailType == "Scheduled Event" && i.f.Tick != nil:
		return nil, i.f.tick(ctx, i.f.Name, p.Time)
	}
	return nil, fmt.Errorf("host: %s takes %s, and this payload is %s", i.f.Name, i.f.takes(), p.kind())
}

// margin is the part of an invocation's time that is reserved for the response.
const margin = time.Second

// withMargin ends the context earlier by the margin, or by a tenth of the time left if that is less.
func withMargin(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(margin, time.Until(deadline)/10)))
}

// takes lists what the function can be invoked with, for an error message.
func (f Function) takes() string {
	var kinds []string
	if f.HTTP != nil {
		kinds = append(kinds, "HTTP API requests (payload format 2.0)")
	}
	if f.Messages != nil {
		kinds = append(kinds, "SQS batches")
	}
	if f.Tick != nil {
		kinds = append(kinds, `ticks ({"tick":"`+f.Name+`"} or a Scheduled Event)`)
	}
	return strings.Join(kinds, " and ")
}

// kind describes the payload, for an error message.
func (p *payload) kind() string {
	switch {
	case p.Version == "2.0" && p.RequestContext.HTTP.Method != "":
		return "an HTTP API request"
	case p.HTTPMethod != "":
		return "a request of a REST API, a load balancer or payload format 1.0"
	case len(p.Records) > 0:
		return "a batch from " + p.Records[0].EventSource
	case p.Tick != nil:
		return "a tick"
	case p.DetailType != "":
		return "an EventBridge event of type " + p.DetailType
	}
	return "none of the kinds known"
}
