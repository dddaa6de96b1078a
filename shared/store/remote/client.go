package remote

import (
	"context"
	"errors"
	"fmt"
	"net/rpc"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Store is one process's connection to a store that another process serves.
type Store struct {
	address string

	mu     sync.Mutex
	line   *rpc.Client // nil: there is none
	closed bool
	calls  sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// Open returns a Store for the one that is served at a TCP address, HOST:PORT. The first call connects; after a broken
// connection the next call connects again.
func Open(address string) *Store { return &Store{address: address} }

// connect returns the connection, and dials if there is none.
func (s *Store) connect() (*rpc.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	if s.line == nil {
		line, err := rpc.Dial("tcp", s.address)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
		s.line = line
	}
	s.calls.Add(1)
	return s.line, nil
}

// broken closes and drops a connection.
func (s *Store) broken(line *rpc.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == line {
		_ = line.Close()
		s.line = nil
	}
}

// call sends a request. lost is the error where no response came.
func (s *Store) call(ctx context.Context, r *Request, lost error) (*Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	line, err := s.connect()
	if err != nil {
		return nil, err
	}
	a := new(Answer)
	done := line.Go(service+".Call", r, a, make(chan *rpc.Call, 1)).Done
	select {
	case <-ctx.Done():
		go func() { <-done; s.calls.Done() }()
		if errors.Is(lost, store.ErrUnknown) {
			return nil, fmt.Errorf("%w: %w", lost, ctx.Err())
		}
		return nil, ctx.Err()
	case c := <-done:
		s.calls.Done()
		if c.Error != nil {
			s.broken(line)
			return nil, fmt.Errorf("%w: %w", lost, c.Error)
		}
		return a, a.err()
	}
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	a, err := s.call(ctx, &Request{Method: "Get", Keys: keys}, store.ErrUnavailable)
	if err != nil {
		return nil, err
	}
	items := make([]*store.Item, len(a.Items))
	for i, found := range a.Items {
		items[i] = found.received()
	}
	return items, nil
}

// Query implements store.Store.
func (s *Store) Query(ctx context.Context, r store.Range) (store.Page, error) {
	a, err := s.call(ctx, &Request{Method: "Query", Range: r}, store.ErrUnavailable)
	if err != nil {
		return store.Page{}, err
	}
	page := store.Page{More: a.More}
	for _, found := range a.Items {
		page.Items = append(page.Items, found.Item)
	}
	return page, nil
}

// Write implements store.Store. A Write without a response has an unknown outcome, unless no connection could be made.
func (s *Store) Write(ctx context.Context, w store.Write) error {
	if !w.NotAfter.IsZero() && time.Now().After(w.NotAfter) {
		return store.ErrTooLate
	}
	_, err := s.call(ctx, &Request{Method: "Write", Token: w.Token, Ops: sentOps(w.Ops)}, store.ErrUnknown)
	return err
}

// Remove implements store.Store.
func (s *Store) Remove(ctx context.Context, r store.Range) error {
	_, err := s.call(ctx, &Request{Method: "Remove", Range: r}, store.ErrUnavailable)
	return err
}

// Reserve implements store.Store.
func (s *Store) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	left := time.Now()
	a, err := s.call(ctx, &Request{Method: "Reserve", Keys: []store.Key{key}, IDs: ids, Now: now}, store.ErrUnavailable)
	if err != nil {
		return store.Ticket{}, err
	}
	return store.Ticket{Sequence: a.Sequence, FirstID: a.FirstID, Sends: a.Sends, Sent: left}, nil
}

// Sequence implements store.Store.
func (s *Store) Sequence(ctx context.Context, key store.Key, eventual bool) (store.Sequence, error) {
	a, err := s.call(ctx, &Request{Method: "Sequence", Keys: []store.Key{key}, Eventual: eventual}, store.ErrUnavailable)
	if err != nil {
		return store.Sequence{}, err
	}
	return a.Sequence, nil
}

// Raise implements store.Store.
func (s *Store) Raise(ctx context.Context, key store.Key, position, id int64) error {
	_, err := s.call(ctx, &Request{Method: "Raise", Keys: []store.Key{key}, Position: position, ID: id}, store.ErrUnavailable)
	return err
}

// Date implements store.Store.
func (s *Store) Date(ctx context.Context) (time.Time, error) {
	a, err := s.call(ctx, &Request{Method: "Date"}, store.ErrUnavailable)
	if err != nil {
		return time.Time{}, err
	}
	return a.Date, nil
}

// Ping implements store.Store.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.call(ctx, &Request{Method: "Ping"}, store.ErrUnavailable)
	return err
}

// Exclusive returns false: other processes may reach the store too.
func (s *Store) Exclusive() bool { return false }

// Advances returns false.
func (s *Store) Advances() bool { return false }

// MaxOps returns [store.MaxOps].
func (s *Store) MaxOps() int { return store.MaxOps }

// Close waits for the calls under way and drops the connection.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	if closed || s.line == nil {
		return nil
	}
	return s.line.Close()
}
