package stream

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// offset returns a consumer's offset of a name, 0 where it has none, and the item's version.
func (s *Streams) offset(ctx context.Context, n number, consumer UUID, name string) (offset, int64, error) {
	none := offset{Consumer: consumer, Name: name}
	items, err := s.store.Get(ctx, work(offsetPartition(n), offsetSort(consumer, name)))
	if err != nil || items[0] == nil {
		return none, 0, unavailable("read an offset", err)
	}
	var o offset
	return o, items[0].Version, decode(items[0], &o)
}

// maxMoves is how often a change of an offset is tried that conflicts with others.
const maxMoves = 20

// move changes an offset to what `to` returns for it. Offsets are no events: they are written without the journal, each
// change under the condition that the version is the one that was read.
func (s *Streams) move(ctx context.Context, n number, consumer UUID, name string, to func(now int64) (int64, error)) (int64, error) {
	for try := range maxMoves {
		o, version, err := s.offset(ctx, n, consumer, name)
		if err != nil {
			return 0, err
		}
		target, err := to(o.Offset)
		if err != nil || target == o.Offset {
			return o.Offset, err
		}
		o.Offset, o.Moved = target, s.now().UTC().Truncate(time.Microsecond)
		cond := store.Absent
		if version > 0 {
			cond = store.VersionIs(version)
		}
		item := store.Item{Key: work(offsetPartition(n), offsetSort(consumer, name)), Version: version + 1, Value: encode(o)}
		err = s.store.Write(ctx, store.Write{Token: rand.Text(), Ops: []store.Op{store.Put(item, cond)}})
		switch {
		case err == nil:
			return target, nil
		case store.AsConflict(err) != nil, errors.Is(err, store.ErrBusy):
		case errors.Is(err, store.ErrUnknown) && ctx.Err() == nil: // the next try reads whether it was applied
		default:
			return 0, unavailable("move an offset", err)
		}
		if err := pause(ctx, time.Duration(try)*5*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return 0, journal.ErrUnavailable
}

// Acknowledge notes that a consumer is done with an event, and returns its offset. An event acknowledged already changes
// nothing; one that is not the next of its name is an [*OutOfOrderError]; ErrNoStream and ErrNoEvent say what is missing.
func (s *Streams) Acknowledge(ctx context.Context, stream string, consumer, id UUID) (int64, error) {
	n, err := s.find(ctx, stream)
	if err != nil {
		return 0, err
	}
	if of, _, ok := id.split(); !ok || of != n {
		return 0, ErrNoEvent
	}
	_, _, at, err := s.locate(ctx, id)
	if err != nil {
		return 0, err
	}
	return s.move(ctx, n, consumer, at.name, func(now int64) (int64, error) {
		switch {
		case at.sequence == now+1:
			return at.sequence, nil
		case at.sequence <= now:
			return now, nil
		default:
			return now, &OutOfOrderError{Name: at.name, Next: now + 1, This: at.sequence}
		}
	})
}

// Move sets a consumer's offset of a name: back, so that events are read again, or up. It is from 0 to the name's last
// sequence, otherwise the error is ErrBeyond; ErrNoStream says that there is no such stream.
func (s *Streams) Move(ctx context.Context, stream string, consumer UUID, name string, to int64) error {
	n, err := s.find(ctx, stream)
	if err != nil {
		return err
	}
	items, err := s.store.Get(ctx, work(namesPartition(n), name))
	if err != nil {
		return unavailable("read an event name", err)
	}
	var known named
	if items[0] != nil {
		if err := decode(items[0], &known); err != nil {
			return err
		}
	}
	if to < 0 || to > known.Last {
		return ErrBeyond
	}
	_, err = s.move(ctx, n, consumer, name, func(int64) (int64, error) { return to, nil })
	return err
}
