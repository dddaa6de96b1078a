package fileorder_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/fileorder"
	"github.com/millrace/millrace/shared/order"
	"github.com/millrace/millrace/shared/store/memory"
)

// objects is S3 in memory: the texts of objects by their paths, which are their marks too.
type objects struct {
	held  map[string]string
	calls int
	fail  func(call int, before bool) error // nil: no call fails
}

func (o *objects) call(mark string, from fileorder.Object, do func()) error {
	o.calls++
	if o.fail != nil {
		if err := o.fail(o.calls, true); err != nil {
			return err
		}
	}
	if mark != "" && o.held[from.String()] != mark {
		return fileorder.ErrChanged
	}
	do()
	if o.fail != nil {
		return o.fail(o.calls, false)
	}
	return nil
}

func (o *objects) Mark(_ context.Context, at fileorder.Object) (mark string, err error) {
	err = o.call("", at, func() { mark = o.held[at.String()] })
	return mark, err
}

func (o *objects) Copy(_ context.Context, from fileorder.Object, mark string, to fileorder.Object) error {
	return o.call(mark, from, func() { o.held[to.String()] = mark })
}

func (o *objects) Remove(_ context.Context, at fileorder.Object, mark string) error {
	return o.call(mark, at, func() { delete(o.held, at.String()) })
}

// created returns the notification of an object in the directory in.
func created(name string, sequencer int) []byte {
	return fmt.Appendf(nil, `{"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":"in/%s","sequencer":"%d"}}}]}`, name, sequencer)
}

// holds compares the objects.
func (o *objects) holds(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for path, text := range o.held {
		got = append(got, path+" "+text)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the buckets hold %q, want %q", got, want)
	}
}

// inBucket lets the file order be one of objects.
func inBucket(done definition.FileDone) func(*definition.FileOrder) {
	return func(f *definition.FileOrder) { f.Directory, f.Done = "s3://b/in", done }
}

// At the end of its order, an object is removed or moved, and the order finishes then.
func TestObjectsArePutAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		done  definition.FileDone
		holds []string
		word  string
	}{
		"removed":              {definition.FileDone{Remove: true}, nil, "OrderFinished"},
		"moved":                {definition.FileDone{MoveTo: "s3://b2/out"}, []string{"s3://b2/out/a.csv 1"}, "OrderFinished"},
		"moved to the top":     {definition.FileDone{MoveTo: "s3://b2/"}, []string{"s3://b2/a.csv 1"}, "OrderFinished"},
		"moved to where it is": {definition.FileDone{MoveTo: "s3://b/in/"}, []string{"s3://b/in/a.csv 1"}, "OrderSuspended"},
		"moved to a directory": {definition.FileDone{MoveTo: "/out"}, []string{"s3://b/in/a.csv 1"}, "OrderSuspended"},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, inBucket(c.done), func(t *testing.T, b *bench) {
				s3 := &objects{held: map[string]string{"s3://b/in/a.csv": "1"}}
				bucket := fileorder.Bucket{Orders: b.orders, Definitions: b.sets, Objects: s3}
				b.receive(&bucket, "a.csv", 1, false)
				b.want("OrderAdded:a.csv")
				b.run()
				b.pass() // who looks after directories leaves it alone
				b.want()
				b.putAway(&bucket)
				b.want(c.word + ":a.csv")
				s3.holds(t, c.holds...)
			})
		})
	}
}

func (b *bench) receive(bucket *fileorder.Bucket, name string, sequencer int, fails bool) {
	b.t.Helper()
	if err := bucket.Receive(b.t.Context(), created(name, sequencer)); (err != nil) != fails {
		b.t.Errorf("Receive of %s = %v", name, err)
	}
}

func (b *bench) putAway(bucket *fileorder.Bucket) {
	b.t.Helper()
	if err := bucket.PutAway(b.t.Context()); err != nil {
		b.t.Errorf("PutAway: %v", err)
	}
}

// An object that has gone starts no order, whichever notification tells of it; one whose place is taken while it is put away neither
// loses the one that has come, nor keeps its order.
func TestObjectsThatComeWhileOthersArePutAway(t *testing.T) {
	onBoth(t, inBucket(definition.FileDone{MoveTo: "s3://b/out"}), func(t *testing.T, b *bench) {
		s3 := &objects{held: map[string]string{}}
		bucket := fileorder.Bucket{Orders: b.orders, Definitions: b.sets, Objects: s3}
		b.receive(&bucket, "a.csv", 1, false)
		b.want() // it has gone
		s3.held["s3://b/in/a.csv"] = "2"
		b.receive(&bucket, "a.csv", 2, false)
		b.want("OrderAdded:a.csv")
		s3.held["s3://b/in/a.csv"] = "3"
		b.receive(&bucket, "a.csv", 3, false) // belongs to the order that is under way
		b.run()
		b.receive(&bucket, "a.csv", 3, true) // perhaps that is not put away any more
		s3.fail = func(call int, before bool) error {
			if before && call == s3.calls && s3.held["s3://b/out/a.csv"] == "3" {
				s3.held["s3://b/in/a.csv"] = "4" // between copying and removing
			}
			return nil
		}
		b.want()
		b.putAway(&bucket)
		b.want("OrderFinished:a.csv")
		s3.fail = nil
		s3.holds(t, "s3://b/in/a.csv 4", "s3://b/out/a.csv 3")
		b.receive(&bucket, "a.csv", 4, false)
		b.want("OrderAdded:a.csv")
		b.run()
		b.putAway(&bucket)
		b.want("OrderFinished:a.csv")
		b.receive(&bucket, "a.csv", 4, false) // once more
		b.want()
		s3.holds(t, "s3://b/out/a.csv 4")
	})
}

// What S3 refuses blacklists the order; resuming it tries again, and finishes it whatever comes of that.
func TestAnObjectThatS3Refuses(t *testing.T) {
	onBoth(t, inBucket(definition.FileDone{Remove: true}), func(t *testing.T, b *bench) {
		s3 := &objects{held: map[string]string{"s3://b/in/a.csv": "1"}}
		bucket := fileorder.Bucket{Orders: b.orders, Definitions: b.sets, Objects: s3}
		b.receive(&bucket, "a.csv", 1, false)
		b.run()
		b.want("OrderAdded:a.csv")
		s3.fail = func(int, bool) error { return fmt.Errorf("%w: AccessDenied", fileorder.ErrRefused) }
		b.putAway(&bucket)
		b.want("OrderSuspended:a.csv")
		if err := b.orders.Act(t.Context(), "/c", "s3://b/in/a.csv", order.Act{Kind: order.Resume}); err != nil {
			t.Fatal(err)
		}
		b.putAway(&bucket)
		if got := b.events(); !strings.Contains(got, "OrderFinished:a.csv") {
			t.Errorf("events: %s, want OrderFinished", got)
		}
		s3.holds(t, "s3://b/in/a.csv 1")
	})
}

// Whatever call of S3 or of the orders the process dies at, or S3 cannot be reached: the next one goes on, and the object is moved once.
func TestAProcessThatDiesNeitherLosesNorDoublesAnObject(t *testing.T) {
	t.Parallel()
	died := 0
	for at := 1; at <= 5; at++ {
		for _, before := range []bool{true, false} {
			for _, of := range []string{"S3", "orders"} {
				b := setup(t, memory.New(memory.Options{}), inBucket(definition.FileDone{MoveTo: "s3://b/out"}))
				s3 := &objects{held: map[string]string{"s3://b/in/a.csv": "1"}}
				bucket := fileorder.Bucket{Orders: b.orders, Definitions: b.sets, Objects: s3}
				b.receive(&bucket, "a.csv", 1, false)
				b.run()
				if s3.calls = 0; of == "S3" {
					s3.fail = func(call int, first bool) error {
						if call == at && first == before {
							return errKilled
						}
						return nil
					}
				} else {
					bucket.Orders = &mortal{Orders: b.orders, left: at, before: before}
				}
				if err := bucket.PutAway(t.Context()); err == nil {
					continue
				} else if !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				died++
				s3.fail, bucket.Orders = nil, b.orders
				b.putAway(&bucket)
				b.want("OrderAdded:a.csv", "OrderFinished:a.csv")
				s3.holds(t, "s3://b/out/a.csv 1")
			}
		}
	}
	if died != 2*3+2*2 { // marking, copying, removing; marking, finishing
		t.Errorf("%d processes died", died)
	}
}

// An order whose file order is not declared any more is blacklisted, and its object stays.
func TestAnObjectWhoseFileOrderIsGone(t *testing.T) {
	onBoth(t, inBucket(definition.FileDone{Remove: true}), func(t *testing.T, b *bench) {
		s3 := &objects{held: map[string]string{"s3://b/in/a.csv": "1"}}
		bucket := fileorder.Bucket{Orders: b.orders, Definitions: b.sets, Objects: s3}
		b.receive(&bucket, "a.csv", 1, false)
		b.run()
		b.sets.set.FileOrders[0].Pattern = "*.txt"
		before := maps.Clone(s3.held)
		b.putAway(&bucket)
		b.want("OrderAdded:a.csv", "OrderSuspended:a.csv")
		if !maps.Equal(s3.held, before) {
			t.Errorf("the bucket holds %v, want %v", s3.held, before)
		}
	})
}
