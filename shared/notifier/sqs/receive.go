package sqs

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/millrace/millrace/shared/notifier"
)

// longPoll is how long SQS holds a request while there are no messages; 20 s is its maximum.
const longPoll = 20 * time.Second

// Receive waits by long polling, and deletes the messages that it returns: if the receiver dies, they are lost, and the
// sweep sends them again. Messages that are no notifications stay, so that the queue's redrive policy moves them to its
// dead-letter queue.
//
// Price: a request per 20 s without notifications; two for up to ten notifications.
func (b *Notifier) Receive(ctx context.Context, limit int) ([]notifier.Notice, error) {
	for {
		var notices []notifier.Notice
		err := b.call(ctx, "receive", receiveTimeout, func(ctx context.Context) (err error) {
			notices, err = b.poll(ctx, limit)
			return err
		})
		if err != nil || len(notices) > 0 {
			return notices, err
		}
	}
}

// poll returns the notifications of one request, possibly none.
func (b *Notifier) poll(ctx context.Context, limit int) ([]notifier.Notice, error) {
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
	notices, heard := sort(out.Messages)
	if len(heard) == 0 {
		return nil, nil
	}
	// A message that is not deleted is delivered again, which the port allows; so a failure is ignored.
	_, _ = b.client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: heard})
	return notices, nil
}

// sort returns the notifications among messages, and the entries that delete them.
func sort(messages []types.Message) (notices []notifier.Notice, heard []types.DeleteMessageBatchRequestEntry) {
	for n, m := range messages {
		notice, err := Parse([]byte(aws.ToString(m.Body)))
		if err != nil {
			continue
		}
		notices = append(notices, notice)
		heard = append(heard, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(n)), ReceiptHandle: m.ReceiptHandle})
	}
	return notices, heard
}
