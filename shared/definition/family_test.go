package definition_test

import (
	"testing"

	"github.com/millrace/millrace/shared/definition"
)

func TestQueueFamily(t *testing.T) {
	t.Parallel()
	set := &definition.Set{Queues: []definition.Queue{
		{Name: "mail-{0}", Topics: []string{"mail", "mail/*"}, Type: definition.Ordered},
		{Name: "{0}", Topics: []string{"x."}, MaxParallel: 7},
		{Name: "rest.{0}-{0}", Topics: []string{"*"}, MaxParallel: 9},
	}}
	for topic, want := range map[string]struct {
		queue    string
		parallel int
	}{
		"mail": {"mail-", 1}, "mail/a": {"mail-a", 1}, "mail/a/b": {"mail-a.b", 1}, "x/y": {"y", 7}, "x/y/z": {"rest.x.y.z-x.y.z", 9},
		"other": {"rest.other-other", 9},
	} {
		name := set.QueueForTopic(topic)
		if got := set.QueueOf(name); name != want.queue || got.Name != name || got.MaxParallel != want.parallel {
			t.Errorf("%s: queue %s, %d at once; want %s, %d", topic, name, got.MaxParallel, want.queue, want.parallel)
		}
	}
	for _, name := range []string{"mail-a/b", "main", "sync-tasks", "rest.a-b", "rest.-", "mail-a..b"} {
		if got := set.QueueOf(name); got.MaxParallel != 0 {
			t.Errorf("%s is a queue of no family, got %+v", name, got)
		}
		if family, ok := set.FamilyOf(name); ok {
			t.Errorf("%s is a queue of the family %s, want none", name, family)
		}
	}
}

func TestFamilyOf(t *testing.T) {
	t.Parallel()
	set := &definition.Set{Queues: []definition.Queue{{Name: "mail-{0}", Topics: []string{"mail/*"}}, {Name: "mail-urgent"}}}
	if family, ok := set.FamilyOf("mail-a.b"); !ok || family != "mail-{0}" {
		t.Errorf("FamilyOf = %q, %v, want mail-{0}", family, ok)
	}
	for _, name := range []string{"mail-urgent", "mail-{0}", "other"} { // the first is declared by itself
		if family, ok := set.FamilyOf(name); ok {
			t.Errorf("FamilyOf(%s) = %q, want none", name, family)
		}
	}
}
