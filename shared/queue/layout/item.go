package layout

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Decode reads the value of an item. The target shares memory with it. The error says that it is damaged.
func Decode(item *store.Item, target any) (err error) {
	switch target := target.(type) {
	case *task.Task:
		err = expand(item.Value, target, taskFields)
	case *Entry:
		err = expand(item.Value, target, entryFields)
	case *Lease:
		err = expand(item.Value, target, leaseFields)
	case *Started:
		err = expand(item.Value, target, startedFields)
	default:
		err = store.Decode(item.Value, target)
	}
	if err != nil {
		return fmt.Errorf("%w: %v: %w", errDamaged, item.Key, err)
	}
	return nil
}

// Encode returns the value of an item: of a pointer to a task, an entry or a lease, or to [Started], its compact form, of others JSON.
func Encode(value any) []byte {
	switch value := value.(type) {
	case *task.Task:
		return compact(value, taskFields)
	case *Entry:
		return compact(value, entryFields)
	case *Lease:
		return compact(value, leaseFields)
	case *Started:
		return compact(value, startedFields)
	}
	text, err := store.Encode(value)
	if err != nil {
		panic(err) // structs of the engine, whose raw JSON was checked when it came in
	}
	return text
}

// LoadTask reads a task, without a payload that is kept apart. The error is [ErrNoTask] if there is none.
func LoadTask(ctx context.Context, s store.Store, uuid string) (t task.Task, version int64, err error) {
	if _, err := task.ParseID(uuid); err != nil {
		return t, 0, ErrNoTask
	}
	items, err := s.Get(ctx, TaskKey(uuid))
	if err != nil {
		return t, 0, Failure("read a task", err)
	}
	if items[0] == nil {
		return t, 0, ErrNoTask
	}
	return t, items[0].Version, Decode(items[0], &t)
}

// LoadPayload reads a payload that is kept apart from its task.
func LoadPayload(ctx context.Context, s store.Store, uuid string) (json.RawMessage, error) {
	payloads, err := LoadPayloads(ctx, s, []string{uuid})
	if err != nil {
		return nil, err
	}
	return payloads[0], nil
}

// LoadPayloads reads payloads that are kept apart from their tasks, in the order of their UUIDs.
func LoadPayloads(ctx context.Context, s store.Store, uuids []string) ([]json.RawMessage, error) {
	keys := make([]store.Key, len(uuids))
	for i, uuid := range uuids {
		keys[i] = PayloadKey(uuid)
	}
	items, err := s.Get(ctx, keys...)
	if err != nil {
		return nil, Failure("read payloads", err)
	}
	payloads := make([]json.RawMessage, len(items))
	for i, item := range items {
		if item == nil {
			return nil, fmt.Errorf("queue: payload of %s: %w", uuids[i], errDamaged)
		}
		payloads[i] = item.Value
	}
	return payloads, nil
}

// FindTask reads a task with its payload, and its version. The error is [ErrNoTask] if there is none with exactly this id.
func FindTask(ctx context.Context, s store.Store, id task.ID) (t task.Task, version int64, err error) {
	t, version, err = LoadTask(ctx, s, id.UUID())
	if err != nil {
		return t, 0, err
	}
	if t.ID != id {
		return task.Task{}, 0, ErrNoTask
	}
	if t.Apart > 0 {
		t.Payload, err = LoadPayload(ctx, s, id.UUID())
	}
	return t, version, err
}
