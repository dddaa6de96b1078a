package queue

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

const (
	maxList   = 1000
	listPage  = 250
	maxListed = 5000 // tasks read for one page, if some were found: if matches are rare, a page has fewer than the limit
)

// List returns tasks of a group by their creation. Behind the cursor of a page there is at least one more. The error is
// [ErrInvalid] for a limit or a cursor that is not valid.
func (q *Queue) List(ctx context.Context, l Listing) (Page, error) {
	if l.Limit < 1 || l.Limit > maxList {
		return Page{}, fmt.Errorf("%w: limit %d, want 1 to %d", ErrInvalid, l.Limit, maxList)
	}
	r := store.Range{
		Table: store.Work, Partition: groupPartition(task.GroupHash(l.Group)), Backward: l.Newest, Limit: listPage,
	}
	if !l.From.IsZero() {
		r.From = task.FirstUUID(l.From.UnixMicro())
	}
	if !l.To.IsZero() {
		r.To = task.FirstUUID(l.To.UnixMicro() + 1)
	}
	if l.Cursor != "" {
		if _, err := task.ParseID(l.Cursor); err != nil || len(l.Cursor) != len(task.FirstUUID(0)) {
			return Page{}, fmt.Errorf("%w: cursor %q", ErrInvalid, l.Cursor)
		}
		r = r.Behind(l.Cursor)
	}
	return q.list(ctx, r, &l)
}

func (q *Queue) list(ctx context.Context, r store.Range, l *Listing) (Page, error) {
	var page Page
	for looked := 0; ; {
		answer, err := q.store.Query(ctx, r)
		if err != nil {
			return Page{}, unavailable("list tasks", err)
		}
		for i := range answer.Items {
			item := &answer.Items[i]
			var t task.Task
			if err := decode(item, &t); err != nil {
				return Page{}, err
			}
			looked++
			if t.ListedUnder() != l.Group || l.Match != nil && !l.Match(&t) {
				continue
			}
			if n := len(page.Tasks); n == l.Limit || n > 0 && looked > maxListed {
				page.Cursor = page.Tasks[n-1].ID.UUID() // there is one more at least
				return page, nil
			}
			if page.Tasks = append(page.Tasks, t); l.one {
				return page, nil
			}
		}
		if !answer.More || len(answer.Items) == 0 {
			return page, nil
		}
		r = r.Behind(answer.Items[len(answer.Items)-1].Key.Sort)
	}
}
