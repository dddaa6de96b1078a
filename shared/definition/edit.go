package definition

import (
	"slices"
	"time"

	"github.com/millrace/millrace/shared/strict"
)

// A set is edited by making another one. An object that is put into a sound set is read alone, and what it refers to is
// looked up in the set; so the cost of reading is that of the object, not of the set.

// PutSchedule returns the set with a schedule, read from a JSON object, in the place of the one of its name or after all
// others. The error is a [*strict.Error] with paths within the object; a new date must be after now.
func (s *Set) PutSchedule(text []byte, now time.Time) (after *Set, replaced bool, err error) {
	one, err := s.readBeside(text, (*reader).schedule)
	if err != nil {
		return nil, false, err
	}
	var before time.Time
	if at := indexOf(s.Schedules, one.Schedules[0].Name, scheduleName); at >= 0 {
		before = s.Schedules[at].Date
	}
	if put := &one.Schedules[0]; put.tooLate(before, now) {
		return nil, false, &strict.Error{Name: "body", Mistakes: []strict.Mistake{put.pastDate("")}}
	}
	after = s.copy()
	after.Schedules, replaced = putNamed(s.Schedules, one.Schedules[0], scheduleName)
	return after, replaced, nil
}

// PutQueue is [Set.PutSchedule] of a queue.
func (s *Set) PutQueue(text []byte) (after *Set, replaced bool, err error) {
	one, err := s.readBeside(text, (*reader).queue)
	if err != nil {
		return nil, false, err
	}
	after = s.copy()
	after.Queues, replaced = putNamed(s.Queues, one.Queues[0], queueName)
	return after, replaced, nil
}

// WithoutSchedule returns the set without the schedule of that name, and whether the schedule was in it.
func (s *Set) WithoutSchedule(name string) (after *Set, removed bool) {
	after = s.copy()
	after.Schedules, removed = withoutNamed(s.Schedules, name, scheduleName)
	return after, removed
}

// WithoutQueue is WithoutSchedule of a queue. Jobs may still name the queue, so the whole set is checked when it is
// applied.
func (s *Set) WithoutQueue(name string) (after *Set, removed bool) {
	after = s.copy()
	after.sound = false
	after.Queues, removed = withoutNamed(s.Queues, name, queueName)
	return after, removed
}

func scheduleName(s *Schedule) string { return s.Name }

func queueName(q *Queue) string { return q.Name }

// copy returns a set that declares the same. It shares its parts with s; they must not be modified.
func (s *Set) copy() *Set {
	return &Set{
		Sources: s.Sources, Handlers: s.Handlers, Jobs: s.Jobs, Queues: s.Queues, Schedules: s.Schedules, JobChains: s.JobChains,
		Locks: s.Locks, FileOrders: s.FileOrders, Lease: s.Lease, sound: s.sound,
	}
}

// withFileOrders returns the set with these file orders in place of its own.
func (s *Set) withFileOrders(orders []FileOrder) *Set {
	after := s.copy()
	after.FileOrders = orders
	return after
}

// readBeside reads one object that is to become part of the set.
func (s *Set) readBeside(text []byte, read func(*reader, *strict.Document, *strict.Node, string)) (*Set, error) {
	r := &reader{set: new(Set), names: map[string]bool{}, beside: s}
	err := strict.Read("body", text, func(d *strict.Document, n *strict.Node, path string) {
		read(r, d, n, path)
		for _, check := range r.checks {
			check()
		}
	})
	return r.set, err
}

func putNamed[T any](all []T, one T, name func(*T) string) (after []T, replaced bool) {
	after = slices.Clone(all)
	if at := indexOf(all, name(&one), name); at >= 0 {
		after[at] = one
		return after, true
	}
	return append(after, one), false
}

func withoutNamed[T any](all []T, wanted string, name func(*T) string) (after []T, removed bool) {
	at := indexOf(all, wanted, name)
	if at < 0 {
		return all, false
	}
	return slices.Concat(all[:at], all[at+1:]), true
}

func indexOf[T any](all []T, wanted string, name func(*T) string) int {
	return slices.IndexFunc(all, func(one T) bool { return name(&one) == wanted })
}
