package store_test

import (
	"errors"
	"testing"

	"github.com/millrace/millrace/shared/store"
)

// absent is a store that is not there, of the fewest operations.
type absent struct{ store.Store }

// MaxOps returns [store.MaxOps].
func (absent) MaxOps() int { return store.MaxOps }

// What breaks a limit stops before the store behind: a call there would panic, since there is none.
func TestCheckedSendsNothingThatBreaksALimit(t *testing.T) {
	t.Parallel()
	s := store.NewChecked(absent{})
	bad := store.Key{Table: "nowhere", Partition: "p", Sort: "s"}
	good := store.Key{Table: store.Work, Partition: "p", Sort: "s"}
	whole := store.Range{Table: store.Work}
	_, get := s.Get(t.Context(), good, bad)
	_, query := s.Query(t.Context(), whole)
	_, reserve := s.Reserve(t.Context(), bad, 1, 1)
	_, none := s.Reserve(t.Context(), good, 0, 1)
	_, sequence := s.Sequence(t.Context(), bad, false)
	for name, err := range map[string]error{
		"Get": get, "Query": query, "Reserve": reserve, "Reserve of no ids": none, "Sequence": sequence,
		"Write": s.Write(t.Context(), store.Write{Token: "t"}), "Remove": s.Remove(t.Context(), whole), "Raise": s.Raise(t.Context(), bad, 1, 1),
	} {
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s = %v, want ErrInvalid", name, err)
		}
	}
}

func TestNewCheckedChecksOnce(t *testing.T) {
	t.Parallel()
	s := store.NewChecked(struct{ store.Store }{})
	if store.NewChecked(s) != s {
		t.Error("NewChecked of a Checked is another one")
	}
}
