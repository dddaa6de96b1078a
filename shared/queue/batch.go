package queue

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/shared/store"
)

// bundle is a set of operations that are written together or not at all. Many bundles share a write, and one whose conditions
// fail does not prevent the others.
type bundle interface {
	// ops returns the operations, on different keys; none if there is nothing left to do.
	ops() []store.Op
	// meet is called with the item that was found where a condition of ops failed; nil: none.
	meet(kind store.OpKind, found *store.Item)
}

// errContended is returned if each of several tries met a conflict.
var errContended = errors.New("queue: contended")

// writeBundles writes bundles in their order, as many in one write as it holds, each write with the operations that also returns.
// The error is a conflict if a condition of also fails: the remaining bundles are not written then.
func writeBundles[B bundle](ctx context.Context, q *Queue, all []B, also func() []store.Op) error {
	for len(all) > 0 {
		n, err := writeSome(ctx, q, all, also())
		if err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// writeSome writes the first of the bundles, and returns how many are done.
func writeSome[B bundle](ctx context.Context, q *Queue, all []B, also []store.Op) (n int, err error) {
	n = len(all)
	for range tries {
		var ops []store.Op
		var of []int
		if ops, of, n = pack(all[:n], also); len(of) == 0 {
			return n, nil
		}
		err := q.apply(ctx, ops...)
		conflict := store.AsConflict(err)
		if conflict == nil || conflict.Failed[0].Op < len(also) {
			return n, err
		}
		for _, failure := range conflict.Failed {
			all[of[failure.Op-len(also)]].meet(ops[failure.Op].Kind, failure.Found)
		}
	}
	return n, errContended
}

// pack returns also and the operations of the first n bundles, as many as one write holds; of is the bundle's index of each operation
// behind also. Two bundles that touch the same item do not share a write.
func pack[B bundle](all []B, also []store.Op) (ops []store.Op, of []int, n int) {
	ops = slices.Clone(also)
	seen := make(map[store.Key]bool, min(4*len(all), store.MaxOps))
	for i, b := range all {
		own := b.ops()
		twice := slices.ContainsFunc(own, func(op store.Op) bool { return seen[op.Item.Key] })
		if i > 0 && (twice || len(ops)+len(own) > store.MaxOps) {
			return ops, of, i
		}
		for _, op := range own {
			ops, of = append(ops, op), append(of, i)
			seen[op.Item.Key] = true
		}
	}
	return ops, of, len(all)
}

// nothingElse is the also of bundles that need no further operations.
func nothingElse() []store.Op { return nil }
