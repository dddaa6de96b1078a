package stream

import (
	"context"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// Reading is a request for what a consumer has not acknowledged.
type Reading struct {
	Stream   string
	Consumer UUID
	Name     string        // of the events; empty: all names, in the stream's order
	Limit    int           // at least 1
	MaxBytes int           // bytes of bodies after which it ends; default 4 MiB
	Timeout  time.Duration // how long to wait for a first event; default 0, not at all
}

// Read returns events that the consumer has not acknowledged, the oldest first, at most Limit; it ends with the event that
// reaches MaxBytes. Its cost depends on how many it returns, not on where they are. The error is ErrNoStream where there is no
// such stream.
func (s *Streams) Read(ctx context.Context, r Reading) ([]Stored, error) {
	if r.MaxBytes <= 0 {
		r.MaxBytes = 4 << 20
	}
	n, err := s.find(ctx, r.Stream)
	if err != nil {
		return nil, err
	}
	found, err := s.unacknowledged(ctx, n, r)
	if err != nil || len(found) > 0 || r.Timeout <= 0 {
		return found, err
	}
	return s.wait(ctx, n, r)
}

func (s *Streams) unacknowledged(ctx context.Context, n number, r Reading) ([]Stored, error) {
	if r.Name == "" {
		return s.across(ctx, n, r)
	}
	o, _, err := s.offset(ctx, n, r.Consumer, r.Name)
	if err != nil {
		return nil, err
	}
	return s.after(ctx, n, r.Name, o.Offset, r.Limit, r.MaxBytes)
}

// after returns the events of a name behind a sequence. It ends before a gap: on stores that show the items of a write one
// after the other, the gap is about to become visible.
func (s *Streams) after(ctx context.Context, n number, name string, sequence int64, limit, most int) ([]Stored, error) {
	var all []Stored
	bytes, items := 0, min(limit, firstItems)
	for {
		page, err := s.store.Query(ctx, store.Range{
			Table: store.Work, Partition: runPartition(n, name), From: ordinal(sequence + 1), Limit: items,
		})
		if err != nil {
			return nil, unavailable("read events", err)
		}
		for i := range page.Items {
			run, err := decodeRun(n, name, &page.Items[i])
			if err != nil {
				return nil, err
			}
			if run.first > sequence+1 {
				return all, nil
			}
			for _, e := range run.events[sequence+1-run.first:] {
				all, sequence, bytes = append(all, e), e.Sequence, bytes+len(e.Body)
				if len(all) == limit || bytes >= most {
					return all, nil
				}
			}
		}
		if !page.More || len(page.Items) == 0 {
			return all, nil
		}
		each := max(len(all)/len(page.Items), 1) // an estimate of how many items hold the rest
		items = (limit - len(all) + each - 1) / each
	}
}

// firstItems is how many items are read first, before it is known how many events an item holds.
const firstItems = 4
