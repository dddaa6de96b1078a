package limited

import (
	"context"
	"errors"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/meter"
)

// Write takes the units of each operation from its partition and its table. A request travels for a third of its time; then a
// transaction holds its items for the second third, at whose end it is applied.
func (s *Store) Write(ctx context.Context, w store.Write) error {
	median := s.limits.Latency
	if len(w.Ops) > 1 {
		median = s.limits.Transaction
	}
	third := s.latency.draw(median) / 3
	if err := rest(ctx, third); err != nil {
		return err
	}
	late := context.WithoutCancel(ctx) // it has arrived
	defer func() { _ = rest(late, third) }()
	paid, err := s.payWrite(late, w)
	switch {
	case err != nil:
		return err
	case !paid:
		return store.ErrBusy
	case len(w.Ops) == 1:
		_ = rest(late, third)
		return s.apply(late, w)
	}
	if !s.hold(w) {
		return store.ErrBusy
	}
	defer s.release(w)
	_ = rest(late, third)
	return s.Store.Write(late, w)
}

// apply applies a single operation, unless a transaction holds its item.
func (s *Store) apply(ctx context.Context, w store.Write) error {
	s.mu.Lock()
	held := w.Ops[0].Kind != store.OpCheck && s.held[w.Ops[0].Item.Key]
	if held {
		s.usage.Conflicts++
	}
	s.mu.Unlock()
	if held {
		return store.ErrBusy
	}
	return s.Store.Write(ctx, w)
}

// payWrite pays for what was there and for what takes its place, whichever is larger. A lone check is a read.
func (s *Store) payWrite(ctx context.Context, w store.Write) (bool, error) {
	items, err := s.Store.Get(ctx, keysOf(w)...)
	if err != nil {
		return false, errors.Join(store.ErrUnavailable, err)
	}
	if len(w.Ops) == 1 && w.Ops[0].Kind == store.OpCheck {
		return s.pay(&s.reads, charges{{w.Ops[0].Item.Key, meter.ReadUnits(false, items[0])}}), nil
	}
	var bill charges
	for i, op := range w.Ops {
		units := meter.WriteUnits(items[i])
		if op.Kind == store.OpPut {
			put := op.Item
			put.Token = w.Token
			units = max(units, meter.WriteUnits(&put))
		}
		if len(w.Ops) > 1 {
			units *= 2
		}
		bill = append(bill, charge{op.Item.Key, float64(units)})
	}
	return s.pay(&s.writes, bill), nil
}

// hold takes a transaction's items, unless another has one of them.
func (s *Store) hold(w store.Write) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range w.Ops {
		if s.held[w.Ops[i].Item.Key] {
			s.usage.Conflicts++
			return false
		}
	}
	for i := range w.Ops {
		s.held[w.Ops[i].Item.Key] = true
	}
	return true
}

func (s *Store) release(w store.Write) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range w.Ops {
		delete(s.held, w.Ops[i].Item.Key)
	}
}

func keysOf(w store.Write) []store.Key {
	keys := make([]store.Key, len(w.Ops))
	for i, op := range w.Ops {
		keys[i] = op.Item.Key
	}
	return keys
}
