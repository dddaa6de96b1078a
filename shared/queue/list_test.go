package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/view"
	"github.com/millrace/millrace/shared/task"
)

// TestAPageGoesOnOnlyWhereThereIsMore: whatever the filter and the size of pages, a page with a cursor is not empty, and neither is
// the next.
func TestAPageGoesOnOnlyWhereThereIsMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n, rare = 600, 60
	group := ""
	for i := range n {
		added := b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/t", Priority: int64(i % rare)})
		group = added[0].Task.ListedUnder()
	}
	sought := func(t *task.Task) bool { return t.Priority == 7 } // ten of them
	for name, list := range map[string]func(limit int, cursor string) (view.Page, error){
		"List": func(limit int, cursor string) (view.Page, error) {
			return b.List(t.Context(), view.Listing{Group: group, Limit: limit, Cursor: cursor, Match: sought})
		},
		"Jobs": func(limit int, cursor string) (view.Page, error) {
			return b.Jobs(t.Context(), view.JobListing{States: []task.State{task.Ready}, Limit: limit, Cursor: cursor, Match: sought})
		},
	} {
		for _, limit := range []int{1, 2, 3, 5, 10, 11} {
			cursor, found := "", 0
			for page := 0; page == 0 || cursor != ""; page++ {
				got, err := list(limit, cursor)
				if err != nil {
					t.Fatal(err)
				}
				if len(got.Tasks) == 0 {
					t.Errorf("%s by %d: page %d is empty", name, limit, page)
				}
				found, cursor = found+len(got.Tasks), got.Cursor
			}
			if want := n / rare; found != want {
				t.Errorf("%s by %d: %d were found, want %d", name, limit, found, want)
			}
		}
		if got, err := list(1000, ""); err != nil || got.Cursor != "" {
			t.Errorf("%s of all = a cursor %q, %v", name, got.Cursor, err)
		}
	}
	nothing := func(*task.Task) bool { return false }
	if got, err := b.Jobs(t.Context(), view.JobListing{States: []task.State{task.Ready}, Limit: 1, Match: nothing}); err != nil || got.Cursor != "" {
		t.Errorf("Jobs that there are none of = a cursor %q, %v", got.Cursor, err)
	}
}

// due is a context whose deadline is now, and which does not end.
type due struct{ context.Context }

func (due) Deadline() (time.Time, bool) { return time.Now(), true }

// TestASearchComesBackBeforeItsDeadline: who has no time gets what one read has found, and where it goes on.
func TestASearchComesBackBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 600
	for i := range n {
		b.enqueue(queue.New{Dialect: task.Job, Job: "/topics/t", Priority: int64(i)})
	}
	l := view.JobListing{States: []task.State{task.Ready}, Limit: 1, Match: func(t *task.Task) bool { return t.Priority == n-1 }}
	for looks := 1; ; looks++ {
		got, err := b.Jobs(due{t.Context()}, l)
		if err == nil && len(got.Tasks) == 1 && looks > 1 {
			return
		}
		if !errors.Is(err, view.ErrNotFoundYet) || got.Cursor == "" {
			t.Fatalf("look %d = %d jobs, a cursor %q, %v", looks, len(got.Tasks), got.Cursor, err)
		}
		l.Cursor = got.Cursor
	}
}
