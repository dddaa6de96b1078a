package dynamo

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/millrace/millrace/shared/store"
)

// departure checks and counts the attempts of one request, as the last step before each is signed: whatever may
// take time, such as fetching credentials or waiting between attempts, is over by then. Connecting is not, but the
// signature already bounds how long a request may be on its way: DynamoDB refuses it after some minutes.
type departure struct {
	now      func() time.Time
	notAfter time.Time // zero: no limit

	sends     int         // attempts that were signed
	first     time.Time   // when the first of them was about to be signed
	asked     atomic.Bool // a connection was requested
	connected atomic.Bool // a connection was obtained
}

func (s *Store) departure() *departure { return &departure{now: s.now} }

// watch adds the departure to a request's options.
func (d *departure) watch(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(d, "Signing", middleware.Before)
	})
}

// once adds the departure to the options of a request that must not be repeated by the SDK.
func (d *departure) once(o *dynamodb.Options) {
	d.watch(o)
	o.Retryer = aws.NopRetryer{}
}

// ID names the middleware.
func (d *departure) ID() string { return "Departure" }

// HandleFinalize lets an attempt pass on to be signed and sent, unless it is too late for it.
func (d *departure) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	now := d.now()
	if late := now.Sub(d.notAfter); !d.notAfter.IsZero() && late > 0 {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, fmt.Errorf("%w, by %v", store.ErrTooLate, late)
	}
	if d.sends == 0 {
		d.first = now
	}
	d.sends++
	return next.HandleFinalize(httptrace.WithClientTrace(ctx, d.trace()), in)
}

func (d *departure) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { d.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { d.connected.Store(true) },
	}
}

// stayed reports whether it is certain that nothing was sent: no attempt was signed, or none got a connection. A client
// that does not say when it connects is taken to have sent.
func (d *departure) stayed() bool {
	return d.sends == 0 || d.asked.Load() && !d.connected.Load()
}
