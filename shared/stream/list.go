package stream

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Overview is a stream as lists show it.
type Overview struct {
	Stream   string
	Producer UUID
	Events   int64
	Names    []NameCount // by name
	More     bool        // there are further names
}

// NameCount is an event name of a stream.
type NameCount struct {
	Name     string
	Sequence int64 // its last, and so how many it has
}

// listedNames is how many names each stream of a list shows.
const listedNames = 100

// List answers streams by name, behind one; more says that there are others.
func (s *Streams) List(ctx context.Context, after string, limit int) (all []Overview, more bool, err error) {
	page, err := s.page(ctx, partitionStreams, next(after), "", limit)
	if err != nil {
		return nil, false, err
	}
	for i := range page.Items {
		o, err := s.Describe(ctx, page.Items[i].Key.Sort, "", listedNames)
		if err != nil {
			return nil, false, err
		}
		all = append(all, o)
	}
	return all, page.More, nil
}

// Describe answers a stream, with as many of its names behind one.
func (s *Streams) Describe(ctx context.Context, stream, after string, limit int) (Overview, error) {
	h, err := s.head(ctx, stream)
	if err != nil {
		return Overview{}, err
	}
	o := Overview{Stream: stream, Producer: h.Producer, Events: h.Last}
	o.Names, o.More, err = s.names(ctx, h.Number, after, limit)
	return o, err
}

func (s *Streams) names(ctx context.Context, n number, after string, limit int) (all []NameCount, more bool, err error) {
	page, err := s.page(ctx, namesPartition(n), next(after), "", limit)
	if err != nil {
		return nil, false, err
	}
	for i := range page.Items {
		var known named
		if err := decode(&page.Items[i], &known); err != nil {
			return nil, false, err
		}
		all = append(all, NameCount{page.Items[i].Key.Sort, known.Last})
	}
	return all, page.More, nil
}

func (s *Streams) allNames(ctx context.Context, n number) (all []NameCount, err error) {
	for more, after := true, ""; more; {
		var some []NameCount
		if some, more, err = s.names(ctx, n, after, 0); err != nil {
			return nil, err
		}
		if all = append(all, some...); len(some) == 0 {
			break
		}
		after = all[len(all)-1].Name
	}
	return all, nil
}

// Lag is how far a consumer is with an event name.
type Lag struct {
	Consumer UUID
	Name     string
	Offset   int64
	Last     int64 // the name's last sequence
	Moved    time.Time
	Cursor   string // where a list goes on behind it
}

// Consumers answers how far the consumers of a stream are, by consumer and name, behind a cursor.
func (s *Streams) Consumers(ctx context.Context, stream, after string, limit int) (all []Lag, more bool, err error) {
	n, err := s.find(ctx, stream)
	if err != nil {
		return nil, false, err
	}
	page, err := s.page(ctx, offsetPartition(n), next(after), "", limit)
	if err != nil {
		return nil, false, err
	}
	for i := range page.Items {
		var o offset
		if err := decode(&page.Items[i], &o); err != nil {
			return nil, false, err
		}
		all = append(all, Lag{Consumer: o.Consumer, Name: o.Name, Offset: o.Offset, Moved: o.Moved, Cursor: page.Items[i].Key.Sort})
	}
	return all, page.More, s.lastOf(ctx, n, all)
}

// lastOf fills in the last sequence of each name.
func (s *Streams) lastOf(ctx context.Context, n number, all []Lag) error {
	var keys []store.Key
	index := map[string]int{}
	for i := range all {
		if _, there := index[all[i].Name]; !there {
			index[all[i].Name] = len(keys)
			keys = append(keys, work(namesPartition(n), all[i].Name))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	items, err := s.store.Get(ctx, keys...)
	if err != nil {
		return unavailable("read event names", err)
	}
	for i := range all {
		var known named
		if item := items[index[all[i].Name]]; item != nil {
			if err := decode(item, &known); err != nil {
				return err
			}
		}
		all[i].Last = max(known.Last, all[i].Offset)
	}
	return nil
}

// offsetsOf answers all offsets of one consumer in a stream.
func (s *Streams) offsetsOf(ctx context.Context, n number, consumer UUID) (all []offset, err error) {
	from, to := offsetPrefix(consumer), offsetPrefix(consumer)+"~"
	for more := true; more; {
		page, err := s.page(ctx, offsetPartition(n), from, to, 0)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			var o offset
			if err := decode(&page.Items[i], &o); err != nil {
				return nil, err
			}
			all = append(all, o)
			from = next(page.Items[i].Key.Sort)
		}
		more = page.More && len(page.Items) > 0
	}
	return all, nil
}

func (s *Streams) page(ctx context.Context, partition, from, to string, limit int) (store.Page, error) {
	r := store.Range{Table: store.Work, Partition: partition, From: from, To: to}
	if limit == 0 {
		page, err := s.store.Query(ctx, r)
		return page, unavailable("list", err)
	}
	var page store.Page
	for len(page.Items) <= limit { // one more tells whether there are more
		r.Limit = limit + 1 - len(page.Items)
		next, err := s.store.Query(ctx, r)
		if err != nil {
			return store.Page{}, unavailable("list", err)
		}
		page.Items = append(page.Items, next.Items...)
		if !next.More || len(next.Items) == 0 {
			break
		}
		r = r.Behind(next.Items[len(next.Items)-1].Key.Sort)
	}
	if page.More = len(page.Items) > limit; page.More {
		page.Items = page.Items[:limit]
	}
	return page, nil
}

// next answers the least text above one; of none, none.
func next(text string) string {
	if text == "" {
		return ""
	}
	return text + "\x00"
}
