package journal_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// ailing is a store whose writes and tickets fail for ever in some way.
type ailing struct {
	store.Store
	shared  bool
	reserve func() error
	write   func(ctx context.Context, w store.Write) error // nil: it is applied
}

func (a ailing) Exclusive() bool { return !a.shared }

func (a ailing) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	if a.reserve != nil {
		return store.Ticket{}, a.reserve()
	}
	return a.Store.Reserve(ctx, key, ids, now)
}

func (a ailing) Write(ctx context.Context, w store.Write) error {
	if !w.NotAfter.IsZero() && time.Now().After(w.NotAfter) {
		return store.ErrTooLate
	}
	if err := a.write(ctx, w); err != nil {
		return err
	}
	return a.Store.Write(ctx, w)
}

// A store that never recovers ends an append after Timing.Append, with the truth: nothing was changed, or it is not known.
func TestAnAppendEndsAlthoughTheStoreNeverRecovers(t *testing.T) {
	t.Parallel()
	always := func(err error) func(context.Context, store.Write) error {
		return func(context.Context, store.Write) error { return err }
	}
	for name, test := range map[string]struct {
		reserve func() error
		write   func(context.Context, store.Write) error
		want    error
	}{
		"no tickets":    {func() error { return store.ErrBusy }, always(nil), journal.ErrUnavailable},
		"busy":          {nil, always(store.ErrBusy), journal.ErrUnavailable},
		"away":          {nil, always(store.ErrUnavailable), journal.ErrUnavailable},
		"mute":          {nil, always(store.ErrUnknown), journal.ErrUnknownOutcome},
		"always behind": {nil, always(store.ErrTooLate), journal.ErrUnavailable},
		"the item is busy, the journal is not": {nil, func(_ context.Context, w store.Write) error {
			if len(w.Ops) > 1 {
				return store.ErrBusy
			}
			return nil
		}, journal.ErrUnavailable},
		"it hangs": {nil, func(ctx context.Context, _ store.Write) error {
			if ctx.Done() == nil {
				return store.ErrUnknown
			}
			<-ctx.Done()
			return store.ErrUnknown
		}, journal.ErrUnknownOutcome},
	} {
		for _, shared := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := ailing{memory.New(memory.Options{}), shared, test.reserve, test.write}
					j := open(t, s, journal.Options{})
					began := time.Now()
					_, err := change(t, j, store.Put(store.Item{Key: store.Key{Table: store.Work, Partition: "p", Sort: "s"}}, store.Always))
					if took := time.Since(began); !errors.Is(err, test.want) || took > 13*time.Second {
						t.Errorf("shared %t: Write = %v after %v, want %v after some 10 s", shared, err, took, test.want)
					}
					if other := other(test.want); errors.Is(err, other) {
						t.Errorf("Write = %v, which is %v too", err, other)
					}
				})
			})
		}
	}
}

func other(err error) error {
	if errors.Is(err, journal.ErrUnavailable) {
		return journal.ErrUnknownOutcome
	}
	return journal.ErrUnavailable
}

// What an append reads first counts too: a store that hangs is not the end of the caller's patience.
func TestAnAppendThatCannotReadIsUnavailable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := open(t, ailing{Store: memory.New(memory.Options{}), shared: true}, journal.Options{Timing: journal.Timing{Append: 3 * time.Second}})
		began := time.Now()
		_, err := j.Write(t.Context(), func(ctx context.Context, _ *store.Conflict) (journal.Change, error) {
			<-ctx.Done()
			return journal.Change{Events: []event.Event{custom(1)}}, ctx.Err()
		})
		if took := time.Since(began); !errors.Is(err, journal.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || took != 3*time.Second {
			t.Errorf("Write = %v after %v, want ErrUnavailable after 3 s", err, took)
		}
	})
}
