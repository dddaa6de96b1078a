package store_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// A write is applied as a whole if all its conditions hold; otherwise nothing is applied, and the Conflict holds what was found.
func Example() {
	ctx := context.Background()
	s := store.NewChecked(memory.New(memory.Options{}))
	key := func(sort string) store.Key { return store.Key{Table: store.Work, Partition: "accounts", Sort: sort} }

	err := s.Write(ctx, store.Write{Token: "open-accounts", Ops: []store.Op{
		store.Put(store.Item{Key: key("ada"), Version: 1, Value: []byte("100")}, store.Absent),
		store.Put(store.Item{Key: key("bob"), Version: 1, Value: []byte("0")}, store.Absent),
	}})
	fmt.Println("opened:", err)

	err = s.Write(ctx, store.Write{Token: "transfer", Ops: []store.Op{
		store.Put(store.Item{Key: key("ada"), Version: 2, Value: []byte("70")}, store.VersionIs(1)),
		store.Put(store.Item{Key: key("bob"), Version: 3, Value: []byte("30")}, store.VersionIs(2)), // fails: it is 1
	}})
	found, failed := store.AsConflict(err).At(1)
	fmt.Println("refused:", failed, "version", found.Version)

	for item, err := range store.All(ctx, s, store.Range{Table: store.Work, Partition: "accounts"}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(item.Key.Sort, string(item.Value))
	}
	// Output:
	// opened: <nil>
	// refused: true version 1
	// ada 100
	// bob 0
}
