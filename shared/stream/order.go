package stream

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// places lists the events at the places from First on. Its key has the last place.
type places struct {
	Stream string    `json:"s"`
	First  int64     `json:"f"`
	Names  []string  `json:"n"`
	Spans  []spanned `json:"p"`
}

// spanned is events of one name next to each other.
type spanned struct {
	Name  int   `json:"n,omitempty"` // index in Names
	First int64 `json:"f"`           // sequence
	Count int64 `json:"c"`
}

// add gives the next place to an event.
func (p *places) add(name string, sequence int64) {
	if last := len(p.Spans) - 1; last >= 0 {
		s := &p.Spans[last]
		if p.Names[s.Name] == name {
			s.Count++
			return
		}
	}
	index := -1
	for i, n := range p.Names {
		if n == name {
			index = i
		}
	}
	if index < 0 {
		index = len(p.Names)
		p.Names = append(p.Names, name)
	}
	p.Spans = append(p.Spans, spanned{Name: index, First: sequence, Count: 1})
}

// spot is an event's place, name and sequence.
type spot struct {
	place    int64
	name     string
	sequence int64
}

// spots returns the events at the places from one on.
func (p *places) spots(from int64) []spot {
	var all []spot
	place := p.First
	for _, s := range p.Spans {
		for i := range s.Count {
			if place >= from {
				all = append(all, spot{place, p.Names[s.Name], s.First + i})
			}
			place++
		}
	}
	return all
}

// placesAt returns the item that holds a place of a stream; ErrNoEvent if there is none.
func (s *Streams) placesAt(ctx context.Context, n number, place int64) (places, error) {
	var p places
	page, err := s.store.Query(ctx, store.Range{
		Table: store.Work, Partition: orderPartition(n), From: ordinal(place), Limit: 1,
	})
	if err != nil {
		return p, unavailable("find an event", err)
	}
	if len(page.Items) == 0 {
		return p, ErrNoEvent
	}
	if err := decode(&page.Items[0], &p); err != nil {
		return p, err
	}
	if place < p.First {
		return p, ErrNoEvent
	}
	return p, nil
}

// visible is roughly how long after one item of a write another may still be invisible, on stores whose writes of several
// items show one item after the other.
const visible = 50 * time.Millisecond

// locate finds the place of the event with that UUID. A missing place is looked for twice, as the event may have been
// read already while its place is not visible yet.
func (s *Streams) locate(ctx context.Context, id UUID) (n number, p places, at spot, err error) {
	n, place, ok := id.split()
	if !ok {
		return 0, p, at, ErrNoEvent
	}
	p, err = s.placesAt(ctx, n, place)
	if errors.Is(err, ErrNoEvent) && !s.store.Exclusive() && pause(ctx, visible) == nil {
		p, err = s.placesAt(ctx, n, place)
	}
	if err != nil {
		return 0, p, at, err
	}
	return n, p, p.spots(place)[0], nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Get returns the event with that UUID, and the name of its stream. The error is ErrNoEvent if there is none.
func (s *Streams) Get(ctx context.Context, id UUID) (Stored, string, error) {
	n, p, at, err := s.locate(ctx, id)
	if err != nil {
		return Stored{}, "", err
	}
	found, err := s.after(ctx, n, at.name, at.sequence-1, 1, 1)
	if err != nil {
		return Stored{}, "", err
	}
	if len(found) == 0 {
		return Stored{}, "", ErrNoEvent
	}
	return found[0], p.Stream, nil
}
