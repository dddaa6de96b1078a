package definition_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/strict"
)

// An edit makes the same set as a file with the same content would, and leaves the set that it started from unchanged.
func TestEditsAreAsTheFile(t *testing.T) {
	t.Parallel()
	const before = `{jobs: [{path: /x, queue: q}], queues: [{name: q}, {name: r}], schedules: [{name: a, cron: "@daily", job: /x}, {name: b, cron: "@daily", job: /topics/t}]}`
	queue := func(text string) func(*definition.Set) (*definition.Set, bool, error) {
		return func(s *definition.Set) (*definition.Set, bool, error) { return s.PutQueue([]byte(text)) }
	}
	schedule := func(text string) func(*definition.Set) (*definition.Set, bool, error) {
		return func(s *definition.Set) (*definition.Set, bool, error) { return s.PutSchedule([]byte(text), today) }
	}
	for name, test := range map[string]struct {
		edit  func(*definition.Set) (*definition.Set, bool, error)
		there bool
		want  string
	}{
		"a new queue": {queue(`{"name":"s","max_parallel":3}`), false,
			`{jobs: [{path: /x, queue: q}], queues: [{name: q}, {name: r}, {name: s, max_parallel: 3}], schedules: [{name: a, cron: "@daily", job: /x}, {name: b, cron: "@daily", job: /topics/t}]}`},
		"another queue": {queue(`{"name":"q","type":"ordered"}`), true,
			`{jobs: [{path: /x, queue: q}], queues: [{name: q, type: ordered}, {name: r}], schedules: [{name: a, cron: "@daily", job: /x}, {name: b, cron: "@daily", job: /topics/t}]}`},
		"a queue less": {func(s *definition.Set) (*definition.Set, bool, error) {
			after, there := s.WithoutQueue("r")
			return after, there, nil
		}, true,
			`{jobs: [{path: /x, queue: q}], queues: [{name: q}], schedules: [{name: a, cron: "@daily", job: /x}, {name: b, cron: "@daily", job: /topics/t}]}`},
		"a new schedule": {schedule(`{"name":"c","cron":"@hourly","job":"/x"}`), false,
			`{jobs: [{path: /x, queue: q}], queues: [{name: q}, {name: r}], schedules: [{name: a, cron: "@daily", job: /x}, {name: b, cron: "@daily", job: /topics/t}, {name: c, cron: "@hourly", job: /x}]}`},
		"another schedule": {schedule(`{"name":"a","cron":"@hourly","job":"/topics/u"}`), true,
			`{jobs: [{path: /x, queue: q}], queues: [{name: q}, {name: r}], schedules: [{name: a, cron: "@hourly", job: /topics/u}, {name: b, cron: "@daily", job: /topics/t}]}`},
		"a schedule less": {func(s *definition.Set) (*definition.Set, bool, error) {
			after, there := s.WithoutSchedule("a")
			return after, there, nil
		}, true,
			`{jobs: [{path: /x, queue: q}], queues: [{name: q}, {name: r}], schedules: [{name: b, cron: "@daily", job: /topics/t}]}`},
		"none less": {func(s *definition.Set) (*definition.Set, bool, error) {
			after, there := s.WithoutSchedule("z")
			return after, there, nil
		}, false, before},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newShelf(t).open()
			apply(t, b, before)
			inForce := current(t, b)
			there := false
			if _, err := b.Edit(t.Context(), definition.FromAPI, func(s *definition.Set) (after *definition.Set, err error) {
				after, there, err = test.edit(s)
				return after, err
			}); err != nil || there != test.there {
				t.Fatalf("Edit = %v, there %v, want %v", err, there, test.there)
			}
			for what, want := range map[*definition.Set]string{inForce: before, current(t, b): test.want} {
				set, err := definition.Read("want", []byte(want))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(set.JSON()), string(what.JSON())); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

// today is when schedules are put: the second of a date that has passed.
var today = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func TestEditsRefuse(t *testing.T) {
	t.Parallel()
	b := newShelf(t).open()
	apply(t, b, `{jobs: [{path: /x, queue: q}], queues: [{name: q}]}`)
	for name, test := range map[string]struct {
		edit func(*definition.Set) (*definition.Set, bool, error)
		want string
	}{
		"a job that is not declared": {func(s *definition.Set) (*definition.Set, bool, error) {
			return s.PutSchedule([]byte(`{"name":"a","cron":"@daily","job":"/y"}`), today)
		}, `job: no job "/y" is declared`},
		"a mistake of its own": {func(s *definition.Set) (*definition.Set, bool, error) {
			return s.PutQueue([]byte(`{"name":"a","max_parallel":"x"}`))
		}, "max_parallel"},
		"a date that has passed": {func(s *definition.Set) (*definition.Set, bool, error) {
			return s.PutSchedule([]byte(`{"name":"a","date":"2026-03-01T12:00:00Z","job":"/x"}`), today)
		}, "date: 2026-03-01T12:00:00Z is past, want a time to come"},
		"what a job names": {func(s *definition.Set) (*definition.Set, bool, error) {
			after, there := s.WithoutQueue("q")
			return after, there, nil
		}, `jobs[0].queue: no queue "q" is declared`},
	} {
		_, err := b.Edit(t.Context(), definition.FromAPI, func(s *definition.Set) (after *definition.Set, err error) {
			after, _, err = test.edit(s)
			return after, err
		})
		malformed, ok := errors.AsType[*strict.Error](err)
		if !ok || len(malformed.Mistakes) != 1 {
			t.Errorf("%s: Edit = %v, want one mistake", name, err)
			continue
		}
		if m := malformed.Mistakes[0]; m.Path+": "+m.Message != test.want && m.Path != test.want {
			t.Errorf("%s: %s: %s, want %s", name, m.Path, m.Message, test.want)
		}
	}
}
