package order

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// Bulk is an act on all that a filter has selected, orders or jobs. What is selected is written down, and then done in batches by
// whichever process comes to it: no order is acted on twice.
type Bulk struct {
	ID     string
	Kind   string // the act: an [ActKind], or a [JobAct]
	By     string // name of the token of who asked for it; may be empty
	Count  int    // how many were selected
	Done   int    // how many it was done with
	Failed int    // how many refused it, or were gone
	State  BulkState

	PerSecond int `json:",omitempty"` // so many at most are done in a second; 0: as many as can be

	Replayed bool `json:"-"` // of an act that has begun: by an earlier request with the same idempotency key
}

// BulkState is how far an act on many is.
type BulkState string

// The states of an act on many.
const (
	BulkRunning BulkState = "running"
	BulkStopped BulkState = "stopped" // by somebody; it can be resumed
	BulkDone    BulkState = "done"
)

var (
	// ErrNoBulk is returned for an act on many that does not exist, or has been done or stopped for a week.
	ErrNoBulk = errors.New("order: no such act")
	// ErrNothing is returned if a filter selects nothing.
	ErrNothing = errors.New("order: nothing is selected")
)

const (
	bulkBatch = 50                 // orders or jobs that are acted on at once, between two notes of the progress
	bulkChunk = 4 * bulkBatch      // those that one item lists
	bulkLease = 30 * time.Second   // so long a process that takes an act keeps it to itself after each batch
	bulkSlice = 2 * time.Second    // so long one looks after an act before others' alarms have their turn
	bulkMade  = 10 * time.Minute   // an act that is not complete by then never will be
	bulkKept  = 7 * 24 * time.Hour // an act that is done or stopped can be asked for so long
	bulkGoes  = 8                  // so often a batch is gone over whose orders or jobs fail for no reason of their own
)

// bulk is an act on many as it is stored. It is not there for clients until State is set: what it selects is written before.
type bulk struct {
	Bulk
	Order   *Act   `json:",omitempty"` // of orders
	Job     JobAct `json:",omitempty"` // of jobs
	History bool   `json:",omitempty"` // of finished jobs
	At      int64  // when it was asked for
	Next    int    // index of the first that is not done
	Tries   int    `json:",omitempty"` // how often the batch under way was gone over in vain
	Pace    int64  `json:",omitempty"` // of an act with a rate: not before this the next batch begins
	Owner   string // the process that does it, until Until
	Until   int64  // of an act that is done or stopped: since when

	version int64
}

// The items of an act on many lie in one partition: what it is at "-", what it selects at "l" and the number of the part, and a mark
// for each order that it was done with at "m" and the index. Marks stay as long as the act: a process that has stood still since before a
// batch was done by another finds them.
func bulkPartition(id string) string { return "act/" + store.Fit(id) }

func bulkKey(id string) store.Key { return work(bulkPartition(id), only) }

func (b *bulk) listKey(chunk int) store.Key {
	return work(bulkPartition(b.ID), fmt.Sprintf("l%08d", chunk))
}

func (b *bulk) markKey(index int) store.Key {
	return work(bulkPartition(b.ID), fmt.Sprintf("m%08d", index))
}

// bulkPrefix is what the value of an alarm for an act on many begins with; its id follows.
const bulkPrefix = "act:"

func (b *bulk) alarm(at int64) store.Op {
	return store.Put(store.Item{Key: dueKey(at, bulkPrefix+b.ID), Version: 1, Value: []byte(bulkPrefix + b.ID)}, store.Always)
}

// put returns the operation that writes the act in place of what was read.
func (b *bulk) put() store.Op {
	cond := store.Absent
	if b.version > 0 {
		cond = store.VersionIs(b.version)
	}
	b.version++
	return store.Put(store.Item{Key: bulkKey(b.ID), Version: b.version, Value: encode(b)}, cond)
}

// bulkOf reads an act on many. The error is [ErrNoBulk] if there is none.
func (e *Engine) bulkOf(ctx context.Context, id string) (*bulk, error) {
	items, err := e.get(ctx, bulkKey(id))
	if err != nil {
		return nil, err
	}
	if items[0] == nil {
		return nil, ErrNoBulk
	}
	b := &bulk{version: items[0].Version}
	return b, decode(items[0], b)
}

// start writes an act and what it selects, and lets it begin by the last of some writes: begin gets what belongs in it.
func (e *Engine) start(ctx context.Context, b *bulk, selected []string, begin func(...store.Op) error) error {
	b.ID, b.By, b.At, b.Count = rand.Text(), journal.Actor(ctx), e.micro(), len(selected)
	if err := e.put(ctx, "write an act", b.put(), b.alarm(b.At+bulkMade.Microseconds())); err != nil {
		return err
	}
	if err := e.writeList(ctx, b, selected); err != nil {
		return err
	}
	b.State = BulkRunning
	err := begin(b.put(), b.alarm(b.At))
	if store.AsConflict(err) != nil { // it took so long that it was removed: nobody else removes what was written since
		return errors.Join(err, e.store.Remove(ctx, store.Range{Table: store.Work, Partition: bulkPartition(b.ID)}))
	}
	if err != nil {
		return err
	}
	e.alarms.at(b.At)
	e.callAnother(ctx)
	return nil
}

// writeList writes what an act selects, as many items at once as a write can hold.
func (e *Engine) writeList(ctx context.Context, b *bulk, selected []string) error {
	var ops []store.Op
	size := 0
	flush := func() error {
		err := e.put(ctx, "write what an act selects", ops...)
		ops, size = nil, 0
		return err
	}
	for n := 0; n*bulkChunk < len(selected); n++ {
		value := encode(selected[n*bulkChunk : min((n+1)*bulkChunk, len(selected))])
		if len(ops) > 0 && (size+len(value) > store.MaxWriteBytes || len(ops) == store.MaxOps) {
			if err := flush(); err != nil {
				return err
			}
		}
		ops, size = append(ops, store.Put(store.Item{Key: b.listKey(n), Version: 1, Value: value}, store.Always)), size+len(value)
	}
	return flush()
}

// Bulk returns an act on many. The error is [ErrNoBulk] if there is none.
func (e *Engine) Bulk(ctx context.Context, id string) (Bulk, error) {
	b, err := e.bulkOf(ctx, id)
	if err != nil {
		return Bulk{}, err
	}
	if b.State == "" {
		return Bulk{}, ErrNoBulk
	}
	marks, err := e.marksOf(ctx, b)
	b.Done += len(marks)
	return b.Bulk, err
}

// StopBulk stops an act on many after the batch under way. The errors are [ErrNoBulk], and [ErrState] if it does not run.
func (e *Engine) StopBulk(ctx context.Context, id string) error {
	return e.setBulk(ctx, id, BulkRunning, BulkStopped)
}

// ResumeBulk lets an act on many go on that was stopped. The errors are [ErrNoBulk], and [ErrState] if it is not stopped.
func (e *Engine) ResumeBulk(ctx context.Context, id string) error {
	return e.setBulk(ctx, id, BulkStopped, BulkRunning)
}

// setBulk changes the state of an act. A batch that this process is at is over before.
func (e *Engine) setBulk(ctx context.Context, id string, from, to BulkState) error {
	e.acting <- struct{}{}
	defer func() { <-e.acting }()
	for try := 0; ; try++ {
		b, err := e.bulkOf(ctx, id)
		switch {
		case err != nil:
			return err
		case b.State == "":
			return ErrNoBulk
		case b.State != from:
			return refuse("the act is " + string(b.State))
		}
		now := e.micro()
		due := now
		b.State, b.Owner, b.Until, b.Tries = to, "", now, 0
		if to == BulkStopped {
			due += bulkKept.Microseconds()
		}
		err = e.store.Write(ctx, store.Write{Token: e.token(), Ops: []store.Op{b.put(), b.alarm(due)}})
		if err == nil {
			e.alarms.at(due)
			e.callAnother(ctx)
			return nil
		}
		if try == bulkTries || store.AsConflict(err) == nil {
			return journal.Failure("change an act", err)
		}
	}
}

// bulkTries is how often the state of an act that changes meanwhile is read again.
const bulkTries = 20
