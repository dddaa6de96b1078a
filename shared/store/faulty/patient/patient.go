package patient

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/faulty"
)

// Store repeats calls until they have an outcome.
type Store struct {
	store.Store             // slow, busy and repeating, but each outcome is known
	lossy       store.Store // also loses requests and responses
	wait        time.Duration
}

// New puts a bad network, drawn from a random seed, between base and its caller. A Write waits so long for its first response
// before it is repeated, and twice as long each further time, since repetitions are work for base too. Closing the Store
// closes base.
func New(base store.Store, seed uint64, wait time.Duration) *Store {
	way := faulty.Spread{Max: 20 * time.Microsecond, Rare: 0.02, RareMax: time.Millisecond}
	slow := faulty.Faults{
		Seed: seed, There: way, Back: way, Busy: 0.05, Unavailable: 0.05, Twice: 0.1,
		Lag: time.Millisecond, Apart: 100 * time.Microsecond,
	}
	lossy := faulty.Faults{
		Seed: seed, There: way, Back: way, Busy: 0.05, Twice: 0.1,
		LoseRequest: 0.05, LoseAnswer: 0.1, Echo: 0.1, EchoWithin: time.Millisecond,
	}
	return &Store{
		Store: faulty.New(base, slow),
		lossy: faulty.NewService(base, lossy, nil).Process("lossy"),
		wait:  wait,
	}
}

// Write sends w until it has an outcome. A Write that has a put with the condition Absent is sent where responses get lost,
// since its token tells whether it was applied.
func (s *Store) Write(ctx context.Context, w store.Write) error {
	send := func() error { return s.Store.Write(ctx, w) }
	if repeatable(w) {
		wait := s.wait
		send = func() error {
			patience, end := context.WithTimeout(ctx, wait)
			defer end()
			wait *= 2
			return s.lossy.Write(patience, w)
		}
	}
	_, err := again(ctx, func() (struct{}, error) { return struct{}{}, send() })
	return err
}

func repeatable(w store.Write) bool {
	for _, op := range w.Ops {
		if op.Kind == store.OpPut && op.Cond.IsAbsent() {
			return true
		}
	}
	return false
}

// Get reads items by key.
func (s *Store) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	return again(ctx, func() ([]*store.Item, error) { return s.Store.Get(ctx, keys...) })
}

// Query reads a range.
func (s *Store) Query(ctx context.Context, r store.Range) (store.Page, error) {
	return again(ctx, func() (store.Page, error) { return s.Store.Query(ctx, r) })
}

// Remove deletes a range.
func (s *Store) Remove(ctx context.Context, r store.Range) error {
	_, err := again(ctx, func() (struct{}, error) { return struct{}{}, s.Store.Remove(ctx, r) })
	return err
}

// Reserve takes a ticket.
func (s *Store) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	return again(ctx, func() (store.Ticket, error) { return s.Store.Reserve(ctx, key, ids, now) })
}

// Sequence reads a sequencer.
func (s *Store) Sequence(ctx context.Context, key store.Key, eventual bool) (store.Sequence, error) {
	return again(ctx, func() (store.Sequence, error) { return s.Store.Sequence(ctx, key, eventual) })
}

// Raise moves a floor up.
func (s *Store) Raise(ctx context.Context, key store.Key, position, id int64) error {
	_, err := again(ctx, func() (struct{}, error) { return struct{}{}, s.Store.Raise(ctx, key, position, id) })
	return err
}

// Date returns the store's date.
func (s *Store) Date(ctx context.Context) (time.Time, error) {
	return again(ctx, func() (time.Time, error) { return s.Store.Date(ctx) })
}

// Ping returns nil if the store can be used.
func (s *Store) Ping(ctx context.Context) error {
	_, err := again(ctx, func() (struct{}, error) { return struct{}{}, s.Store.Ping(ctx) })
	return err
}

// Close closes both connections and the base.
func (s *Store) Close() error { return errors.Join(s.lossy.Close(), s.Store.Close()) }

// again repeats a call until it has an outcome, or the caller's context has ended.
func again[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for {
		answer, err := ask()
		retry := errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown) ||
			errors.Is(err, context.DeadlineExceeded) // of the wait for a response
		if ctx.Err() != nil || !retry {
			return answer, err
		}
	}
}
