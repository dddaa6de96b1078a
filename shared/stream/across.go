package stream

import (
	"context"
	"math"

	"github.com/millrace/millrace/shared/store"
)

// across returns what a consumer has not acknowledged of any name, in the stream's order.
//
// It begins at the least place of the names' next events, and reads the places from there. Where less than a quarter of a
// page is wanted it leaps to the next such place. So its cost depends on how many names have something to read, not on how
// many events lie before or between.
func (s *Streams) across(ctx context.Context, n number, r Reading) ([]Stored, error) {
	a := &acrossing{s: s, n: n, limit: r.Limit, most: r.MaxBytes, next: map[string]int64{}, open: map[string]struct{}{}}
	if err := a.begin(ctx, r.Consumer); err != nil {
		return nil, err
	}
	for place, err := a.leap(ctx); ; place, err = a.leap(ctx) {
		if err != nil || place == 0 {
			return a.found, err
		}
		if ended, err := a.walk(ctx, place); ended || err != nil {
			return a.found, err
		}
	}
}

// acrossing is one reading over all names.
type acrossing struct {
	s     *Streams
	n     number
	limit int
	most  int                 // bytes
	next  map[string]int64    // the sequence that is wanted next, by name; none means 1
	open  map[string]struct{} // names that may have more
	found []Stored
	bytes int
}

// begin reads which names have something that the consumer has not acknowledged.
func (a *acrossing) begin(ctx context.Context, consumer UUID) error {
	names, err := a.s.allNames(ctx, a.n)
	if err != nil {
		return err
	}
	offsets, err := a.s.offsetsOf(ctx, a.n, consumer)
	if err != nil {
		return err
	}
	for _, o := range offsets {
		a.next[o.Name] = o.Offset + 1
	}
	for _, name := range names {
		if name.Sequence >= a.wanted(name.Name) {
			a.open[name.Name] = struct{}{}
		}
	}
	return nil
}

func (a *acrossing) wanted(name string) int64 { return max(a.next[name], 1) }

// leap returns the least place of an event that is wanted, 0 if there is none.
func (a *acrossing) leap(ctx context.Context) (int64, error) {
	least := int64(math.MaxInt64)
	for name := range a.open {
		next, err := a.s.after(ctx, a.n, name, a.wanted(name)-1, 1, 1)
		if err != nil {
			return 0, err
		}
		if len(next) == 0 {
			delete(a.open, name)
			continue
		}
		least = min(least, next[0].Place)
	}
	if least == math.MaxInt64 {
		return 0, nil
	}
	return least, nil
}

// walk takes the wanted events from a place on, until less than a quarter of a page is wanted. It reports whether the reading
// is over.
func (a *acrossing) walk(ctx context.Context, place int64) (ended bool, err error) {
	for items := firstItems; ; {
		got, err := a.s.store.Query(ctx, store.Range{
			Table: store.Work, Partition: orderPartition(a.n), From: ordinal(place), Limit: items,
		})
		if err != nil {
			return true, unavailable("read a stream's order", err)
		}
		var wanted []spot
		looked := 0
		for i := range got.Items {
			var p places
			if err := decode(&got.Items[i], &p); err != nil {
				return true, err
			}
			if p.First > place { // the gap is about to become visible
				return true, a.take(ctx, wanted)
			}
			for _, at := range p.spots(place) {
				place, looked = at.place+1, looked+1
				if at.sequence == a.wanted(at.name) && len(a.found)+len(wanted) < a.limit {
					a.next[at.name], a.open[at.name] = at.sequence+1, struct{}{}
					wanted = append(wanted, at)
				}
			}
		}
		before := len(a.found)
		if err := a.take(ctx, wanted); err != nil {
			return true, err
		}
		switch {
		case len(a.found)-before < len(wanted), len(a.found) == a.limit, a.bytes >= a.most, !got.More, len(got.Items) == 0:
			return true, nil
		case 4*len(wanted) < looked:
			return false, nil
		}
		each := max(looked/len(got.Items), 1) // an estimate of how many items hold the rest
		items = min((a.limit-len(a.found)+each-1)/each, mostItems)
	}
}

// mostItems bounds a page of places.
const mostItems = 100

// take reads the events of spots. It ends before one that is not visible yet.
func (a *acrossing) take(ctx context.Context, wanted []spot) error {
	read := map[string][]Stored{}
	count := map[string]int{}
	for _, at := range wanted {
		count[at.name]++
	}
	for _, at := range wanted {
		if _, done := read[at.name]; !done {
			events, err := a.s.after(ctx, a.n, at.name, at.sequence-1, count[at.name], a.most)
			if err != nil {
				return err
			}
			read[at.name] = events
		}
		events := read[at.name]
		if len(events) == 0 || events[0].Sequence != at.sequence || a.bytes >= a.most {
			return nil
		}
		a.found, a.bytes = append(a.found, events[0]), a.bytes+len(events[0].Body)
		read[at.name] = events[1:]
	}
	return nil
}
