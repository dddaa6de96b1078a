package postgres_test

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/shared/store"
	pg "github.com/millrace/millrace/tests/postgres"
)

// BenchmarkWrite writes as the task engine does: of each four operations one replaces an item, two put one, and one deletes one.
func BenchmarkWrite(b *testing.B) {
	for _, ops := range []int{1, 4, 40} {
		b.Run(fmt.Sprint(ops, " ops"), func(b *testing.B) {
			s := openBench(b)
			value := make([]byte, 300)
			version := int64(0)
			at := func(kind string, n int64) store.Key {
				return store.Key{Table: store.Work, Partition: "bench", Sort: fmt.Sprintf("%s/%010d", kind, n)}
			}
			for b.Loop() {
				version++
				w := store.Write{Token: fmt.Sprint(version)}
				for n := range int64(ops) {
					put := store.Item{Version: version, Value: value}
					switch n % 4 {
					case 0:
						put.Key = at("state", n)
						cond := store.VersionIs(version - 1)
						if version == 1 {
							cond = store.Absent
						}
						w.Ops = append(w.Ops, store.Put(put, cond))
					case 1, 2:
						put.Key = at("new", version*100+n)
						w.Ops = append(w.Ops, store.Put(put, store.Absent))
					case 3:
						cond := store.VersionIs(version - 1)
						if version == 1 {
							cond = store.Always
						}
						w.Ops = append(w.Ops, store.Delete(at("new", (version-1)*100+n-1), cond))
					}
				}
				if err := s.Write(b.Context(), w); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func openBench(b *testing.B) store.Store {
	b.Helper()
	s := opened(b, pg.Database(b))
	if err := s.CreateTables(b.Context()); err != nil {
		b.Fatal(err)
	}
	return s
}
