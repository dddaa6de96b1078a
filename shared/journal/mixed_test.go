package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// reaching notes which position the newest generation reaches with each change of the manifest. It calls then before one of
// those changes, and refuses every write after it.
type reaching struct {
	store.Store
	mu   sync.Mutex
	left int    // changes up to the one before which then is called; 0: it is not
	then func() // what other processes do meanwhile
	dead bool
	at   []int64
}

// Write writes, and notes changes of the manifest.
func (r *reaching) Write(ctx context.Context, w store.Write) error {
	r.mu.Lock() // parts are written side by side
	defer r.mu.Unlock()
	var m struct {
		Newest struct{ Ledger struct{ Position int64 } }
	}
	manifest := w.Ops[0].Item.Key.Sort == "newest"
	if manifest && r.left > 0 {
		if r.left--; r.left == 0 {
			r.then()
		}
	}
	if r.dead {
		return store.ErrClosed
	}
	err := r.Store.Write(ctx, w)
	if manifest && err == nil {
		err = json.Unmarshal(w.Ops[0].Item.Value, &m)
		r.at = append(r.at, m.Newest.Ledger.Position)
		r.dead = r.then != nil && r.left == 0
	}
	return err
}

// A process of another version, with one fold more, stores a base slowly, and dies. Other processes have meanwhile extended
// their generation and evicted slots up to it: the generation that replaces it must not be older.
func TestAGenerationIsNeverReplacedByAnOlderOne(t *testing.T) {
	t.Parallel()
	const changes = 3 // of the manifest: a base is begun, stored and complete
	for stop := range changes {
		m := memory.New(memory.Options{})
		keep := journal.Retention{Events: 1}
		r := &reaching{Store: m}
		before := open(t, r, journal.Options{Folds: []journal.Fold{counter}, Retention: keep})
		goOn := func() {
			t.Helper()
			for range 5 {
				if _, err := before.Emit(t.Context(), []event.Event{{Type: "E", Key: event.Key{Path: "/a"}}}, nil); err != nil {
					t.Fatal(err)
				}
			}
			if swept, err := before.Sweep(t.Context()); err != nil || swept.Floor == 0 {
				t.Fatalf("swept %+v, %v", swept, err)
			}
		}
		goOn()
		f := &reaching{Store: m, left: stop + 1, then: goOn}
		after := open(t, f, journal.Options{Folds: []journal.Fold{counter, registry}, Retention: keep})
		if _, err := after.Sweep(t.Context()); err != nil && !errors.Is(err, journal.ErrUnavailable) {
			t.Fatal(err)
		}
		goOn()
		for i, at := range r.at[1:] {
			if at < r.at[i] {
				t.Errorf("frozen before change %d: the newest generation reaches %v: it falls", stop+1, r.at)
			}
		}
	}
}
