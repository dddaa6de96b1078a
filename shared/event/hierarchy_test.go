package event_test

import (
	"testing"

	"github.com/millrace/millrace/shared/event"
)

// Every type of the table is found again under its own family, and every family under its name.
func TestHierarchyIsConsistent(t *testing.T) {
	t.Parallel()
	types := 0
	for _, family := range event.Families() {
		if got := event.FamilyOf(string(family)); got != family {
			t.Errorf("FamilyOf(%s) = %s, want itself", family, got)
		}
		for _, name := range event.TypesOf(family) {
			types++
			if got := event.FamilyOf(name); got != family || !event.BuiltIn(name) {
				t.Errorf("FamilyOf(%s) = %s, BuiltIn = %t, want %s, true", name, got, event.BuiltIn(name), family)
			}
		}
	}
	if want := 32; types != want {
		t.Errorf("%d built-in types, want %d", types, want)
	}
	if event.TypesOf("NoFamily") != nil {
		t.Error("TypesOf(NoFamily) is not empty")
	}
}

func TestRemovesObject(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"PackageRemoved": true, "Removed": true, "PackageRemovedX": false, "removed": false,
		"OrderRemoved": false, "TaskRemoved": false, "FileBasedRemoved": false,
	} {
		if got := event.RemovesObject(name); got != want {
			t.Errorf("RemovesObject(%s) = %t, want %t", name, got, want)
		}
	}
}
