package fileorder

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/order"
)

// Object is where an object of S3 lies.
type Object struct{ Bucket, Key string }

// String returns the object's path, s3://BUCKET/KEY, which is the id of its order.
func (o Object) String() string { return bucketRoot + o.Bucket + "/" + o.Key }

const bucketRoot = "s3://"

// objectAt returns the object with that path; ok is false if it is none of an object.
func objectAt(path string) (o Object, ok bool) {
	rest, is := strings.CutPrefix(path, bucketRoot)
	o.Bucket, o.Key, ok = strings.Cut(rest, "/")
	return o, is && ok
}

// Objects are the objects of S3; a client of package s3 is one. An error that is an [ErrRefused] will not pass by itself.
type Objects interface {
	// Mark returns what tells an object from others that come to its place; empty if there is none.
	Mark(ctx context.Context, o Object) (mark string, err error)
	// Copy copies an object, in place of what is there. The error is [ErrChanged] if it is not the marked one any more.
	Copy(ctx context.Context, from Object, mark string, to Object) error
	// Remove removes an object. The error is [ErrChanged] if it is not the marked one any more.
	Remove(ctx context.Context, o Object, mark string) error
}

var (
	// ErrChanged is returned for an object that is not the marked one any more: it has gone, or another one has come to its place.
	ErrChanged = errors.New("fileorder: the object is not there any more")
	// ErrRefused is returned for what S3 refuses however often it is tried.
	ErrRefused = errors.New("fileorder: S3 refuses")
)

// keeps reports whether a file order leaves its objects where they are.
func keeps(f definition.FileOrder) bool { return f.Done == definition.FileDone{} }

// PutAway puts away the objects of all orders that are at their ends. One that fails does not keep the others: it is left to the next
// call. Any number of processes may call it at the same time.
func (b *Bucket) PutAway(ctx context.Context) (failed error) {
	set, err := b.Definitions.Current(ctx)
	if err != nil {
		return err
	}
	inBucket := func(f definition.FileOrder) bool { return !isLocal(f) }
	if !slices.ContainsFunc(set.FileOrders, inBucket) {
		return nil
	}
	for after, more := "", true; more && ctx.Err() == nil; more = after != "" {
		var waiting []order.Unfiled
		waiting, after, err = b.Orders.Unfiled(ctx, after, fileBatch)
		failed = errors.Join(failed, err)
		all := filings(waiting, func(id string) bool { _, is := objectAt(id); return is })
		each(all, func(f *filing) error { return b.file(ctx, set.FileOrders, f) })
		failed = errors.Join(failed, failures(all))
	}
	return failed
}

// file puts away the object of an order, and ends the order.
func (b *Bucket) file(ctx context.Context, orders []definition.FileOrder, f *filing) (err error) {
	if f.of, f.keep = findBucket(orders, &f.Unfiled); f.keep == nil && !f.Suspended {
		err = b.away(ctx, f)
	}
	if errors.Is(err, ErrRefused) {
		f.keep, err = err, nil
	}
	if err != nil {
		return err
	}
	return f.finish(ctx, b.Orders, b.Log)
}

// away marks the object of an order, and moves or removes it if it is the marked one still; otherwise that was done before.
func (b *Bucket) away(ctx context.Context, f *filing) error {
	from, _ := objectAt(f.ID)
	mark, err := b.Objects.Mark(ctx, from)
	if err != nil || mark == "" || keeps(f.of) {
		return err
	}
	if f.Mark == "" {
		if f.Mark, err = b.Orders.MarkFile(ctx, f.Unfiled, mark); err != nil {
			return err
		}
	}
	if mark != f.Mark {
		return nil
	}
	if f.of.Done.MoveTo != "" {
		err = b.copy(ctx, from, mark, f.of.Done.MoveTo)
	}
	if err == nil {
		err = b.Objects.Remove(ctx, from, mark)
	}
	if errors.Is(err, ErrChanged) {
		return nil
	}
	return err
}

// copy copies an object to a directory, under its name.
func (b *Bucket) copy(ctx context.Context, from Object, mark, directory string) error {
	to, ok := objectAt(strings.TrimSuffix(directory, "/") + "/" + path.Base(from.Key))
	if !ok || to == from {
		return fmt.Errorf("%w: an object cannot be moved from %s to %s", ErrRefused, from, directory)
	}
	return b.Objects.Copy(ctx, from, mark, to)
}

// findBucket returns the file order that started an order.
func findBucket(orders []definition.FileOrder, u *order.Unfiled) (definition.FileOrder, error) {
	for _, f := range orders {
		if f.Chain == u.Chain && isOf(f, u.ID) {
			return f, nil
		}
	}
	return definition.FileOrder{}, errNoOrder
}

// isOf reports whether a file order starts an order for the object with a path.
func isOf(f definition.FileOrder, id string) bool {
	directory, name := path.Split(id)
	return !isLocal(f) && name != "" && strings.TrimSuffix(f.Directory, "/")+"/" == directory && matches(f, name)
}
