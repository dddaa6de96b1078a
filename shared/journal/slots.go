package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// errEvicted says that a slot lies at or below the floor and may have been removed.
var errEvicted = errors.New("journal: slot evicted")

// slots returns the contiguous filled slots from position `from` on, at least one and at most a page, none above goal, which
// the caller knows to have been handed out. Rule (contiguous run): it waits at a missing slot, and fills it after the
// grace.
func (j *Journal) slots(ctx context.Context, from, goal int64) ([]slot, error) {
	if run := j.tail.run(from, goal); run != nil {
		return run, nil
	}
	if j.writing.Load() > 0 && j.tail.awaits(from) {
		return j.resolve(ctx, from, goal) // most likely this process is writing it: its announcement comes sooner than a query's result
	}
	p, err := j.query(ctx, from, min(goal, lastOfPage(from)), true)
	if err != nil {
		return nil, err
	}
	if run := p.run(); len(run) > 0 {
		j.tail.feed(run)
		return run, nil
	}
	return j.resolve(ctx, from, goal)
}

// page is the result of a query for the slots from one position to another.
type page struct {
	from, to int64 // both inclusive
	slots    []slot
}

// run returns the slots that are contiguous from p.from on.
func (p *page) run() []slot {
	for i := range p.slots {
		if p.slots[i].position != p.from+int64(i) {
			return p.slots[:i]
		}
	}
	return p.slots
}

// query reads the slots of one page, or of a part of it.
func (j *Journal) query(ctx context.Context, from, to int64, eventual bool) (page, error) {
	found, err := j.items(ctx, from, to, eventual)
	if err != nil {
		return page{}, j.unavailable("read slots", err)
	}
	return j.decodePage(ctx, page{from: from, to: to}, found)
}

// items reads the items of slots of one page, in their order: those of each partition side by side.
func (j *Journal) items(ctx context.Context, from, to int64, eventual bool) (store.Page, error) {
	run := from / j.keys.run
	partitions := min(to/j.keys.run-run+1, j.keys.spread)
	if partitions == 1 {
		return j.store.Query(ctx, j.keys.slotRange(from, to, eventual))
	}
	all := make([]partitionRead, partitions)
	var group sync.WaitGroup
	for n := range all {
		first := max(from, (run+int64(n))*j.keys.run)
		group.Go(func() {
			r := j.keys.slotRange(first, to, eventual)
			page, err := j.store.Query(ctx, r)
			if err != nil { // several fail more often than one
				page, err = j.store.Query(ctx, r)
			}
			all[n] = partitionRead{r.From, page, err}
		})
	}
	group.Wait()
	return inOrder(all)
}

// partitionRead is what was read of one partition, from a sort key on.
type partitionRead struct {
	from string
	page store.Page
	err  error
}

// inOrder returns the items of several partitions in their order, up to where all are known. The error is that of one of which
// nothing is, if that leaves none.
func inOrder(all []partitionRead) (of store.Page, err error) {
	end := "" // the first sort key that is not known; empty: all are
	for _, s := range all {
		of.Items = append(of.Items, s.page.Items...)
		if s.err == nil && !s.page.More {
			continue
		}
		known := s.from
		if n := len(s.page.Items); n > 0 {
			known = s.page.Items[n-1].Key.Sort + "\x00"
		}
		if !of.More || known < end {
			of.More, end, err = true, known, s.err
		}
	}
	slices.SortFunc(of.Items, func(a, b store.Item) int { return strings.Compare(a.Key.Sort, b.Key.Sort) })
	if of.More {
		of.Items = slices.DeleteFunc(of.Items, func(i store.Item) bool { return i.Key.Sort >= end })
	}
	if len(of.Items) > 0 {
		err = nil
	}
	return of, err
}

// slotRange selects the items of slots of one run.
func (k *keys) slotRange(from, to int64, eventual bool) store.Range {
	r := store.Range{Table: store.Journal, Partition: k.partition(from), From: positionSort(from), Eventual: eventual}
	if k.spread > 1 || to < k.lastOfRun(from) {
		r.To = positionSort(to + 1)
	}
	return r
}

func (j *Journal) decodePage(ctx context.Context, p page, found store.Page) (page, error) {
	d := decoder{arena: make([]event.Event, 0, len(found.Items))}
	p.slots = make([]slot, 0, len(found.Items))
	for i, item := range found.Items {
		if err := ctx.Err(); err != nil { // a page may have very many events
			return p, err
		}
		position, isPart, err := positionOf(item.Key.Sort)
		if err != nil {
			return p, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if isPart {
			continue
		}
		value, err := j.whole(ctx, position, &found.Items[i], found.Items[i+1:])
		if err != nil {
			return p, err
		}
		if value == nil { // parts are not visible yet: the slot counts as missing
			continue
		}
		s, err := d.decode(position, value)
		if err != nil {
			return p, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		p.slots = append(p.slots, s)
		if found.More {
			p.to = position
		}
	}
	return p, nil
}

// whole returns the bytes of a slot, joined from its parts, which follow it in the page or are read; nil while a part is not
// visible.
func (j *Journal) whole(ctx context.Context, position int64, first *store.Item, following []store.Item) ([]byte, error) {
	parts, err := partsOf(first.Value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if parts == 0 {
		return first.Value, nil
	}
	value := append(make([]byte, 0, (parts+1)*maxSlotItem), first.Value...)
	for n := 1; n <= parts; n++ {
		part, err := j.partItem(ctx, j.keys.part(position, n), following)
		if err != nil || part == nil || part.Token != first.Token {
			return nil, err
		}
		value = append(value, part.Value...)
	}
	return value, nil
}

func (j *Journal) partItem(ctx context.Context, key store.Key, following []store.Item) (*store.Item, error) {
	for i := range following {
		if following[i].Key.Sort == key.Sort {
			return &following[i], nil
		}
	}
	items, err := j.store.Get(ctx, key)
	if err != nil {
		return nil, j.unavailable("read a slot", err)
	}
	return items[0], nil
}

func (j *Journal) decodeItem(ctx context.Context, position int64, item *store.Item) (slot, error) {
	value, err := j.whole(ctx, position, item, nil)
	if err != nil {
		return slot{}, err
	}
	if value == nil {
		return slot{}, fmt.Errorf("%w: parts of slot %d are not visible yet", ErrUnavailable, position)
	}
	d := decoder{}
	s, err := d.decode(position, value)
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return s, nil
}

// slotAt reads one slot, nil if it is missing.
func (j *Journal) slotAt(ctx context.Context, position int64) (*slot, error) {
	items, err := j.store.Get(ctx, j.keys.slot(position))
	if err != nil {
		return nil, j.unavailable("read a slot", err)
	}
	if items[0] == nil {
		return nil, nil
	}
	s, err := j.decodeItem(ctx, position, items[0])
	return &s, err
}
