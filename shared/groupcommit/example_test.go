package groupcommit_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// note is an event that a caller wants on the journal, and where it went.
type note struct {
	path string
	at   journal.Receipt
	err  error
}

// Callers that write at the same time share writes of the journal, at most 100 notes in each.
func Example() {
	j := journal.Open(memory.New(memory.Options{}), journal.Options{})
	defer func() { _ = j.Close() }()

	prepare := func(_ context.Context, notes []*note, _ *store.Conflict) ([]*note, journal.Change, error) {
		var c journal.Change
		for _, n := range notes {
			c.Events = append(c.Events, event.Event{Type: "Noted", Key: event.Key{Path: n.path}, Fields: []byte("")})
		}
		return notes, c, nil
	}
	ended := func(notes []*note, r journal.Receipt, err error) {
		for _, n := range notes {
			n.at, n.err = r, err
		}
	}
	group := groupcommit.New(groupcommit.Options[*note]{
		Batch: func() func(*note) bool {
			count := 0
			return func(*note) bool { count++; return count <= 100 }
		},
		Write: func(ctx context.Context, notes []*note) { journal.WriteTogether(ctx, j, notes, prepare, ended) },
	})

	var callers sync.WaitGroup
	for i := range 50 {
		callers.Go(func() {
			n := &note{path: fmt.Sprint("/n", i)}
			if err := group.Do(context.Background(), n); err != nil || n.err != nil {
				fmt.Println("not written:", err, n.err)
			}
		})
	}
	callers.Wait()
	all, err := j.ReadAfter(context.Background(), journal.Request{Limit: 100})
	fmt.Println(len(all.Events), "events", err)
	// Output: 50 events <nil>
}
