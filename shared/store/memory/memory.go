package memory

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Store keeps items in maps under one lock, so that every call happens at one moment.
type Store struct {
	date   func() time.Time
	shared bool
	moves  bool
	maxOps int

	mu        sync.Mutex
	closed    bool
	pages     map[partition]*page
	sequences map[store.Key]store.Sequence
}

var _ store.Store = (*Store)(nil)

// Options of a Store. The zero value of each field means its default.
type Options struct {
	Date     func() time.Time // what [Store.Date] returns; default time.Now
	Shared   bool             // what uses it must assume other processes; default false
	Advances bool             // what [Store.Advances] returns; default false
	MaxOps   int              // what [Store.MaxOps] returns; default [store.MaxOps]
}

// New returns an empty store.
func New(o Options) *Store {
	if o.Date == nil {
		o.Date = time.Now
	}
	return &Store{date: o.Date, shared: o.Shared, moves: o.Advances, maxOps: cmp.Or(o.MaxOps, store.MaxOps), pages: map[partition]*page{}, sequences: map[store.Key]store.Sequence{}}
}

// Get reads items by key, all at one moment.
func (s *Store) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	unlock, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	found := make([]*store.Item, len(keys))
	for i, key := range keys {
		found[i] = s.find(key)
	}
	return found, nil
}

// Query reads a range of one partition. Eventual changes nothing here.
func (s *Store) Query(ctx context.Context, r store.Range) (store.Page, error) {
	unlock, err := s.enter(ctx)
	if err != nil {
		return store.Page{}, err
	}
	defer unlock()
	return s.page(r.Table, r.Partition).query(r), nil
}

// Write applies w as a whole if every condition holds.
func (s *Store) Write(ctx context.Context, w store.Write) error {
	unlock, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if !w.NotAfter.IsZero() && time.Now().After(w.NotAfter) {
		return store.ErrTooLate
	}
	if moved := s.moved(w.Advance); moved != nil {
		if s.holds(w) {
			return nil
		}
		return moved
	}
	if c := s.conflict(w); c != nil {
		if w.Mine(c) {
			return nil
		}
		s.useUp(w.Advance)
		return c
	}
	if a := w.Advance; a != nil {
		s.advance(a)
	}
	for _, op := range w.Ops {
		s.apply(op, w.Token)
	}
	return nil
}

// holds reports whether an item that w puts is w's, so that w was applied before.
func (s *Store) holds(w store.Write) bool {
	return slices.ContainsFunc(w.Ops, func(op store.Op) bool {
		found := s.find(op.Item.Key)
		return op.Kind == store.OpPut && found != nil && found.Token == w.Token
	})
}

func (s *Store) conflict(w store.Write) *store.Conflict {
	var c store.Conflict
	for i, op := range w.Ops {
		if found := s.find(op.Item.Key); !op.Cond.Holds(found) {
			c.Failed = append(c.Failed, store.Failure{Op: i, Found: found})
		}
	}
	if c.Failed == nil {
		return nil
	}
	return &c
}

func (s *Store) apply(op store.Op, token string) {
	p := s.page(op.Item.Key.Table, op.Item.Key.Partition)
	switch op.Kind {
	case store.OpPut:
		item := op.Item
		item.Token = token
		if !item.Expires.IsZero() {
			item.Expires = item.Expires.Truncate(time.Second)
		}
		p.put(item)
	case store.OpDelete:
		p.remove(op.Item.Key.Sort)
	}
}

// Remove deletes every item of a range.
func (s *Store) Remove(ctx context.Context, r store.Range) error {
	unlock, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s.page(r.Table, r.Partition).removeRange(r.From, r.To)
	return nil
}

// Date returns what Options.Date returns.
func (s *Store) Date(ctx context.Context) (time.Time, error) {
	unlock, err := s.enter(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer unlock()
	return s.date(), nil
}

// Exclusive returns whether one process has the data to itself, which it has unless Options.Shared says otherwise.
func (s *Store) Exclusive() bool { return !s.shared }

// Advances returns what Options.Advances says.
func (s *Store) Advances() bool { return s.moves }

// MaxOps returns what Options.MaxOps says.
func (s *Store) MaxOps() int { return s.maxOps }

// Ping returns nil until Close.
func (s *Store) Ping(ctx context.Context) error {
	unlock, err := s.enter(ctx)
	if err != nil {
		return err
	}
	unlock()
	return nil
}

// Close forgets everything.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.pages, s.sequences = true, nil, nil
	return nil
}

// enter takes the lock for one call; the error is that of an ended context or of a closed store.
func (s *Store) enter(ctx context.Context) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, store.ErrClosed
	}
	return s.mu.Unlock, nil
}

func (s *Store) find(key store.Key) *store.Item {
	return s.page(key.Table, key.Partition).find(key.Sort)
}

func (s *Store) page(table store.Table, name string) *page {
	at := partition{table: table, name: name}
	p := s.pages[at]
	if p == nil {
		p = &page{}
		s.pages[at] = p
	}
	return p
}
