package journal_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/store/storetest"
)

// TestWhatTheStoreDoesNotTakeIsNotCalledUnavailable: a repetition would fail too, so that the error must not suggest one; and
// the slot is given up, so that readers need not wait for it.
func TestWhatTheStoreDoesNotTakeIsNotCalledUnavailable(t *testing.T) {
	t.Parallel()
	key := store.Key{Table: store.Work, Partition: "p", Sort: "s"}
	for name, test := range map[string]struct {
		value []byte
		want  error
	}{
		"an item that is too large": {bytes.Repeat([]byte("x"), store.MaxValue+1), journal.ErrTooLarge},
		"another reason":            {[]byte("poison"), journal.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := open(t, storetest.Picky{Store: memory.New(memory.Options{})}, journal.Options{})
			_, err := change(t, j, store.Put(store.Item{Key: key, Value: test.value}, store.Always))
			if !errors.Is(err, test.want) || !errors.Is(err, store.ErrInvalid) || errors.Is(err, journal.ErrUnavailable) {
				t.Fatalf("Write = %v, want %v", err, test.want)
			}
			if !journal.Refused(err) {
				t.Errorf("Refused(%v) = false", err)
			}
			if _, err := j.Emit(t.Context(), []event.Event{custom(2)}, nil); err != nil {
				t.Fatal(err)
			}
			answer, err := j.ReadAfter(t.Context(), journal.Request{})
			if err != nil || len(answer.Events) != 1 {
				t.Errorf("ReadAfter = %d events, %v, want the one that was taken", len(answer.Events), err)
			}
		})
	}
}
