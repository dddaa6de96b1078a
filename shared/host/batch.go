package host

import (
	"context"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
)

// batch passes SQS messages to the function and returns those to be delivered again, in the form of
// ReportBatchItemFailures.
func (i *Invoker) batch(ctx context.Context, records []events.SQSMessage) events.SQSEventResponse {
	messages := make([]Message, len(records))
	for n, record := range records {
		messages[n] = Message{ID: record.MessageId, Body: []byte(record.Body), Attributes: attributes(record)}
	}
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, failure := range i.f.take(ctx, messages) {
		response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: failure.ID})
	}
	return response
}

func attributes(record events.SQSMessage) map[string]string {
	all := make(map[string]string, len(record.MessageAttributes))
	for name, attribute := range record.MessageAttributes {
		if attribute.StringValue != nil {
			all[name] = *attribute.StringValue
		}
	}
	return all
}

// take runs the function's Messages and logs each failure. After a panic it is unknown which messages were processed, so
// all of them fail.
func (f Function) take(ctx context.Context, batch []Message) (failures []Failure) {
	defer func() {
		if cause := recover(); cause != nil {
			logPanic(f.log(), cause)
			failures = failAll(batch, fmt.Errorf("host: %s panicked: %v", f.Name, cause))
		}
	}()
	failures = f.Messages(ctx, batch)
	for _, failure := range failures {
		f.log().Warn("message failed", "message", failure.ID, "error", failure.Err)
	}
	return failures
}

func failAll(batch []Message, err error) []Failure {
	failures := make([]Failure, len(batch))
	for n, message := range batch {
		failures[n] = Failure{ID: message.ID, Err: err}
	}
	return failures
}
