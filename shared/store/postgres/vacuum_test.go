package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/postgres"
	pg "github.com/millrace/millrace/tests/postgres"
)

// What was deleted is vacuumed away by whoever owns the table, unless another process has done so just now; another role leaves it to autovacuum,
// and changes nothing.
func TestWhatWasDeletedIsVacuumed(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	create(t, url)
	s := open(t, url)
	const many = 500
	writes := 0
	write := func(op func(store.Key) store.Op) {
		t.Helper()
		ops := make([]store.Op, many)
		for n := range ops {
			ops[n] = op(store.Key{Table: store.Work, Partition: "p", Sort: fmt.Sprintf("%04d", n)})
		}
		writes++
		if err := s.Write(t.Context(), store.Write{Token: fmt.Sprint("w", writes), Ops: ops}); err != nil {
			t.Fatal(err)
		}
	}
	dead := func() int64 {
		t.Helper()
		tables, _, err := s.Footprints(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			if table.Table == "items" {
				return table.Dead
			}
		}
		t.Fatal("there is no table of items")
		return 0
	}
	die := func() {
		t.Helper()
		write(func(k store.Key) store.Op { return store.Put(store.Item{Key: k, Version: 1}, store.Absent) })
		write(func(k store.Key) store.Op { return store.Delete(k, store.VersionIs(1)) })
		for dead() < many { // the database counts a little later
			if t.Context().Err() != nil {
				t.Fatalf("%d rows are dead, want %d", dead(), many)
			}
		}
	}
	die()
	if took, helped, err := postgres.VacuumOnce(s, t.Context(), many+1, 0); took > 0 || !helped || err != nil || dead() < many {
		t.Errorf("a vacuum of fewer rows than are worth it took %v, %t, %v, and left %d", took, helped, err, dead())
	}
	other := open(t, lesser(t, url, "vacuumless", ""))
	if took, _, err := postgres.VacuumOnce(other, t.Context(), many, 0); took > 0 || err != nil || dead() < many {
		t.Errorf("a vacuum by a role that does not own the table took %v, %v, and left %d", took, err, dead())
	}
	if took, helped, err := postgres.VacuumOnce(s, t.Context(), many, time.Hour); took == 0 || !helped || err != nil || dead() >= many {
		t.Errorf("a vacuum took %v, %t, %v, and left %d dead rows", took, helped, err, dead())
	}
	die()
	if took, _, err := postgres.VacuumOnce(open(t, url), t.Context(), many, time.Hour); took > 0 || err != nil || dead() < many {
		t.Errorf("a vacuum right after that of another process took %v, %v, and left %d", took, err, dead())
	}
}
