package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// unhurried is a store in which each query takes a second.
type unhurried struct{ store.Store }

func (u unhurried) Query(ctx context.Context, r store.Range) (store.Page, error) {
	time.Sleep(time.Second)
	return u.Store.Query(ctx, r)
}

// A search for what is rare, or not there at all, ends in time, and says where it goes on, so that all is found in the end.
func TestASearchForWhatIsRareEndsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := unhurried{memory.New(memory.Options{})}
		j := journal.Open(s, journal.Options{Folds: projection.Folds()})
		defer j.Close()
		q := queue.Open(queue.Options{Store: s, Journal: j, Definitions: fixed{set()}, Now: time.Now})
		const topics, each = 200, 20
		for i := range topics {
			news := make([]queue.New, each)
			for n := range news {
				news[n] = queue.New{Dialect: task.Job, Job: fmt.Sprintf("/topics/t%d", i), Priority: int64(i*each + n + 1)}
			}
			if _, err := q.Enqueue(t.Context(), nil, news...); err != nil {
				t.Fatal(err)
			}
		}
		added, err := q.Enqueue(t.Context(), nil, queue.New{Dialect: task.Job, Job: "/topics/t1", Priority: 9999})
		if err != nil {
			t.Fatal(err)
		}
		group := added.Tasks[0].Task.ListedUnder()
		for want, match := range map[int]func(*task.Task) bool{
			0: func(*task.Task) bool { return false },
			2: func(t *task.Task) bool { return t.Priority == 30 || t.Priority == 9999 }, // both of one topic, and far apart
		} {
			for name, list := range map[string]func(cursor string) (view.Page, error){
				"List": func(cursor string) (view.Page, error) {
					return q.List(t.Context(), view.Listing{Group: group, Limit: 5, Cursor: cursor, Match: match})
				},
				"Jobs": func(cursor string) (view.Page, error) {
					return q.Jobs(t.Context(), view.JobListing{States: []task.State{task.Ready}, Limit: 5, Cursor: cursor, Match: match})
				},
			} {
				found, calls := 0, 0
				for cursor := ""; calls == 0 || cursor != ""; calls++ {
					began := time.Now()
					p, err := list(cursor)
					if took := time.Since(began); took > 17*time.Second { // one look at each of sixteen partitions
						t.Errorf("%s: a call took %v", name, took)
					}
					if errors.Is(err, view.ErrNotFoundYet) != (len(p.Tasks) == 0 && p.Cursor != "") {
						t.Fatalf("%s = %d tasks, cursor %q, %v", name, len(p.Tasks), p.Cursor, err)
					}
					found, cursor = found+len(p.Tasks), p.Cursor
				}
				if found != want || name == "Jobs" && calls < 2 {
					t.Errorf("%s: %d found by %d calls, want %d", name, found, calls, want)
				}
			}
		}
	})
}
