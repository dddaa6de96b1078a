package queue

import (
	"context"
	"slices"
	"sync"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// readPage is a page of a part that was read.
type readPage struct {
	from  string
	began int64 // when it was about to be read, in microseconds since 1970
	page  store.Page
	err   error
}

// readAhead reads the next page of each of these parts, side by side.
func (v *sharedView) readAhead(ctx context.Context, parts []string, limit int) {
	if v.ahead == nil {
		v.ahead = make(map[string]readPage, len(parts))
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, part := range parts {
		from, on := v.from[part]
		if !on {
			continue
		}
		group.Go(func() {
			of := v.query(ctx, store.Range{Table: store.Work, Partition: part, From: from, Limit: limit})
			mu.Lock()
			defer mu.Unlock()
			v.ahead[part] = of
		})
	}
	group.Wait()
}

// query reads a range of a part. A page from the beginning has one item more, if a signpost is known to be there.
func (v *sharedView) query(ctx context.Context, r store.Range) readPage {
	if l := v.lineAt(r.Partition); r.From == "" && l != nil {
		if read, _ := v.q.parts.of(*l); read > 1 {
			r.Limit++
		}
	}
	return v.shared.query(ctx, r)
}

// lineAt returns the line whose first part a partition is; nil if it is another part.
func (v *sharedView) lineAt(partition string) *layout.Line {
	i := slices.IndexFunc(v.c.lines, func(l layout.Line) bool { return layout.ReadyPartition(l) == partition })
	if i < 0 {
		return nil
	}
	return &v.c.lines[i]
}

// read reads a page of a part. If a line's first part says that it has more parts than the claim reads, it reads these too.
func (v *sharedView) read(ctx context.Context, r store.Range) (found []layout.Place, more bool, err error) {
	got, ahead := v.ahead[r.Partition]
	if delete(v.ahead, r.Partition); !ahead || got.from != r.From {
		got = v.query(ctx, r)
	}
	if got.err != nil {
		return nil, false, got.err
	}
	if r.From == "" {
		if err := v.follow(ctx, r, got.page.Items, got.began); err != nil {
			return nil, false, err
		}
	}
	found, err = layout.ReadPlaces(got.page.Items)
	if len(found) == 0 && len(got.page.Items) > 0 && got.page.More && err == nil { // there was space for the signpost only
		r.From = got.page.Items[0].Key.Sort + "\x00"
		return v.read(ctx, r)
	}
	return found, got.page.More, err
}

// follow does as the signpost says that the first page of a part begins with, if it is a line's first part.
func (v *sharedView) follow(ctx context.Context, r store.Range, items []store.Item, began int64) error {
	l := v.lineAt(r.Partition)
	if l == nil {
		return nil
	}
	post := layout.Signpost{Write: 1, Read: 1}
	if len(items) > 0 && layout.IsSignpost(&items[0]) {
		if err := layout.Decode(&items[0], &post); err != nil {
			return err
		}
	}
	v.q.parts.saw(*l, post, began)
	var others []string
	for _, part := range layout.ReadyParts(*l, post.Read) {
		if !slices.Contains(v.parts, part) {
			others = append(others, part)
		}
	}
	if len(others) == 0 {
		return nil
	}
	v.take(others)
	v.readAhead(ctx, others, r.Limit)
	return nil
}
