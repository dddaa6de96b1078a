package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// state is what is remembered of a schedule. Times are microseconds since 1970.
type state struct {
	Name      string `json:"n"`
	Since     int64  `json:"b"` // the time of the first look; it has no ticks before
	Until     int64  `json:"u"` // ticks up to then were made, or given up
	Suspended bool   `json:"s,omitempty"`
	FiredAt   int64  `json:"f,omitempty"` // the newest tick that was made
	Of        *spec  `json:"o,omitempty"` // the declaration by which they were made; nil: the one in force
	Revision  int64  `json:"r,omitempty"` // of the set that was in force then

	Cause event.ID `json:"c,omitempty"` // what put it in force, or suspended it; 0: it is not known
}

const partition = "schedules"

func key(name string) store.Key {
	return store.Key{Table: store.Definitions, Partition: partition, Sort: sortOf(name)}
}

// sortOf returns the sort key for a schedule's name.
func sortOf(name string) string { return "/" + name }

// stored is a state and the version of its item; 0 if it has none yet.
type stored struct {
	state
	version int64
}

func (s *stored) cond() store.Condition {
	if s.version == 0 {
		return store.Absent
	}
	return store.VersionIs(s.version)
}

func (s *stored) op() store.Op {
	value, err := store.Encode(&s.state)
	if err != nil {
		panic(err) // a struct of numbers and texts
	}
	return store.Put(store.Item{Key: key(s.Name), Value: value}, s.cond())
}

// states reads the states of all schedules, by name.
func (s *Scheduler) states(ctx context.Context) (map[string]stored, error) {
	all := map[string]stored{}
	for item, err := range store.All(ctx, s.o.Store, store.Range{Table: store.Definitions, Partition: partition}) {
		if err != nil {
			return nil, fmt.Errorf("%w: read schedules: %w", journal.ErrUnavailable, err)
		}
		one, err := read(item)
		if err != nil {
			return nil, err
		}
		all[one.Name] = one
	}
	return all, nil
}

// load reads the state of one schedule; a new one begins now.
func (s *Scheduler) load(ctx context.Context, name string) (stored, error) {
	items, err := s.o.Store.Get(ctx, key(name))
	if err != nil {
		return stored{}, fmt.Errorf("%w: read schedule %s: %w", journal.ErrUnavailable, name, err)
	}
	if items[0] == nil {
		return stored{state: stateOf(name, s.o.Now())}, nil
	}
	return read(items[0])
}

func read(item *store.Item) (stored, error) {
	one := stored{version: item.Version}
	if err := store.Decode(item.Value, &one.state); err != nil {
		return one, fmt.Errorf("schedule: %v cannot be read: %w", item.Key, err)
	}
	return one, nil
}

func at(micro int64) time.Time { return time.UnixMicro(micro).UTC() }
