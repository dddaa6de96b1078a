package view

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// JobListing selects tasks of topics: unfinished ones by creation, oldest first, or finished ones by their end, newest first.
type JobListing struct {
	History bool                  // finished tasks; default: unfinished ones
	Topic   string                // path of the topic's job, see queue.TopicPath; empty: all topics
	States  []task.State          // only tasks in one of these; required: without any, none is listed
	Limit   int                   // tasks of a page, 1 to 1,000
	Cursor  string                // of a page, or of [JobListing.CursorAfter]; empty: from the beginning
	Match   func(*task.Task) bool // only tasks for which it returns true; nil: all
}

// Jobs returns tasks of topics. A page costs a query of each of sixteen partitions, or of one if a topic is given. The errors are
// those of [Tasks.List].
func (v *Tasks) Jobs(ctx context.Context, l JobListing) (Page, error) {
	if l.Limit < 1 || l.Limit > maxList {
		return Page{}, fmt.Errorf("%w: limit %d, want 1 to %d", layout.ErrInvalid, l.Limit, maxList)
	}
	if err := l.checkCursor(); err != nil {
		return Page{}, err
	}
	groups := layout.TopicGroups()
	if l.Topic != "" {
		groups = []string{layout.TopicGroup(l.Topic)}
	}
	m, parts := &merge{v: v, l: &l, effort: begun(ctx)}, make([][]string, len(groups))
	if !l.History {
		var err error
		if parts, err = layout.GroupPartitions(ctx, v.o.Store, groups...); err != nil {
			return Page{}, err
		}
	}
	for i, group := range groups {
		m.runs = append(m.runs, l.run(group, parts[i]))
	}
	return m.page(ctx)
}

// checkCursor returns an error if the cursor has not the form of one: a UUID, after a time for the history.
func (l *JobListing) checkCursor() error {
	if l.Cursor == "" {
		return nil
	}
	uuid, before := l.Cursor, 0
	if l.History && len(l.Cursor) > layout.StampLen {
		uuid, before = l.Cursor[layout.StampLen:], layout.StampLen
	}
	if _, err := task.ParseID(uuid); err != nil || len(uuid) != len(task.FirstUUID(0)) || l.History != (before > 0) {
		return fmt.Errorf("%w: cursor %q", layout.ErrInvalid, l.Cursor)
	}
	return nil
}

// run returns the run of a group, whose tasks are in parts, from the cursor on.
func (l *JobListing) run(group string, parts []string) *run {
	r := &run{group: group, parts: parts, more: true, span: store.Range{
		Table: store.Work, Limit: min(max(l.Limit, 25), listedPage),
	}}
	if l.History {
		r.parts, r.span.Backward = []string{layout.HistoryPartition(group)}, true
	}
	if l.Cursor != "" {
		r.span = r.span.Behind(l.Cursor)
	}
	return r
}

// run is one group's share of a list.
type run struct {
	group string
	span  store.Range
	parts []string // the partitions in which it lies
	at    string   // sort key of the last entry that was read; empty: none was
	found []listed // in the order of the list, not on a page yet
	more  bool     // the partition may have more
}

// listed is a task and its sort key.
type listed struct {
	at   string
	task task.Task
}

// merge merges several runs into one list.
type merge struct {
	effort
	v    *Tasks
	l    *JobListing
	runs []*run
}

// page returns as many tasks as are wanted, or fewer and a cursor if matches are rare. Behind a cursor there is at least one more,
// unless the search for it took too long.
func (m *merge) page(ctx context.Context) (Page, error) {
	var p Page
	for {
		first, behind, err := m.first(ctx)
		switch {
		case err != nil:
			return Page{}, err
		case behind != nil:
			return p.ended(behind.at)
		case first == nil:
			return p, nil
		}
		if len(p.Tasks) == m.l.Limit || len(p.Tasks) > 0 && m.looked >= maxListed {
			p.Cursor = m.l.CursorAfter(&p.Tasks[len(p.Tasks)-1])
			return p, nil
		}
		p.Tasks = append(p.Tasks, first.found[0].task)
		first.found = first.found[1:]
	}
}

// CursorAfter returns the cursor from which the list goes on behind one of its tasks.
func (l *JobListing) CursorAfter(t *task.Task) string {
	if l.History {
		return layout.HistoryKey(t).Sort
	}
	return t.ID.UUID()
}

// first returns the run whose next task comes first of all; nil at the end of the list. The run that is furthest behind is read
// first, so that all that precedes its place is known: if the search must end there, that run is returned as behind.
func (m *merge) first(ctx context.Context) (first, behind *run, err error) {
	for {
		first, behind = nil, nil
		for _, r := range m.runs {
			switch {
			case len(r.found) > 0 && (first == nil || m.before(r.found[0].at, first.found[0].at)):
				first = r
			case len(r.found) == 0 && r.more && m.lags(r, behind):
				behind = r
			}
		}
		switch {
		case behind == nil, first != nil && behind.at != "" && m.before(first.found[0].at, behind.at):
			return first, nil, nil
		case behind.at != "" && m.spent():
			return nil, behind, nil
		}
		if err := m.fill(ctx, behind); err != nil {
			return nil, nil, err
		}
	}
}

// lags reports whether r was read less far than another run; nil: there is no other.
func (m *merge) lags(r, other *run) bool {
	return other == nil || r.at == "" || other.at != "" && m.before(r.at, other.at)
}

// before reports whether a comes before b in the list.
func (m *merge) before(a, b string) bool { return (a < b) != m.l.History && a != b }

// fill reads the next page of a run.
func (m *merge) fill(ctx context.Context, r *run) error {
	page, err := layout.QueryParts(ctx, m.v.o.Store, r.parts, r.span)
	if err != nil {
		return layout.Failure("list jobs", err)
	}
	if r.more = page.More && len(page.Items) > 0; len(page.Items) == 0 {
		return nil
	}
	m.looked += len(page.Items)
	r.at = page.Items[len(page.Items)-1].Key.Sort
	r.span = r.span.Behind(r.at)
	items := page.Items
	if m.l.History {
		if items, err = m.past(ctx, items); err != nil {
			return err
		}
	}
	var t task.Task // one for all: a search passes many
	for i := range items {
		t = task.Task{}
		if err := layout.Decode(&items[i], &t); err != nil {
			return err
		}
		if t.ListedUnder() == r.group && m.wanted(t.Job, t.State) && (m.l.Match == nil || m.l.Match(&t)) {
			r.found = append(r.found, listed{m.l.CursorAfter(&t), t})
		}
	}
	return nil
}

func (m *merge) wanted(job string, state task.State) bool {
	return (m.l.Topic == "" || m.l.Topic == job) && slices.Contains(m.l.States, state)
}

// past returns the tasks of the history's entries that may be wanted and were not removed meanwhile.
func (m *merge) past(ctx context.Context, entries []store.Item) ([]store.Item, error) {
	var tasks []store.Item
	for chunk := range slices.Chunk(entries, historyChunk) {
		var keys []store.Key
		for i := range chunk {
			var p layout.Past
			if err := layout.Decode(&chunk[i], &p); err != nil {
				return nil, err
			}
			if m.wanted(p.Job, p.State) {
				keys = append(keys, layout.TaskKey(chunk[i].Key.Sort[layout.StampLen:]))
			}
		}
		if len(keys) == 0 {
			continue
		}
		items, err := m.v.o.Store.Get(ctx, keys...)
		if err != nil {
			return nil, layout.Failure("read finished tasks", err)
		}
		for _, item := range items {
			if item != nil {
				tasks = append(tasks, *item)
			}
		}
	}
	return tasks, nil
}

// historyChunk is how many tasks of the history are read at once.
const historyChunk = 50
