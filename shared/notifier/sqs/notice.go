package sqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/millrace/millrace/shared/notifier"
)

const (
	maxBatch = 10 // messages in one request at most
	parallel = 8  // concurrent requests of one call at most
)

// Notify sends a message for each notification, ten to a request.
//
// Price: one request per ten notifications.
func (b *Notifier) Notify(ctx context.Context, notices ...notifier.Notice) error {
	return b.call(ctx, "notice", notifyTimeout, func(ctx context.Context) error {
		if len(notices) == 0 {
			return nil
		}
		url, err := b.queue(ctx)
		if err != nil {
			return err
		}
		return b.sendAll(ctx, url, notices)
	})
}

// sendAll sends the batches concurrently. All are sent even if one fails.
func (b *Notifier) sendAll(ctx context.Context, url *string, notices []notifier.Notice) error {
	var (
		senders sync.WaitGroup
		mu      sync.Mutex
		failed  error
		slots   = make(chan struct{}, parallel)
	)
	for batch := range slices.Chunk(notices, maxBatch) {
		slots <- struct{}{}
		senders.Go(func() {
			defer func() { <-slots }()
			if err := b.send(ctx, url, b.entries(batch)); err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
			}
		})
	}
	senders.Wait()
	return failed
}

// send sends one batch. SQS accepts or refuses each message: refused ones are sent once more. A request that failed as a
// whole has already been retried by the SDK.
func (b *Notifier) send(ctx context.Context, url *string, entries []types.SendMessageBatchRequestEntry) error {
	left, err := b.attempt(ctx, url, entries)
	if err != nil || len(left) == 0 {
		return err
	}
	again := slices.DeleteFunc(slices.Clone(entries), func(e types.SendMessageBatchRequestEntry) bool {
		_, is := left[*e.Id]
		return !is
	})
	if left, err = b.attempt(ctx, url, again); err != nil {
		return err
	}
	for _, refusal := range left {
		return fmt.Errorf("%d of %d messages were not taken: %w", len(left), len(entries), refusal)
	}
	return nil
}

// attempt returns the messages that SQS refused, by their ids, and why.
func (b *Notifier) attempt(ctx context.Context, url *string, entries []types.SendMessageBatchRequestEntry) (map[string]error, error) {
	out, err := b.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: url, Entries: entries})
	if err != nil {
		return nil, err
	}
	left := map[string]error{}
	for _, f := range out.Failed {
		left[aws.ToString(f.Id)] = errors.New(aws.ToString(f.Code) + ": " + aws.ToString(f.Message))
	}
	return left, nil
}

func (b *Notifier) entries(notices []notifier.Notice) []types.SendMessageBatchRequestEntry {
	now := b.now()
	entries := make([]types.SendMessageBatchRequestEntry, len(notices))
	for n, notice := range notices {
		entries[n] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(n)), MessageBody: aws.String(Format(notice)), DelaySeconds: delay(notice.At, now),
		}
	}
	return entries
}

// delay returns whole seconds, rounded down: the receiver waits if a notification comes early, but a late one cannot be
// made up for.
func delay(at, now time.Time) int32 {
	return int32(min(max(at.Sub(now), 0), notifier.MaxDelay) / time.Second)
}
