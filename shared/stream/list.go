package stream

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Overview is a stream in a list.
type Overview struct {
	Stream   string
	Producer UUID
	Events   int64       // how many it has
	Names    []NameCount // by name
	More     bool        // there are further names
}

// NameCount is an event name of a stream.
type NameCount struct {
	Name     string
	Sequence int64 // its last, which is how many events it has
}

// listedNames is how many names each stream of a list shows.
const listedNames = 100

// List returns at most limit streams by name, those behind after; 0 means all that the store returns at once. more says that
// there are others.
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

// Describe returns a stream, with at most limit of its names behind after. The error is ErrNoStream if there is none.
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

// Lag is a consumer's offset of an event name, and how many events the name has.
type Lag struct {
	Consumer UUID
	Name     string
	Offset   int64     // the last sequence acknowledged; 0: none
	Last     int64     // the name's last sequence
	Moved    time.Time // when the offset changed last
	Cursor   string    // for the argument after of [Streams.Consumers]
}

// Consumers returns the offsets of the consumers of a stream, by consumer and name: at most limit, behind a cursor.
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

// lastOf sets the last sequence of each name.
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

// offsetsOf returns all offsets of one consumer in a stream.
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
	for len(page.Items) <= limit { // one more than asked for, to learn whether there are more
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

// next returns the least text above one; "" for "".
func next(text string) string {
	if text == "" {
		return ""
	}
	return text + "\x00"
}
