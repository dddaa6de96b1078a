package definition_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/definition"
)

// An edit of one schedule of many costs as much as the whole set, which is written anew.
func BenchmarkEdit(b *testing.B) {
	for _, n := range []int{100, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			catalog := newShelf(b).open()
			set := new(definition.Set)
			for i := range n {
				set.Schedules = append(set.Schedules, definition.Schedule{Name: fmt.Sprint("s", i), Cron: "0 0 12 * * ?", Job: "/topics/a/b"})
			}
			if _, err := catalog.Apply(b.Context(), set, definition.FromAPI); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for i := range b.N {
				_, err := catalog.Edit(b.Context(), definition.FromAPI, func(in *definition.Set) (*definition.Set, error) {
					after, _, err := in.PutSchedule([]byte(fmt.Sprintf(`{"name":"s%d","cron":"0 0 %d * * ?","job":"/topics/a/b"}`, i%n, i%24)), time.Now())
					return after, err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
