package view

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

const (
	maxList    = 1000
	listedPage = 250
	maxListed  = 5000 // tasks read for one page, if some were found: if matches are rare, a page has fewer than the limit

	maxSought = 100_000          // entries read for one page in search of a match
	seekFor   = 10 * time.Second // how long one page is sought
)

// Listing selects tasks of a group by creation.
type Listing struct {
	Group    string                // see queue.New; required
	From, To time.Time             // of creation, both inclusive; zero: open
	Newest   bool                  // newest first; default: oldest first
	Limit    int                   // tasks of a page, 1 to 1,000
	Cursor   string                // of an earlier page; empty: from the beginning
	Match    func(*task.Task) bool // only tasks for which it returns true; nil: all
}

// Page is one page of a [Listing] or a [JobListing].
type Page struct {
	Tasks  []task.Task // without payloads that are items of their own
	Cursor string      // for the next page; empty: there are no more
}

// ErrNotFoundYet is returned for a page of a list if nothing was found in as many tasks as one call looks at. The list goes on
// at the page's cursor.
var ErrNotFoundYet = errors.New("queue: nothing was found yet")

// effort is what one page of a list has taken so far.
type effort struct {
	looked int // entries read
	until  time.Time
}

// begun returns the effort of a page that is sought from now on: of a caller whose context has a deadline for half of the time until then,
// so that the page comes before it.
func begun(ctx context.Context) effort {
	now := time.Now()
	until := now.Add(seekFor)
	if deadline, has := ctx.Deadline(); has && deadline.Sub(now) < 2*seekFor {
		until = now.Add(deadline.Sub(now) / 2)
	}
	return effort{until: until}
}

// spent reports whether the search must end, found or not: a request has its own time limit, and a rare match in a long history
// would be sought beyond it, in vain each time.
func (e *effort) spent() bool { return e.looked >= maxSought || !time.Now().Before(e.until) }

// ended returns a page whose search ended at a sort key before it was full or at the end of the list.
func (p Page) ended(at string) (Page, error) {
	p.Cursor = at
	if len(p.Tasks) == 0 {
		return p, ErrNotFoundYet
	}
	return p, nil
}

// List returns tasks of a group by their creation. Behind the cursor of a page there is at least one more, unless the search for it
// took too long. The error is [layout.ErrInvalid] for a limit or a cursor that is not valid, and [ErrNotFoundYet], with a page that has
// only a cursor, if matches are too rare for one call.
func (v *Tasks) List(ctx context.Context, l Listing) (Page, error) {
	if l.Limit < 1 || l.Limit > maxList {
		return Page{}, fmt.Errorf("%w: limit %d, want 1 to %d", layout.ErrInvalid, l.Limit, maxList)
	}
	r := store.Range{Table: store.Work, Backward: l.Newest, Limit: listedPage}
	if !l.From.IsZero() {
		r.From = task.FirstUUID(l.From.Truncate(time.Millisecond).UnixMicro())
	}
	if !l.To.IsZero() {
		r.To = task.FirstUUID(l.To.Truncate(time.Millisecond).UnixMicro() + 1000) // ids sort by creation but for the order within a millisecond
	}
	if l.Cursor != "" {
		if _, err := task.ParseID(l.Cursor); err != nil || len(l.Cursor) != len(task.FirstUUID(0)) {
			return Page{}, fmt.Errorf("%w: cursor %q", layout.ErrInvalid, l.Cursor)
		}
		r = r.Behind(l.Cursor)
	}
	partitions, err := layout.GroupPartitions(ctx, v.o.Store, l.Group)
	if err != nil {
		return Page{}, err
	}
	return v.list(ctx, partitions[0], r, &l)
}

// wants reports whether the list has a task.
func (l *Listing) wants(t *task.Task) bool {
	at := time.UnixMicro(t.ID.Time())
	return t.ListedUnder() == l.Group && (l.From.IsZero() || !at.Before(l.From)) && (l.To.IsZero() || !at.After(l.To)) &&
		(l.Match == nil || l.Match(t))
}

func (v *Tasks) list(ctx context.Context, partitions []string, r store.Range, l *Listing) (Page, error) {
	var page Page
	for e := begun(ctx); ; {
		answer, err := layout.QueryParts(ctx, v.o.Store, partitions, r)
		if err != nil {
			return Page{}, layout.Failure("list tasks", err)
		}
		for i := range answer.Items {
			item := &answer.Items[i]
			var t task.Task
			if err := layout.Decode(item, &t); err != nil {
				return Page{}, err
			}
			e.looked++
			if !l.wants(&t) {
				continue
			}
			if n := len(page.Tasks); n == l.Limit || n > 0 && e.looked > maxListed {
				page.Cursor = page.Tasks[n-1].ID.UUID() // there is one more at least
				return page, nil
			}
			page.Tasks = append(page.Tasks, t)
		}
		if !answer.More || len(answer.Items) == 0 {
			return page, nil
		}
		last := answer.Items[len(answer.Items)-1].Key.Sort
		if e.spent() {
			return page.ended(last)
		}
		r = r.Behind(last)
	}
}
