package store

import (
	"context"
	"fmt"
	"sync"
	"unicode/utf8"
)

// Checked is a [Store] that refuses what breaks a limit of this package, by [ErrInvalid], and passes on the rest. So backends and
// wrappers have nothing to check, and all refuse the same. Whatever builds on a Store uses it through a Checked.
type Checked struct {
	Store // behind the checks
}

// NewChecked puts the checks before s, once: of a Checked it returns that one. Closing it closes s.
func NewChecked(s Store) *Checked {
	if c, is := s.(*Checked); is {
		return c
	}
	return &Checked{s}
}

// Get checks the keys.
func (c *Checked) Get(ctx context.Context, keys ...Key) ([]*Item, error) {
	for i := range keys {
		if err := keys[i].validate(); err != nil {
			return nil, err
		}
	}
	return c.Store.Get(ctx, keys...)
}

// Query checks the range.
func (c *Checked) Query(ctx context.Context, r Range) (Page, error) {
	if err := r.validate(); err != nil {
		return Page{}, err
	}
	return c.Store.Query(ctx, r)
}

// Write checks the operations. The error names the one that breaks a limit.
func (c *Checked) Write(ctx context.Context, w Write) error {
	if err := w.validate(c.MaxOps()); err != nil {
		return err
	}
	if w.Advance != nil && !c.Advances() {
		return ErrNoAdvance // whoever has asked a moment ago may take a ticket that is reserved
	}
	return c.Store.Write(ctx, w)
}

// Remove checks the range.
func (c *Checked) Remove(ctx context.Context, r Range) error {
	if err := r.validate(); err != nil {
		return err
	}
	return c.Store.Remove(ctx, r)
}

// Reserve checks the key and the number of ids. The clock is the backend's to check.
func (c *Checked) Reserve(ctx context.Context, key Key, ids int, now int64) (Ticket, error) {
	if err := key.validate(); err != nil {
		return Ticket{}, err
	}
	if ids < 1 {
		return Ticket{}, fmt.Errorf("%w: a ticket for %d ids, want at least 1", ErrInvalid, ids)
	}
	return c.Store.Reserve(ctx, key, ids, now)
}

// Sequence checks the key.
func (c *Checked) Sequence(ctx context.Context, key Key, eventual bool) (Sequence, error) {
	if err := key.validate(); err != nil {
		return Sequence{}, err
	}
	return c.Store.Sequence(ctx, key, eventual)
}

// Raise checks the key.
func (c *Checked) Raise(ctx context.Context, key Key, position, id int64) error {
	if err := key.validate(); err != nil {
		return err
	}
	return c.Store.Raise(ctx, key, position, id)
}

func (w *Write) validate(most int) error {
	if w.Token == "" {
		return fmt.Errorf("%w: a write needs a token", ErrInvalid)
	}
	if len(w.Ops) == 0 || len(w.Ops) > most {
		return fmt.Errorf("%w: %d operations, want 1 to %d", ErrInvalid, len(w.Ops), most)
	}
	total := 0
	for i := range w.Ops {
		if err := w.Ops[i].validate(); err != nil {
			return fmt.Errorf("%w (op %d)", err, i)
		}
		total += len(w.Ops[i].Item.Value)
	}
	if total > MaxWriteBytes {
		return fmt.Errorf("%w: %d bytes of values, at most %d", ErrTooLarge, total, MaxWriteBytes)
	}
	if a := w.Advance; a != nil && (a.From < 0 || a.FirstID < 1 || a.LastID < a.FirstID || a.LastID > MaxID) {
		return fmt.Errorf("%w: an Advance from position %d with the ids %d to %d", ErrInvalid, a.From, a.FirstID, a.LastID)
	}
	return w.distinct()
}

func (w *Write) distinct() error {
	if len(w.Ops) == 1 {
		return nil
	}
	seen, _ := seenKeys.Get().(map[Key]struct{})
	defer func() { clear(seen); seenKeys.Put(seen) }()
	for i := range w.Ops {
		key := w.Ops[i].Item.Key
		if _, twice := seen[key]; twice {
			return fmt.Errorf("%w: two operations on %v (op %d)", ErrInvalid, key, i)
		}
		seen[key] = struct{}{}
	}
	return nil
}

// seenKeys holds empty maps, to be used again.
var seenKeys = sync.Pool{New: func() any { return map[Key]struct{}{} }}

func (op *Op) validate() error {
	if err := op.Item.Key.validate(); err != nil {
		return err
	}
	switch op.Kind {
	case OpPut:
		if op.Item.Version < 1 {
			return fmt.Errorf("%w: version %d, want at least 1", ErrInvalid, op.Item.Version)
		}
		if len(op.Item.Value) > MaxValue {
			return fmt.Errorf("%w: value of %d bytes, at most %d", ErrTooLarge, len(op.Item.Value), MaxValue)
		}
	case OpDelete:
	case OpCheck:
		if op.Cond.IsAlways() {
			return fmt.Errorf("%w: a check needs a condition", ErrInvalid)
		}
	default:
		return fmt.Errorf("%w: operation of no kind", ErrInvalid)
	}
	return nil
}

func (k *Key) validate() error {
	switch k.Table {
	case Journal, Work, Definitions:
	default:
		return fmt.Errorf("%w: no table %q", ErrInvalid, k.Table)
	}
	switch {
	case k.Partition == "" || len(k.Partition) > MaxPartition || !utf8.ValidString(k.Partition):
		return fmt.Errorf("%w: partition key of %d bytes, want 1 to %d of UTF-8", ErrInvalid, len(k.Partition), MaxPartition)
	case k.Sort == "" || len(k.Sort) > MaxSort || !utf8.ValidString(k.Sort):
		return fmt.Errorf("%w: sort key of %d bytes, want 1 to %d of UTF-8", ErrInvalid, len(k.Sort), MaxSort)
	}
	return nil
}

func (r *Range) validate() error {
	key := Key{Table: r.Table, Partition: r.Partition, Sort: "-"}
	if err := key.validate(); err != nil {
		return fmt.Errorf("range: %w", err)
	}
	if !utf8.ValidString(r.From) || !utf8.ValidString(r.To) {
		return fmt.Errorf("%w: the ends of a range must be UTF-8: %q, %q", ErrInvalid, r.From, r.To)
	}
	return nil
}
