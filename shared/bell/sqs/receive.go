package sqs

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/millrace/millrace/shared/bell"
)

// longPoll is how long SQS holds a request while there are no messages; 20 s is its maximum.
const longPoll = 20 * time.Second

// Receive waits by long polling, and deletes the messages that it returns: if the receiver dies, they are lost, and the
// sweep sends them again. Messages that are no notifications stay, so that the queue's redrive policy moves them to its
// dead-letter queue.
//
// Price: a request per 20 s without notifications; two for up to ten notifications.
func (b *Bell) Receive(ctx context.Context, limit int) ([]bell.Ring, error) {
	for {
		var rings []bell.Ring
		err := b.call(ctx, "receive", receiveTimeout, func(ctx context.Context) (err error) {
			rings, err = b.poll(ctx, limit)
			return err
		})
		if err != nil || len(rings) > 0 {
			return rings, err
		}
	}
}

// poll returns the notifications of one request, possibly none.
func (b *Bell) poll(ctx context.Context, limit int) ([]bell.Ring, error) {
	url, err := b.queue(ctx)
	if err != nil {
		return nil, err
	}
	out, err := b.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: url, MaxNumberOfMessages: int32(min(limit, maxBatch)), WaitTimeSeconds: int32(longPoll / time.Second),
	})
	if err != nil || len(out.Messages) == 0 {
		return nil, err
	}
	rings, heard := sort(out.Messages)
	if len(heard) == 0 {
		return nil, nil
	}
	// A message that is not deleted is delivered again, which the port allows; so a failure is ignored.
	_, _ = b.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: heard})
	return rings, nil
}

// sort returns the notifications among messages, and the entries that delete them.
func sort(messages []types.Message) (rings []bell.Ring, heard []types.DeleteMessageBatchRequestEntry) {
	for n, m := range messages {
		ring, err := Parse([]byte(aws.ToString(m.Body)))
		if err != nil {
			continue
		}
		rings = append(rings, ring)
		heard = append(heard, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(n)), ReceiptHandle: m.ReceiptHandle})
	}
	return rings, heard
}
