package faulty

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Service is a store behind a network, which all processes share.
type Service struct {
	base   store.Store
	faults Faults
	trace  func(Step)

	mu        sync.RWMutex // orders Writes with their versions in recent
	recent    recent
	locked    map[store.Key]time.Time // by a Write whose items are becoming visible
	sequences map[store.Key][]reading
}

// reading is what a sequencer held from a moment on.
type reading struct {
	from     time.Time
	sequence store.Sequence
}

// Step is one thing that happened to a request, for a trace.
type Step struct {
	At      time.Time
	Process string
	Call    string // method and key
	What    string // such as "landed"
	Err     error  // nil for success
}

// NewService puts base behind a network. The caller closes base. The trace, if not nil, is called with each step of each
// request, concurrently.
func NewService(base store.Store, faults Faults, trace func(Step)) *Service {
	return &Service{
		base: base, faults: faults, trace: trace,
		recent:    recent{keep: faults.Lag + faults.Apart, pages: map[partition]map[string][]version{}},
		locked:    map[store.Key]time.Time{},
		sequences: map[store.Key][]reading{},
	}
}

// remembers reports whether reads may return old versions.
func (s *Service) remembers() bool { return s.recent.keep > 0 }

// write applies w now, and returns when its effect is wholly visible.
func (s *Service) write(ctx context.Context, w store.Write, d *dice) (visible time.Time, err error) {
	if s.faults.Untold {
		if err := s.untold(ctx, w); err != nil {
			return time.Now(), err
		}
	}
	return s.apply(ctx, w, d)
}

// untold returns the conflict of a Write whose conditions do not hold, without the items that were found. The base would
// have known a repeated Write by its token.
func (s *Service) untold(ctx context.Context, w store.Write) error {
	keys := make([]store.Key, len(w.Ops))
	for i, op := range w.Ops {
		keys[i] = op.Item.Key
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	items, err := s.base.Get(ctx, keys...)
	if err != nil {
		return certain(err)
	}
	var c store.Conflict
	for i, op := range w.Ops {
		if !op.Cond.Holds(items[i]) {
			c.Failed = append(c.Failed, store.Failure{Op: i})
		}
	}
	if c.Failed != nil {
		return &c
	}
	return nil
}

func (s *Service) apply(ctx context.Context, w store.Write, d *dice) (visible time.Time, err error) {
	if !s.remembers() {
		return time.Now(), s.base.Write(ctx, w)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.recent.forget(now)
	if s.isLocked(w, now) {
		return now, store.ErrBusy
	}
	keys := make([]store.Key, len(w.Ops))
	for i, op := range w.Ops {
		keys[i] = op.Item.Key
	}
	before, err := s.base.Get(ctx, keys...)
	if err != nil {
		return now, certain(err)
	}
	if err := s.base.Write(ctx, w); err != nil {
		return now, err
	}
	after, err := s.base.Get(ctx, keys...)
	if err != nil {
		return now, store.ErrUnknown
	}
	if a := w.Advance; a != nil {
		sequence, err := s.base.Sequence(ctx, a.Key, false)
		if err != nil {
			return now, store.ErrUnknown
		}
		s.read(a.Key, sequence)
		for i, key := range keys { // position and items are there at one moment
			if !same(before[i], after[i]) {
				s.recent.note(key, before[i], after[i], now)
			}
		}
		return now, nil
	}
	return s.reveal(keys, before, after, now, d), nil
}

// reveal lets the items of a Write appear one by one, and locks them until the last has.
func (s *Service) reveal(keys []store.Key, before, after []*store.Item, now time.Time, d *dice) (visible time.Time) {
	visible = now
	for i, key := range keys {
		from := now
		if len(keys) > 1 {
			from = now.Add(d.between(0, s.faults.Apart))
		}
		if from.After(visible) {
			visible = from
		}
		if !same(before[i], after[i]) {
			s.recent.note(key, before[i], after[i], from)
		}
	}
	if visible.After(now) {
		for _, key := range keys {
			s.locked[key] = visible
		}
	}
	return visible
}

// isLocked reports whether another Write is under way on one of w's items, as DynamoDB's TransactionConflict does.
func (s *Service) isLocked(w store.Write, now time.Time) bool {
	for _, op := range w.Ops {
		until, locked := s.locked[op.Item.Key]
		if locked && until.After(now) {
			return true
		}
		delete(s.locked, op.Item.Key)
	}
	return false
}

func same(a, b *store.Item) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Version == b.Version && a.Token == b.Token && bytes.Equal(a.Value, b.Value)
}

// get reads items as they are visible now.
func (s *Service) get(ctx context.Context, keys []store.Key) ([]*store.Item, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	items, err := s.base.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for i, key := range keys {
		if item, known := s.recent.view(key, now); known {
			items[i] = item
		}
	}
	return items, nil
}

// query reads a range as it is visible now, or, if it may be eventual, each item as it was a while ago.
func (s *Service) query(ctx context.Context, r store.Range, d *dice) (store.Page, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	past := s.past(r, d)
	wider := r
	wider.Eventual = false
	if r.Limit > 0 {
		wider.Limit += len(past)
	}
	page, err := s.base.Query(ctx, wider)
	if err != nil || len(past) == 0 {
		return page, err
	}
	return overlay(r, page, past), nil
}

// past returns the items of the range for which a read returns another version than the base has; nil for no item.
func (s *Service) past(r store.Range, d *dice) map[string]*store.Item {
	past := map[string]*store.Item{}
	now := time.Now()
	for _, sort := range s.recent.known(r) {
		moment := now
		if r.Eventual {
			moment = now.Add(-d.between(0, s.faults.Lag))
		}
		key := store.Key{Table: r.Table, Partition: r.Partition, Sort: sort}
		if item, known := s.recent.view(key, moment); known {
			past[sort] = item
		}
	}
	return past
}

func (s *Service) remove(ctx context.Context, r store.Range) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent.noteRemoval(r, time.Now())
	return s.base.Remove(ctx, r)
}

func (s *Service) reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ticket, err := s.base.Reserve(ctx, key, ids, now)
	if err == nil {
		s.read(key, ticket.Sequence)
	}
	return ticket, err
}

func (s *Service) raise(ctx context.Context, key store.Key, position, id int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.base.Raise(ctx, key, position, id); err != nil {
		return err
	}
	sequence, err := s.base.Sequence(ctx, key, false)
	if err == nil {
		s.read(key, sequence)
	}
	return err
}

// read remembers what a sequencer holds now.
func (s *Service) read(key store.Key, sequence store.Sequence) {
	now := time.Now()
	readings := s.sequences[key]
	for len(readings) > 1 && readings[1].from.Add(s.recent.keep).Before(now) {
		readings = readings[1:]
	}
	s.sequences[key] = append(readings, reading{from: now, sequence: sequence})
}

func (s *Service) sequence(ctx context.Context, key store.Key, eventual bool, d *dice) (store.Sequence, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sequence, err := s.base.Sequence(ctx, key, false)
	if err != nil || !eventual || s.faults.Lag == 0 {
		return sequence, err
	}
	moment := time.Now().Add(-d.between(0, s.faults.Lag))
	readings := s.sequences[key]
	for i := len(readings) - 1; i > 0; i-- {
		if !readings[i].from.After(moment) {
			return sequence, nil
		}
		sequence = readings[i-1].sequence
	}
	return sequence, nil
}

// certain returns the error of a Write that was not sent for a read's error.
func certain(err error) error {
	if errors.Is(err, store.ErrBusy) {
		return store.ErrBusy
	}
	return errors.Join(store.ErrUnavailable, err)
}
