package dynamo

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace/millrace/shared/awsenv"
	"github.com/millrace/millrace/shared/store"
)

// Options of a Store.
type Options struct {
	// Prefix of the tables' names: PREFIX-journal, PREFIX-work, PREFIX-definitions. Required: 1 to 243 letters, digits, '_',
	// '-' and '.'.
	Prefix string

	// AWS is the configuration of the SDK: region, endpoint, credentials. The default is that of [awsenv.Load]. A program
	// that wants profiles, SSO or web identities loads it with the SDK's config module.
	AWS *aws.Config

	// Now is the clock that a Write's NotAfter is compared with and that a Ticket's Sent is read from; it must have a
	// monotonic reading. The default is time.Now.
	Now func() time.Time
}

// Store is a [store.Store] in DynamoDB. It is safe for concurrent use by any number of processes.
type Store struct {
	prefix string
	client *dynamodb.Client
	now    func() time.Time
	hints  hints

	transport *http.Transport // closed by Close; unused when the caller brought a client

	calls  sync.RWMutex // held for reading by each call, for writing by Close
	closed bool
}

var _ store.Store = (*Store)(nil)

// OpenPrefix opens the tables of that prefix, with all other options at their defaults.
func OpenPrefix(ctx context.Context, prefix string) (store.Store, error) {
	return Open(ctx, Options{Prefix: prefix})
}

// Open returns a Store without sending a request, so that a function starts fast. Missing tables show with the first call, or
// with [Store.Ping].
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := validPrefix(o.Prefix); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	transport := newTransport()
	cfg, err := awsenv.Connect(ctx, o.AWS, transport, awsenv.Retryer(maxAttempts, pause))
	if err != nil {
		return nil, err
	}
	return &Store{prefix: o.Prefix, now: o.Now, client: dynamodb.NewFromConfig(cfg), transport: transport}, nil
}

// newTransport returns the connections of one Store. DynamoDB responds in milliseconds, so that a response that takes
// seconds will not come; and a process that serves hundreds of followers must not dial for each.
func newTransport() *http.Transport {
	t := awsenv.Transport(2*time.Second, 256)
	t.ResponseHeaderTimeout = 8 * time.Second
	return t
}

// Prefix returns the prefix of the tables' names.
func (s *Store) Prefix() string { return s.prefix }

// Exclusive returns false: any process with the right credentials reaches the tables.
func (s *Store) Exclusive() bool { return false }

// Advances returns false: a sequencer in a transaction would make the writes of all processes conflict.
func (s *Store) Advances() bool { return false }

// MaxOps returns [store.MaxOps], what a transaction may have.
func (s *Store) MaxOps() int { return store.MaxOps }

// Close waits for the calls under way and releases the connections. Further calls of it do nothing.
func (s *Store) Close() error {
	s.calls.Lock()
	defer s.calls.Unlock()
	if !s.closed {
		s.transport.CloseIdleConnections()
	}
	s.closed = true
	return nil
}

// enter begins a call; the caller ends it by leave unless enter fails.
func (s *Store) enter() error {
	s.calls.RLock()
	if s.closed {
		s.calls.RUnlock()
		return store.ErrClosed
	}
	return nil
}

func (s *Store) leave() { s.calls.RUnlock() }
