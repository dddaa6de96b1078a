package storetest

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Picky is a store that refuses values with the word poison, as a store may within its limits.
type Picky struct {
	store.Store
	Pause time.Duration // before each write, so that writes are shared; default none
}

// Write returns [store.ErrInvalid] for a value that the store refuses.
func (p Picky) Write(ctx context.Context, w store.Write) error {
	time.Sleep(p.Pause)
	for _, op := range w.Ops {
		if bytes.Contains(op.Item.Value, []byte("poison")) {
			return fmt.Errorf("%w: poison", store.ErrInvalid)
		}
	}
	return p.Store.Write(ctx, w)
}
