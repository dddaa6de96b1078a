package faulty

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Get reads items as they are visible when the request lands.
func (s *Store) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	c := call{method: "Get"}
	if len(keys) > 0 {
		c.key = keys[0]
	}
	return send(ctx, s, request[[]*store.Item]{
		call: c, lost: store.ErrUnavailable,
		land: func(ctx context.Context, _ *dice) (a answer[[]*store.Item]) {
			a.value, a.err = s.service.get(ctx, keys)
			return a
		},
	})
}

// Query reads a range as it is visible when the request lands, or as it was before if it may be eventual.
func (s *Store) Query(ctx context.Context, r store.Range) (store.Page, error) {
	return send(ctx, s, request[store.Page]{
		call: rangeCall("Query", r), lost: store.ErrUnavailable,
		land: func(ctx context.Context, d *dice) (a answer[store.Page]) {
			a.value, a.err = s.service.query(ctx, r, d)
			return a
		},
	})
}

// Write sends w. What was sent may land late, twice, or never, as the faults say.
func (s *Store) Write(ctx context.Context, w store.Write) error {
	sent := w
	sent.NotAfter = time.Time{} // is about leaving this process, not about arriving
	r := request[struct{}]{
		call: writeCall(w), lost: store.ErrUnknown, notAfter: w.NotAfter, advances: w.Advance != nil,
		land: func(ctx context.Context, d *dice) (a answer[struct{}]) {
			a.leave, a.err = s.service.write(ctx, sent, d)
			return a
		},
	}
	if conditional(w) {
		r.echo = func(ctx context.Context, d *dice) { _, _ = s.service.write(ctx, sent, d) }
	}
	_, err := send(ctx, s, r)
	return err
}

// conditional reports whether w has a condition, so that a late repetition cannot undo later Writes.
func conditional(w store.Write) bool {
	for _, op := range w.Ops {
		if !op.Cond.IsAlways() {
			return true
		}
	}
	return false
}

// Remove deletes a range. When it returns an error, all, some or no items may be gone.
func (s *Store) Remove(ctx context.Context, r store.Range) error {
	_, err := send(ctx, s, request[struct{}]{
		call: rangeCall("Remove", r), lost: store.ErrUnavailable,
		land: func(ctx context.Context, _ *dice) (a answer[struct{}]) {
			a.err = s.service.remove(ctx, r)
			return a
		},
	})
	return err
}

// Reserve takes a ticket. A lost response wastes a position; so does a request that is applied twice.
func (s *Store) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	sent := time.Now()
	ticket, err := send(ctx, s, request[store.Ticket]{
		call: call{method: "Reserve", key: key}, lost: store.ErrUnavailable, reserves: true,
		land: func(ctx context.Context, _ *dice) (a answer[store.Ticket]) {
			a.value, a.err = s.service.reserve(ctx, key, ids, now)
			return a
		},
	})
	if err != nil {
		return store.Ticket{}, err
	}
	ticket.Sent = sent
	return ticket, nil
}

// Sequence reads a sequencer as it is when the request lands, or as it was before if it may be eventual.
func (s *Store) Sequence(ctx context.Context, key store.Key, eventual bool) (store.Sequence, error) {
	return send(ctx, s, request[store.Sequence]{
		call: call{method: "Sequence", key: key}, lost: store.ErrUnavailable,
		land: func(ctx context.Context, d *dice) (a answer[store.Sequence]) {
			a.value, a.err = s.service.sequence(ctx, key, eventual, d)
			return a
		},
	})
}

// Raise moves a floor up. When it returns an error, the floor may have moved.
func (s *Store) Raise(ctx context.Context, key store.Key, position, id int64) error {
	_, err := send(ctx, s, request[struct{}]{
		call: call{method: "Raise", key: key}, lost: store.ErrUnavailable,
		land: func(ctx context.Context, _ *dice) (a answer[struct{}]) {
			a.err = s.service.raise(ctx, key, position, id)
			return a
		},
	})
	return err
}

// Date returns the service's date when the request lands.
func (s *Store) Date(ctx context.Context) (time.Time, error) {
	return send(ctx, s, request[time.Time]{
		call: call{method: "Date"}, lost: store.ErrUnavailable,
		land: func(ctx context.Context, _ *dice) (a answer[time.Time]) {
			a.value, a.err = s.service.base.Date(ctx)
			return a
		},
	})
}

// Exclusive returns the base's Exclusive if this Store is its only user, and false if it is one process of many.
func (s *Store) Exclusive() bool { return s.exclusive }

// Advances returns the base's, and false from when a Write has returned ErrNoAdvance.
func (s *Store) Advances() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unable && s.service.base.Advances()
}

// MaxOps returns the base's.
func (s *Store) MaxOps() int { return s.service.base.MaxOps() }

// Ping calls the base's Ping over the network.
func (s *Store) Ping(ctx context.Context) error {
	_, err := send(ctx, s, request[struct{}]{
		call: call{method: "Ping"}, lost: store.ErrUnavailable,
		land: func(ctx context.Context, _ *dice) (a answer[struct{}]) {
			a.err = s.service.base.Ping(ctx)
			return a
		},
	})
	return err
}

// Close waits for the calls under way and closes the base, if it is this Store's own.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	if closed || s.owned == nil {
		return nil
	}
	return s.owned.Close()
}

func rangeCall(method string, r store.Range) call {
	return call{method: method, key: store.Key{Table: r.Table, Partition: r.Partition, Sort: r.From}}
}

// writeCall names a Write by the last of its puts that must be new, which is unique where there is one, or else by its
// first operation.
func writeCall(w store.Write) call {
	c := call{method: "Write", key: w.Ops[0].Item.Key}
	for _, op := range w.Ops {
		if op.Kind == store.OpPut && op.Cond.IsAbsent() {
			c.key = op.Item.Key
		}
	}
	return c
}
