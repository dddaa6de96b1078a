package meter_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/meter"
)

func ExampleMeter() {
	ctx := context.Background()
	m := meter.New(memory.New(memory.Options{}))
	defer m.Close()

	key := store.Key{Table: store.Work, Partition: "tasks", Sort: "1"}
	_ = m.Write(ctx, store.Write{Token: "t1", Ops: []store.Op{
		store.Put(store.Item{Key: key, Version: 1, Value: make([]byte, 1500)}, store.Absent),
	}})
	_, _ = m.Get(ctx, key)

	fmt.Println("write:", m.Usage().Write)
	fmt.Println("total:", m.Usage().Total())
	// Output:
	// write: 1 calls, 2 WCU, 0 RCU
	// total: 2 calls, 2 WCU, 1 RCU
}
