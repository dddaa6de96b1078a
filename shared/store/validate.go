package store

import (
	"fmt"
	"unicode/utf8"
)

// Validate checks w against the limits of this package. Every backend calls it before anything else, so that all refuse the
// same. The error is [ErrInvalid] and names the operation.
func (w Write) Validate() error {
	if w.Token == "" {
		return fmt.Errorf("%w: a write needs a token", ErrInvalid)
	}
	if len(w.Ops) == 0 || len(w.Ops) > MaxOps {
		return fmt.Errorf("%w: %d operations, want 1 to %d", ErrInvalid, len(w.Ops), MaxOps)
	}
	total := 0
	for i, op := range w.Ops {
		if err := op.validate(); err != nil {
			return fmt.Errorf("%w (op %d)", err, i)
		}
		total += len(op.Item.Value)
	}
	if total > MaxWriteBytes {
		return fmt.Errorf("%w: %d bytes of values, at most %d", ErrTooLarge, total, MaxWriteBytes)
	}
	return w.distinct()
}

func (w Write) distinct() error {
	if len(w.Ops) == 1 {
		return nil
	}
	seen := make(map[Key]struct{}, len(w.Ops))
	for i, op := range w.Ops {
		if _, twice := seen[op.Item.Key]; twice {
			return fmt.Errorf("%w: two operations on %v (op %d)", ErrInvalid, op.Item.Key, i)
		}
		seen[op.Item.Key] = struct{}{}
	}
	return nil
}

func (op Op) validate() error {
	if err := op.Item.Key.Validate(); err != nil {
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

// Validate checks a key against the limits of this package. The error is [ErrInvalid].
func (k Key) Validate() error {
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

// Mine reports whether a conflict shows that w has been applied before: an item that w puts was found carrying w's
// token. Backends call it before they return a Conflict.
func (w Write) Mine(c *Conflict) bool {
	for _, f := range c.Failed {
		if w.Ops[f.Op].Kind == OpPut && f.Found != nil && f.Found.Token == w.Token {
			return true
		}
	}
	return false
}
