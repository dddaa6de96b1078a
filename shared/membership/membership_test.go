package membership_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

// bench is a membership and its clock, which the test sets.
type bench struct {
	*membership.Membership
	t     *testing.T
	store store.Store
	at    time.Time
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, store: memory.New(memory.Options{}), at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	b.Membership = membership.Open(membership.Options{Store: b.store, Now: b.now})
	return b
}

func (b *bench) now() time.Time { return b.at }

// once registers an instance with an idempotency key, whose content is the capacity.
func (b *bench) once(capacity int) (membership.Instance, error) {
	once := &journal.Idempotency{Scope: "s", Key: "k", Fingerprint: [32]byte{byte(capacity)}}
	return b.Register(b.t.Context(), membership.New{Name: "a", Jobs: []string{"/a/*"}, Capacity: capacity, Once: once})
}

func (b *bench) register(name string) membership.Instance {
	b.t.Helper()
	i, err := b.Register(b.t.Context(), membership.New{Name: name, Jobs: []string{"/a/*"}, Capacity: 2})
	if err != nil {
		b.t.Fatal(err)
	}
	return i
}

// A registration with an idempotency key happens once within a day, also where it is repeated by another process.
func TestRegisterOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := *b
	other.Membership = membership.Open(membership.Options{Store: b.store, Now: b.now})
	first, err := b.once(2)
	if err != nil || first.Replayed {
		t.Fatalf("Register = %+v, %v", first, err)
	}
	if again, err := other.once(2); err != nil || !again.Replayed || again.ID != first.ID || again.Term != first.Term {
		t.Errorf("Register with the same key = %+v, %v, want %s again", again, err, first.ID)
	}
	if _, err := other.once(3); !errors.Is(err, journal.ErrIdempotencyMismatch) {
		t.Errorf("Register of another capacity with the same key = %v, want ErrIdempotencyMismatch", err)
	}
	if diff := cmp.Diff([]string{"a"}, b.names()); diff != "" {
		t.Errorf("instances (-want +got):\n%s", diff)
	}
	b.at = b.at.Add(journal.OnceFor + time.Second)
	if later, err := other.once(2); err != nil || later.Replayed || later.ID == first.ID {
		t.Errorf("Register a day later = %+v, %v, want another", later, err)
	}
	if again, err := b.once(2); err != nil || !again.Replayed {
		t.Errorf("Register once more = %+v, %v, want that again", again, err)
	}
}

func (b *bench) beat(id string) error {
	_, err := b.Heartbeat(b.t.Context(), id, membership.Change{})
	return err
}

func (b *bench) names() []string {
	b.t.Helper()
	all, err := b.List(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}

func (b *bench) leader() membership.Leadership {
	b.t.Helper()
	l, err := b.Leader(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

func TestInstancesAreThereWhileTheyAreHeardOf(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.register("first"), b.register("second")
	if second.Term <= first.Term {
		t.Errorf("terms are %d, %d, want them to grow", first.Term, second.Term)
	}
	b.at = b.at.Add(20 * time.Second)
	if err := b.beat(second.ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"first", "second"}, b.names()); diff != "" {
		t.Error(diff)
	}
	b.at = b.at.Add(10 * time.Second)
	if diff := cmp.Diff([]string{"second"}, b.names()); diff != "" {
		t.Errorf("after the first one's lease: %s", diff)
	}
	if err := b.beat(first.ID); !errors.Is(err, membership.ErrNoInstance) {
		t.Errorf("Heartbeat(late) = %v, want ErrNoInstance", err)
	}
	if err := b.Leave(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.Leave(t.Context(), second.ID); !errors.Is(err, membership.ErrNoInstance) {
		t.Errorf("Leave again = %v, want ErrNoInstance", err)
	}
	b.at = b.at.Add(2 * time.Hour)
	if b.names() != nil {
		t.Error("somebody is left")
	}
	page, err := b.store.Query(t.Context(), store.Range{Table: store.Work, Partition: "instances"})
	if err != nil || len(page.Items) != 0 {
		t.Errorf("%d items of the dead are left, %v", len(page.Items), err)
	}
}

func TestHeartbeatChangesWhatAnInstanceCanDo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	i, capacity := b.register("i"), 7
	for _, c := range []membership.Change{{Jobs: []string{"/b/**", "/c"}}, {Capacity: &capacity}, {}} {
		if _, err := b.Heartbeat(t.Context(), i.ID, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Drain(t.Context(), i.ID); err != nil {
		t.Fatal(err)
	}
	got, err := b.Get(t.Context(), i.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Jobs, []string{"/b/**", "/c"}) || got.Capacity != 7 || !got.Draining {
		t.Errorf("Get = %+v", got)
	}
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, n := range map[string]membership.New{
		"no name":           {Jobs: []string{"/a"}, Capacity: 1},
		"no jobs":           {Name: "i", Capacity: 1},
		"no capacity":       {Name: "i", Jobs: []string{"/a"}},
		"no path":           {Name: "i", Jobs: []string{"a/*"}, Capacity: 1},
		"a star in between": {Name: "i", Jobs: []string{"/a/*/b"}, Capacity: 1},
	} {
		if _, err := b.Register(t.Context(), n); !errors.Is(err, membership.ErrInvalid) {
			t.Errorf("Register(%s) = %v, want ErrInvalid", name, err)
		}
	}
}

func TestTheNextLeadsWhenTheLeaseIsOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.register("first"), b.register("second")
	old := b.leader()
	if old.Holder != first.ID || old.Term != 1 {
		t.Fatalf("Leader = %+v, want the first to register, in term 1", old)
	}
	b.at = b.at.Add(20 * time.Second)
	if err := b.beat(second.ID); err != nil {
		t.Fatal(err)
	}
	if l := b.leader(); l.Holder != first.ID {
		t.Fatalf("Leader = %+v, want the first until its lease ends", l)
	}
	b.at = b.at.Add(15 * time.Second) // without a heartbeat of the first
	if err := b.beat(second.ID); err != nil {
		t.Fatal(err)
	}
	now := b.leader()
	if now.Holder != second.ID || now.Term != 2 {
		t.Fatalf("Leader = %+v, want the second, in term 2", now)
	}
	b.at = b.at.Add(16 * time.Second)
	if err := b.beat(second.ID); err != nil {
		t.Fatal(err)
	}
	if l := b.leader(); l.Holder != second.ID || l.Term != 2 {
		t.Errorf("Leader = %+v, want the second, still in term 2 after it has extended its lease", l)
	}
}

func TestTheNextLeadsAtOnceWhenTheLeaderLeaves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.register("first"), b.register("second")
	if err := b.Leave(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.beat(second.ID); err != nil {
		t.Fatal(err)
	}
	if l := b.leader(); l.Holder != second.ID || l.Term != 2 {
		t.Errorf("Leader = %+v, want the second, in term 2", l)
	}
}
