package limited

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/meter"
)

// Limits are the units a second that a store accepts, and its times. The zero value of each field means its default.
type Limits struct {
	PartitionWrites, PartitionReads float64       // of each partition key; default 1,000 and 3,000
	TableWrites, TableReads         float64       // of each table; default 4,000 and 12,000
	Burst                           time.Duration // how long unused units are saved; default 1 s
	Cold                            bool          // a partition key that is new has saved a tenth of a second only; default: Burst
	Latency                         time.Duration // the median of the time that each try of a call takes; default 5 ms
	Transaction                     time.Duration // that of a Write of several operations; default twice Latency
	Tail                            float64       // of the distribution: the deviation of the time's logarithm; default 0: no tail
	Seed                            uint64        // from which times are drawn
}

func (l Limits) withDefaults() Limits {
	for value, otherwise := range map[*float64]float64{
		&l.PartitionWrites: 1000, &l.PartitionReads: 3000, &l.TableWrites: 4000, &l.TableReads: 12000,
	} {
		if *value == 0 {
			*value = otherwise
		}
	}
	if l.Burst == 0 {
		l.Burst = time.Second
	}
	if l.Latency == 0 {
		l.Latency = 5 * time.Millisecond
	}
	if l.Transaction == 0 {
		l.Transaction = 2 * l.Latency
	}
	return l
}

// Store is a store that many processes share, held to limits.
type Store struct {
	store.Store
	limits  Limits
	latency *latency

	mu     sync.Mutex
	writes kind
	reads  kind
	held   map[store.Key]bool // by transactions under way
	usage  Usage
}

// New holds inner to limits. Closing the Store closes inner.
func New(inner store.Store, limits Limits) *Store {
	l := limits.withDefaults()
	s := &Store{Store: inner, limits: l, latency: newLatency(l), held: map[store.Key]bool{}}
	s.writes = kind{l.PartitionWrites, l.TableWrites, map[owner]*bucket{}, &s.usage.WriteUnits}
	s.reads = kind{l.PartitionReads, l.TableReads, map[owner]*bucket{}, &s.usage.ReadUnits}
	return s
}

// Exclusive returns false: the limits are those of a store across a network.
func (s *Store) Exclusive() bool { return false }

// Advances returns false, as DynamoDB does.
func (s *Store) Advances() bool { return false }

// MaxOps returns [store.MaxOps], as DynamoDB does.
func (s *Store) MaxOps() int { return store.MaxOps }

// Get takes the units of each item from its partition and its table.
func (s *Store) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	return insist(ctx, s, func() ([]*store.Item, bool, error) {
		items, err := s.Store.Get(ctx, keys...)
		if err != nil {
			return nil, true, err
		}
		var bill charges
		for i, key := range keys {
			bill = append(bill, charge{key, float64(meter.ReadUnits(false, items[i]))})
		}
		return items, s.pay(&s.reads, bill), nil
	})
}

// Query takes the units of what it returns.
func (s *Store) Query(ctx context.Context, r store.Range) (store.Page, error) {
	return insist(ctx, s, func() (store.Page, bool, error) {
		page, err := s.Store.Query(ctx, r)
		if err != nil {
			return page, true, err
		}
		return page, s.payQuery(r, page.Items), nil
	})
}

func (s *Store) payQuery(r store.Range, items []store.Item) bool {
	found := make([]*store.Item, len(items))
	for i := range items {
		found[i] = &items[i]
	}
	key := store.Key{Table: r.Table, Partition: r.Partition}
	bill := charges{{key, meter.ReadUnits(r.Eventual, found...)}}
	return s.pay(&s.reads, bill)
}

// Remove takes the units of a Query, and of each item that it deletes.
func (s *Store) Remove(ctx context.Context, r store.Range) error {
	r.Backward, r.Limit, r.Eventual = false, 0, false
	for item, err := range store.All(ctx, s, r) {
		if err != nil {
			return err
		}
		_, err = insist(ctx, s, func() (struct{}, bool, error) {
			bill := charges{{item.Key, float64(meter.WriteUnits(item))}}
			return struct{}{}, s.pay(&s.writes, bill), nil
		})
		if err != nil {
			return err
		}
	}
	return s.Store.Remove(ctx, r)
}

// Reserve takes one write unit.
func (s *Store) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	return insist(ctx, s, func() (t store.Ticket, paid bool, err error) {
		if paid = s.pay(&s.writes, charges{{key, 1}}); paid {
			t, err = s.Store.Reserve(ctx, key, ids, now)
		}
		return t, paid, err
	})
}

// Sequence takes one read unit, or a half.
func (s *Store) Sequence(ctx context.Context, key store.Key, eventual bool) (store.Sequence, error) {
	return insist(ctx, s, func() (q store.Sequence, paid bool, err error) {
		bill := charges{{key, meter.ReadUnits(eventual)}}
		if paid = s.pay(&s.reads, bill); paid {
			q, err = s.Store.Sequence(ctx, key, eventual)
		}
		return q, paid, err
	})
}

// Raise takes one write unit.
func (s *Store) Raise(ctx context.Context, key store.Key, position, id int64) error {
	_, err := insist(ctx, s, func() (struct{}, bool, error) {
		if !s.pay(&s.writes, charges{{key, 1}}) {
			return struct{}{}, false, nil
		}
		return struct{}{}, true, s.Store.Raise(ctx, key, position, id)
	})
	return err
}

// The tries and pauses of calls that are safe to repeat, as in package dynamo.
const (
	tries      = 5
	firstPause = 25 * time.Millisecond
)

// insist repeats a call until its units are paid for, at most tries times; then it returns ErrBusy.
func insist[T any](ctx context.Context, s *Store, ask func() (answer T, paid bool, err error)) (T, error) {
	var none T
	for try := range tries {
		if err := rest(ctx, s.latency.draw(s.limits.Latency)); err != nil {
			return none, err
		}
		if answer, paid, err := ask(); paid {
			return answer, err
		}
		if err := rest(ctx, s.latency.pause(try)); err != nil {
			return none, err
		}
	}
	return none, store.ErrBusy
}
