package definition_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/strict"
)

// counted is a store that counts reads, and fails them on demand.
type counted struct {
	store.Store
	gets   atomic.Int32
	failed atomic.Bool
	before func(keys []store.Key) // called before a read, if set
}

func (c *counted) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	c.gets.Add(1)
	if c.failed.Load() {
		return nil, store.ErrBusy
	}
	if c.before != nil {
		c.before(keys)
	}
	return c.Store.Get(ctx, keys...)
}

// shelf is a store with a journal, on which any number of books may be opened.
type shelf struct {
	store   *counted
	journal *journal.Journal
	now     time.Time
}

func newShelf(t testing.TB) *shelf {
	s := &shelf{store: &counted{Store: memory.New(memory.Options{})}, now: time.Unix(1_800_000_000, 0)}
	s.journal = journal.Open(s.store, journal.Options{})
	t.Cleanup(func() {
		if err := s.journal.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *shelf) open() *definition.Catalog {
	return definition.OpenCatalog(definition.CatalogOptions{Store: s.store, Journal: s.journal, Now: func() time.Time { return s.now }})
}

// events returns all events, as TYPE and key.
func (s *shelf) events(t testing.TB) []string {
	t.Helper()
	answer, err := s.journal.ReadAfter(t.Context(), journal.Request{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range answer.Events {
		all = append(all, e.Type+" "+e.Key.Path)
	}
	return all
}

func current(t testing.TB, b *definition.Catalog) *definition.Set {
	t.Helper()
	set, err := b.Current(t.Context())
	if err != nil {
		t.Fatalf("Current() = %v", err)
	}
	return set
}

func apply(t testing.TB, b *definition.Catalog, text string) definition.Changes {
	t.Helper()
	set, err := definition.Read("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	changes, err := b.Apply(t.Context(), set, definition.FromAPI)
	if err != nil {
		t.Fatalf("Apply() = %v", err)
	}
	return changes
}

// A date that has passed is refused when it is declared. One that has passed since, and one in the server's file, may
// stay.
func TestDatesThatHavePassed(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	b := s.open()
	dated := func(at time.Time, more string) string {
		return fmt.Sprintf(`{"schedules": [{"name": "s", "date": "%s", "job": "/topics/t"%s}]}`, at.UTC().Format(time.RFC3339), more)
	}
	refused := func(text string) {
		t.Helper()
		set, err := definition.Read("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, planned := b.Plan(t.Context(), set, definition.FromAPI)
		_, applied := b.Apply(t.Context(), set, definition.FromAPI)
		for name, err := range map[string]error{"Plan": planned, "Apply": applied} {
			if malformed, ok := errors.AsType[*strict.Error](err); !ok || malformed.Mistakes[0].Path != "schedules[0].date" {
				t.Errorf("%s() = %v, want a mistake in the date", name, err)
			}
		}
	}
	refused(dated(s.now, ""))
	soon := s.now.Add(time.Minute)
	apply(t, b, dated(soon, ""))
	s.now = soon.Add(time.Hour)
	apply(t, b, dated(soon, ""))
	apply(t, b, dated(soon, `, "payload": 5`))
	refused(dated(soon.Add(time.Second), ""))

	file, err := definition.Read("f", []byte(dated(soon.Add(time.Second), "")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.ApplyFile(t.Context(), file); err != nil {
		t.Errorf("ApplyFile() = %v", err)
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	b := s.open()
	if got := current(t, b); !got.Equal(new(definition.Set)) {
		t.Errorf("before anything is applied, %s is in force", got.JSON())
	}
	apply(t, b, "jobs: [{path: /a}, {path: /b}]")
	got := apply(t, b, "jobs: [{path: /b, attempts: 2}, {path: /c}]")
	want := definition.Changes{Added: []string{"Job:/c"}, Replaced: []string{"Job:/b"}, Removed: []string{"Job:/a"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Apply() (-want +got):\n%s", diff)
	}
	events := []string{
		"FileBasedAdded Job:/a", "FileBasedActivated Job:/a", "FileBasedAdded Job:/b", "FileBasedActivated Job:/b",
		"FileBasedRemoved Job:/a", "FileBasedReplaced Job:/b", "FileBasedActivated Job:/b",
		"FileBasedAdded Job:/c", "FileBasedActivated Job:/c",
	}
	if diff := cmp.Diff(events, s.events(t)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if job, ok := current(t, b).JobOf("/b"); !ok || job.Attempts != 2 {
		t.Errorf("Current() does not answer what was applied: %+v", job)
	}
}

// Changed is called with each change, once it is in force, and with nothing else.
func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	shelf := newShelf(t)
	var told []definition.Changes
	var b *definition.Catalog
	b = definition.OpenCatalog(definition.CatalogOptions{Store: shelf.store, Journal: shelf.journal, Changed: func(_ context.Context, c definition.Changes) {
		if len(current(t, b).Queues) != 1 {
			t.Error("told of what is not in force")
		}
		told = append(told, c)
	}})
	for range 2 {
		apply(t, b, "queues: [{name: q}]")
	}
	if len(told) != 1 || len(told[0].Added) != 1 || told[0].OnlySchedules() {
		t.Errorf("told of %+v, want one queue", told)
	}
}

func TestApplyOfTheSameChangesNothing(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	b := s.open()
	apply(t, b, "jobs: [{path: /a}]\nlease: 3s")
	before := s.events(t)
	if got := apply(t, b, string(current(t, b).JSON())); !got.Empty() {
		t.Errorf("Apply(same) = %+v, want nothing", got)
	}
	if diff := cmp.Diff(before, s.events(t)); diff != "" {
		t.Errorf("events of nothing:\n%s", diff)
	}
	apply(t, b, "jobs: [{path: /a}]\nlease: 4s")
	if lease := current(t, b).Lease; lease != 4*time.Second {
		t.Errorf("lease = %v, want 4s although no object has changed", lease)
	}
}

func TestPlanChangesNothing(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	b := s.open()
	got, err := b.Plan(t.Context(), read(t, "jobs: [{path: /a}]"), definition.FromAPI)
	if err != nil || len(got.Added) != 1 {
		t.Errorf("Plan() = %+v, %v", got, err)
	}
	if events := s.events(t); len(events) > 0 || len(current(t, b).Jobs) > 0 {
		t.Errorf("Plan() applied something: %v", events)
	}
}

func TestApplyRefusesWhatReadWould(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	b := s.open()
	apply(t, b, "jobs: [{path: /a}]")
	_, err := b.Apply(t.Context(), &definition.Set{Jobs: []definition.Job{{Path: "b"}}}, definition.FromFile)
	var malformed *strict.Error
	if !errors.As(err, &malformed) || len(current(t, b).Jobs) != 1 {
		t.Errorf("Apply(bad path) = %v, want it refused and nothing changed", err)
	}
}

func TestCommandsComeFromTheFile(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	b := s.open()
	text := "sources: {crm: {target: {command: [sh, -c, a]}, collections: [{name: c}]}}"
	refused := func(text string) {
		t.Helper()
		var only *definition.FileOnly
		_, err := b.Apply(t.Context(), read(t, text), definition.FromAPI)
		if !errors.As(err, &only) || !strings.Contains(only.Mistakes[0].Path, "target.command") {
			t.Errorf("Apply(new command) = %v, want FileOnly", err)
		}
		if _, err := b.Plan(t.Context(), read(t, text), definition.FromAPI); !errors.As(err, &only) {
			t.Errorf("Plan(new command) = %v, want FileOnly", err)
		}
	}
	refused(text)
	if _, err := b.ApplyFile(t.Context(), read(t, text)); err != nil {
		t.Fatal(err)
	}
	apply(t, b, strings.Replace(text, "name: c", "name: d", 1))
	refused(strings.Replace(text, "a]", "b]", 1))
	refused(strings.Replace(text, "crm", "other", 1))
}

func TestApplyFile(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	file := func(text string) definition.Changes {
		t.Helper()
		changes, err := s.open().ApplyFile(t.Context(), read(t, text))
		if err != nil {
			t.Fatalf("ApplyFile() = %v", err)
		}
		return changes
	}
	paths := func() string {
		var all []string
		for _, j := range current(t, s.open()).Jobs {
			all = append(all, j.Path)
		}
		return strings.Join(all, " ")
	}
	apply(t, s.open(), "jobs: [{path: /api}]")
	for _, step := range []struct{ file, want string }{
		{"{}", "/api"},
		{"jobs: [{path: /a}]", "/a"},
		{"jobs: [{path: /a}]", "/a"},
	} {
		if file(step.file); paths() != step.want {
			t.Errorf("after the file %q, %s is in force, want %s", step.file, paths(), step.want)
		}
	}
	apply(t, s.open(), "jobs: [{path: /api}]")
	if file("jobs: [{path: /a}]"); paths() != "/api" {
		t.Errorf("an unchanged file took back what was applied since: %s", paths())
	}
	if file("{}"); paths() != "" {
		t.Errorf("a file that declares nothing any more left %s", paths())
	}
}

func TestCurrentIsReadAnewWhenItIsOld(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	one, other := s.open(), s.open()
	current(t, one)
	apply(t, other, "jobs: [{path: /a}]")
	before := s.store.gets.Load()
	s.now = s.now.Add(4 * time.Second)
	if got := current(t, one); len(got.Jobs) != 0 || s.store.gets.Load() != before {
		t.Error("Current() was read anew within its age")
	}
	if got, err := one.Refresh(t.Context()); err != nil || len(got.Jobs) != 1 {
		t.Errorf("Refresh() = %+v, %v, want what is in force", got, err)
	}
	apply(t, other, "{}")
	s.now = s.now.Add(5 * time.Second)
	if got := current(t, one); len(got.Jobs) != 0 {
		t.Error("Current() is older than its age")
	}
	before = s.store.gets.Load()
	s.now = s.now.Add(5 * time.Second)
	if current(t, one); s.store.gets.Load() != before+1 {
		t.Errorf("a look at what has not changed took %d reads, want 1", s.store.gets.Load()-before)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	b := s.open()
	s.store.failed.Store(true)
	if _, err := b.Current(t.Context()); !errors.Is(err, journal.ErrUnavailable) {
		t.Errorf("Current() = %v, want ErrUnavailable", err)
	}
	if _, err := b.Apply(t.Context(), read(t, "{}"), definition.FromAPI); !errors.Is(err, journal.ErrUnavailable) {
		t.Errorf("Apply() = %v, want ErrUnavailable", err)
	}
	s.store.failed.Store(false)
	refusal := errors.New("no")
	_, err := b.Edit(t.Context(), definition.FromAPI, func(*definition.Set) (*definition.Set, error) { return nil, refusal })
	if !errors.Is(err, refusal) {
		t.Errorf("Edit() = %v, want the error of its change", err)
	}
}

// large returns a set whose JSON needs several items.
func large(n int) *definition.Set {
	s := new(definition.Set)
	for i := range n {
		s.Schedules = append(s.Schedules, definition.Schedule{
			Name: fmt.Sprintf("s%d", i), Cron: "@daily", Job: "/topics/a", Payload: []byte(`"` + strings.Repeat("x", 100<<10) + `"`),
		})
	}
	return s
}

func TestASetOfManyItems(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	b := s.open()
	for _, n := range []int{12, 1, 8, 0} {
		if _, err := b.Apply(t.Context(), large(n), definition.FromAPI); err != nil {
			t.Fatalf("Apply(%d × 100 KiB) = %v", n, err)
		}
		if got := current(t, s.open()); !got.Equal(large(n)) {
			t.Errorf("%d schedules are in force, want %d", len(got.Schedules), n)
		}
	}
	page, err := s.store.Query(t.Context(), store.Range{Table: store.Definitions, Partition: "set"})
	if err != nil || len(page.Items) != 2 {
		t.Errorf("%d items are left, %v, want the head and one part", len(page.Items), err)
	}
	if _, err := b.Apply(t.Context(), large(30), definition.FromAPI); !errors.Is(err, definition.ErrTooLarge) {
		t.Errorf("Apply(3 MB) = %v, want ErrTooLarge", err)
	}
}

func TestASetOfManyObjects(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	b := s.open()
	for n, want := range map[int]error{10_000: nil, 60_000: definition.ErrTooLarge} {
		set := new(definition.Set)
		for i := range n {
			set.Jobs = append(set.Jobs, definition.Job{Path: fmt.Sprintf("/j%d", i)})
		}
		if _, err := b.Apply(t.Context(), set, definition.FromAPI); !errors.Is(err, want) {
			t.Errorf("Apply(%d jobs) = %v, want %v", n, err, want)
		}
	}
}

// A set that is replaced while it is read is read again, never half of each.
func TestASetThatIsReplacedWhileItIsRead(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	writer, reader := s.open(), s.open()
	for _, n := range []int{8, 4, 0} {
		if _, err := writer.Apply(t.Context(), large(9), definition.FromFile); err != nil {
			t.Fatal(err)
		}
		replaced := false
		s.store.before = func(keys []store.Key) {
			if replaced || keys[0].Table != store.Definitions || keys[0].Sort == "0" {
				return
			}
			replaced = true // between the head and its parts
			if _, err := writer.Apply(t.Context(), large(n), definition.FromFile); err != nil {
				t.Error(err)
			}
		}
		got, err := reader.Refresh(t.Context())
		s.store.before = nil
		if err != nil || !replaced || !got.Equal(large(n)) {
			t.Errorf("Refresh() = %d schedules, %v, want %d", len(got.Schedules), err, n)
		}
	}
}

// An edit that a concurrent one overtakes is repeated on the other's result.
func TestAnEditIsMadeOfTheNewest(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"{}", "jobs: [{path: /before}]"} {
		s := newShelf(t)
		apply(t, s.open(), before)
		var saw []string
		_, err := s.open().Edit(t.Context(), definition.FromAPI, func(inForce *definition.Set) (*definition.Set, error) {
			saw = append(saw, string(inForce.JSON()))
			if len(saw) == 1 {
				apply(t, s.open(), "jobs: [{path: /other}]")
			}
			return &definition.Set{Jobs: append([]definition.Job{{Path: "/mine"}}, inForce.Jobs...)}, nil
		})
		if err != nil || len(saw) != 2 || saw[1] != `{"jobs":[{"path":"/other"}]}` {
			t.Errorf("Edit() = %v, and was made of %q", err, saw)
		}
		if got := string(current(t, s.open()).JSON()); got != `{"jobs":[{"path":"/mine"},{"path":"/other"}]}` {
			t.Errorf("in force is %s, want both edits", got)
		}
	}
}

func TestEditsAtOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	b := s.open()
	var group sync.WaitGroup
	const many = 8
	for i := range many {
		group.Go(func() {
			_, err := b.Edit(t.Context(), definition.FromAPI, func(old *definition.Set) (*definition.Set, error) {
				jobs := append([]definition.Job{{Path: fmt.Sprintf("/j%d", i)}}, old.Jobs...)
				return &definition.Set{Jobs: jobs}, nil
			})
			if err != nil {
				t.Errorf("Edit() = %v", err)
			}
			current(t, b)
		})
	}
	group.Wait()
	if got := current(t, b); len(got.Jobs) != many {
		t.Errorf("%d jobs are in force, want %d", len(got.Jobs), many)
	}
}

// Whatever is applied in sequence, the events describe it, and the newest set is in force.
func TestAppliesInTurn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := newShelf(t)
		b := s.open()
		inForce := new(definition.Set)
		for _, set := range rapid.SliceOfN(sets(), 1, 5).Draw(rt, "sets") {
			changes, err := b.Apply(t.Context(), set, definition.FromAPI)
			if err != nil {
				rt.Fatalf("Apply() = %v", err)
			}
			if diff := cmp.Diff(definition.Diff(inForce, set), changes); diff != "" {
				rt.Fatalf("Apply() (-want +got):\n%s", diff)
			}
			inForce = set
		}
		if got := current(t, b); !got.Equal(inForce) {
			rt.Fatalf("%s is in force, want %s", got.JSON(), inForce.JSON())
		}
		told := map[string]bool{}
		for _, e := range s.events(t) {
			kind, key, _ := strings.Cut(e, " ")
			told[key] = true
			if kind == "FileBasedRemoved" {
				delete(told, key)
			}
		}
		if diff := cmp.Diff(keys(inForce), told); diff != "" {
			rt.Fatalf("what the events add up to (-want +got):\n%s", diff)
		}
	})
}
