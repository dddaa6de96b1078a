package client

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/shared/event"
)

// State is a follower's fold of objects: a snapshot, and the custom events after it. It is for one goroutine.
//
//	state := client.StateOf(snapshot)
//	for step, err := range c.Follow(ctx, client.Query{After: snapshot.EventID}) {
//		if step.Snapshot != nil {
//			state = client.StateOf(*step.Snapshot)
//		}
//		for _, e := range step.Events {
//			err = state.Apply(e)
//		}
//	}
type State struct {
	objects map[string]Object
}

// StateOf returns the state of a snapshot. The zero Snapshot is the state before the first event.
func StateOf(s Snapshot) *State {
	state := &State{objects: make(map[string]Object, len(s.Objects))}
	for _, o := range s.Objects {
		state.objects[o.Key.Path] = o
	}
	return state
}

// Apply changes the state by one event. Events must come in the order of their ids. Those without a key, and those of
// built-in types, change nothing.
func (s *State) Apply(e event.Event) error {
	switch {
	case e.Key.IsZero() || event.FamilyOf(e.Type) != event.CustomEvent:
		return nil
	case event.RemovesObject(e.Type):
		delete(s.objects, e.Key.Path)
		return nil
	}
	o := s.objects[e.Key.Path]
	fields, err := merge(o.Fields, e.Fields)
	if err != nil {
		return err
	}
	s.objects[e.Key.Path] = Object{Key: e.Key, EventID: e.ID, LastType: e.Type, Fields: fields}
	return nil
}

// merge returns the old members with the values of the new ones, followed by those that are only new. A field named as a member that
// each object has itself is none of the object's.
func merge(old, changed []byte) ([]byte, error) {
	values := map[string][]byte{}
	if err := Members(changed, func(name string, value []byte) { values[name] = value }); err != nil {
		return nil, err
	}
	var merged []byte
	err := Members(old, func(name string, value []byte) {
		if newer, ok := values[name]; ok {
			value = newer
			delete(values, name)
		}
		merged = appendMember(merged, name, value)
	})
	if err != nil {
		return nil, err
	}
	err = Members(changed, func(name string, value []byte) {
		if _, left := values[name]; left && name != lastType {
			merged = appendMember(merged, name, value)
		}
	})
	return merged, err
}

// Objects returns the objects in the order of their keys.
func (s *State) Objects() []Object {
	return slices.SortedFunc(maps.Values(s.objects), func(a, b Object) int { return strings.Compare(a.Key.Path, b.Key.Path) })
}

// Equal reports whether two objects are equal, whatever the order of their fields.
func (o Object) Equal(other Object) bool {
	if o.Key != other.Key || o.EventID != other.EventID || o.LastType != other.LastType {
		return false
	}
	mine, theirs := map[string]string{}, map[string]string{}
	err := errors.Join(
		Members(o.Fields, func(name string, value []byte) { mine[name] = string(value) }),
		Members(other.Fields, func(name string, value []byte) { theirs[name] = string(value) }))
	return err == nil && maps.Equal(mine, theirs)
}
