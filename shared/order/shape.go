package order

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// shape is what some waits for events have in common: all but the values that the events' fields must have. There are as many as
// there are kinds of wait nodes, so they are few; each stays known once an order has waited so.
type shape struct {
	Event  string   `json:"e"`           // type
	Path   string   `json:"p,omitempty"` // path query
	Fields []string `json:"f,omitempty"` // sorted

	types event.Selection
	paths event.PathQuery
}

const partitionShapes = "wait-shapes"

func shapeKey(key string) store.Key { return work(partitionShapes, key) }

func shapeOf(w *definition.Wait) shape {
	return shape{Event: w.Event, Path: w.Path, Fields: slices.Sorted(maps.Keys(w.Where))}
}

// key returns the shape's key, which depends on nothing but what it says of events.
func (s *shape) key() string { return hashOf(encode(s)) }

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// wanted returns the hash of the values that a wait of the shape wants.
func (s *shape) wanted(w *definition.Wait, v values) (string, error) {
	wanted := make([]json.RawMessage, len(s.Fields))
	for i, name := range s.Fields {
		value, err := v.expand(w.Where[name])
		if err != nil {
			return "", err
		}
		wanted[i] = encode(value)
	}
	return hashValues(wanted)
}

// hashValues returns the hash of some values, which is the same for equal ones however they are written.
func hashValues(all []json.RawMessage) (string, error) {
	text := jsontext.Value(encode(all))
	if err := text.Canonicalize(); err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return hashOf(text), nil
}

// compile makes the shape fit to be compared with events.
func (s *shape) compile() (err error) {
	if s.types, err = event.ParseReturn(s.Event); err == nil {
		s.paths, err = event.ParsePath(s.Path)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

// selects reports whether an event is of the shape, but for its fields.
func (s *shape) selects(e *event.Event) bool {
	return s.types.Match(e.Type) && s.paths.MatchKey(event.FamilyOf(e.Type), e.Key)
}

// valuesOf returns the hash of the values that an event has in the shape's fields; ok is false if it lacks one.
func (s *shape) valuesOf(e *event.Event) (hash string, ok bool) {
	fields := map[string]json.RawMessage{}
	if len(s.Fields) > 0 && len(e.Fields) > 0 {
		if json.Unmarshal(slices.Concat([]byte("{"), e.Fields, []byte("}")), &fields) != nil {
			return "", false
		}
	}
	has := make([]json.RawMessage, len(s.Fields))
	for i, name := range s.Fields {
		if has[i], ok = fields[name]; !ok {
			return "", false
		}
	}
	hash, err := hashValues(has)
	return hash, err == nil
}

// declareShape notes a shape that nobody has waited in yet, in the write by which the first order comes to wait so.
func (m *move) declareShape(ctx context.Context, s *shape) error {
	known, name := &m.e.waits.shapes, s.key()
	if _, ok := known.get(name); ok {
		return nil
	}
	key := shapeKey(name)
	items, err := m.e.get(ctx, key)
	switch {
	case err != nil:
		return err
	case items[0] != nil:
		known.put(name, true, 0)
		return nil
	}
	put := store.Put(store.Item{Key: key, Value: encode(s)}, store.Absent)
	m.list(key, func(journal.Receipt) store.Op { return put })
	return nil
}

// declarePosition sets where followers begin, in the write by which the first order ever comes to wait: if two come at once, the other
// one is written later. They begin before that write's events: the position may be seen before the list that holds the order, and only
// who reads that it has come waits for that, see arrivals.
func (m *move) declarePosition(ctx context.Context) error {
	if _, ok := m.e.waits.shapes.get(positionKey.Partition); ok {
		return nil
	}
	items, err := m.e.get(ctx, positionKey)
	switch {
	case err != nil:
		return err
	case items[0] != nil:
		m.e.waits.shapes.put(positionKey.Partition, true, 0)
		return nil
	}
	m.list(positionKey, func(r journal.Receipt) store.Op {
		return store.Put(store.Item{Key: positionKey, Version: 1, Value: encode(r.FirstID - 1)}, store.Absent)
	})
	return nil
}

// shapes returns all shapes in which orders have ever waited, but for those that cannot be read.
func (e *Engine) shapes(ctx context.Context) (all []shape, err error) {
	return readShapes(ctx, e.store, e.skip)
}

// readShapes returns the shapes, and calls skip for each that cannot be read.
func readShapes(ctx context.Context, s store.Store, skip func(store.Key, error)) (all []shape, err error) {
	for item, err := range store.All(ctx, s, store.Range{Table: store.Work, Partition: partitionShapes}) {
		if err != nil {
			return nil, journal.Failure("read what orders wait for", err)
		}
		var s shape
		err := decode(item, &s)
		if err == nil {
			err = s.compile()
		}
		if err != nil {
			skip(item.Key, err)
			continue
		}
		all = append(all, s)
	}
	return all, nil
}

// occupied returns those of some shapes in which orders wait now.
func (e *Engine) occupied(ctx context.Context, all []shape) (some []shape, err error) {
	for i := range all {
		r := store.Range{Table: store.Work, Partition: waitsPartition(all[i].key()), Limit: 1}
		page, err := e.store.Query(ctx, r)
		if err != nil {
			return nil, journal.Failure("read who waits for events", err)
		}
		if len(page.Items) > 0 {
			some = append(some, all[i])
		}
	}
	return some, nil
}

// isArrival reports whether an event tells of an order that waits for an event from now on.
func isArrival(e *event.Event) bool {
	return e.Type == event.OrderWaiting && bytes.Contains(e.Fields, []byte(`"for":"event"`))
}
