package sqs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/millrace/millrace/shared/awsenv"
	"github.com/millrace/millrace/shared/notifier"
)

// Options are the options of a Notifier.
type Options struct {
	// Queue is the URL of a standard queue, or its name (1 to 80 bytes) in the account and region of the credentials.
	// Required.
	Queue string

	// AWS is the configuration of the SDK: region, endpoint, credentials; default: what [awsenv.Load] returns.
	AWS *aws.Config

	// Now is the clock by which delays are counted; default time.Now.
	Now func() time.Time
}

// Notifier is a [notifier.Line] over SQS, for any number of processes.
type Notifier struct {
	client *sqs.Client
	now    func() time.Time
	name   string // of the queue; empty if its URL is configured

	url atomic.Pointer[string] // nil: not yet known

	life      context.Context // ends with Close
	end       context.CancelFunc
	transport *http.Transport // closed by Close; unused if the caller's configuration has a client
}

var _ notifier.Line = (*Notifier)(nil)

// Attempts of a request, and the longest pause between them, for a client that waits for the response to an enqueue.
const (
	maxAttempts = 3
	longPause   = 200 * time.Millisecond
)

// OpenQueue opens the queue of that URL or name, configured by the environment. See [awsenv.Load].
func OpenQueue(ctx context.Context, queue string) (notifier.Line, error) {
	return Open(ctx, Options{Queue: queue})
}

// Open returns a Notifier without sending a request. If the queue does not exist, the first call and [Notifier.Ping] say so.
func Open(ctx context.Context, o Options) (*Notifier, error) {
	b := &Notifier{now: o.Now}
	if b.now == nil {
		b.now = time.Now
	}
	if err := b.locate(o.Queue); err != nil {
		return nil, err
	}
	b.transport = awsenv.Transport(2*time.Second, 2*parallel) // without a time for responses: a long poll takes longer than other calls
	cfg, err := awsenv.Connect(ctx, o.AWS, b.transport, awsenv.Retryer(maxAttempts, func(int) time.Duration {
		return rand.N(longPause) + time.Millisecond
	}))
	if err != nil {
		return nil, err
	}
	b.client = sqs.NewFromConfig(cfg)
	b.life, b.end = context.WithCancel(context.WithoutCancel(ctx))
	return b, nil
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// locate stores the queue's URL or its name.
func (b *Notifier) locate(queue string) error {
	switch {
	case strings.HasSuffix(queue, ".fifo"):
		return fmt.Errorf("sqs: the queue %s is a FIFO queue, which cannot delay single messages; want a standard queue", queue)
	case strings.HasPrefix(queue, "https://"), strings.HasPrefix(queue, "http://"):
		b.url.Store(&queue)
	case validName.MatchString(queue):
		b.name = queue
	default:
		return fmt.Errorf("sqs: %q is neither the URL of a queue nor a name, which has 1 to 80 letters, digits, _ and -", queue)
	}
	return nil
}

// queue returns the queue's URL, which it asks SQS for until it is known.
func (b *Notifier) queue(ctx context.Context) (*string, error) {
	if known := b.url.Load(); known != nil {
		return known, nil
	}
	found, err := b.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(b.name)})
	if err != nil {
		return nil, err
	}
	b.url.Store(found.QueueUrl)
	return found.QueueUrl, nil
}

// Ping asks for the creation time of the queue, which takes a connection, credentials and the queue.
func (b *Notifier) Ping(ctx context.Context) error {
	return b.call(ctx, "ping", pingTimeout, func(ctx context.Context) error {
		url, err := b.queue(ctx)
		if err != nil {
			return err
		}
		_, err = b.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl: url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameCreatedTimestamp},
		})
		return err
	})
}

// Close ends the calls under way and releases the connections. Further calls of it do nothing.
func (b *Notifier) Close() error {
	b.end()
	b.transport.CloseIdleConnections()
	return nil
}

// Time limits of calls, retries included. No task depends on a notification, so its sender does not wait long.
const (
	notifyTimeout  = 5 * time.Second
	pingTimeout    = 5 * time.Second
	receiveTimeout = longPoll + 10*time.Second
)

// call runs an operation and translates its failure into the port's errors.
func (b *Notifier) call(ctx context.Context, operation string, timeout time.Duration, run func(context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer context.AfterFunc(b.life, cancel)()
	err := within.Err()
	if err == nil && b.life.Err() == nil {
		err = run(within)
	}
	switch {
	case b.life.Err() != nil:
		return fmt.Errorf("sqs: %s: %w", operation, notifier.ErrClosed)
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("sqs: %s: %w", operation, ctx.Err())
	default:
		return b.unavailable(operation, err)
	}
}

func (b *Notifier) unavailable(operation string, err error) error {
	where := b.name
	if where == "" {
		where = *b.url.Load()
	}
	if missing := (*types.QueueDoesNotExist)(nil); errors.As(err, &missing) {
		return fmt.Errorf("sqs: %s: %w: no queue %s in this region and account; deploy template.yaml, or create it",
			operation, notifier.ErrUnavailable, where)
	}
	// The cause is not wrapped, since the end of our timeout must not look like the end of the caller's context.
	return fmt.Errorf("sqs: %s on %s: %w: %s", operation, where, notifier.ErrUnavailable, err.Error())
}
