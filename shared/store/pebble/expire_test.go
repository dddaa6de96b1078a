package pebble_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/shared/store"
)

// TestExpiredItemsAreRemoved: expired items go with the next pass, which takes more than one chunk; items whose expiry was
// moved meanwhile stay, and so do those that never expire.
func TestExpiredItemsAreRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openOn(t, vfs.NewMem())
		write := func(name string, version int64, expires time.Time) {
			t.Helper()
			item := store.Item{Key: passing(name), Version: version, Value: []byte("v"), Expires: expires}
			token := name + expires.String()
			mustWrite(t, s, store.Write{Token: token, Ops: []store.Op{store.Put(item, store.Always)}})
		}
		soon := time.Now().Add(time.Hour)
		for n := range int64(12) { // more than a chunk's bytes, before the others
			mustWrite(t, s, put(slot(n), strings.Repeat("v", store.MaxValue)))
		}
		write("gone", 1, soon)
		write("prolonged", 1, soon)
		write("kept", 1, time.Time{})
		<-time.After(50 * time.Minute)
		if find(t, s, passing("gone")) == nil {
			t.Error("removed before its time")
		}
		write("prolonged", 1, soon.Add(5*time.Hour)) // the same version
		<-time.After(130 * time.Minute)
		for name, want := range map[string]bool{"gone": false, "prolonged": true, "kept": true} {
			if got := find(t, s, passing(name)) != nil; got != want {
				t.Errorf("%s is there: %v, want %v", name, got, want)
			}
		}
		page, err := s.Query(t.Context(), store.Range{Table: store.Work, Partition: passing("").Partition})
		if err != nil || len(page.Items) != 2 {
			t.Errorf("Query = %d items, %v, want 2", len(page.Items), err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func passing(name string) store.Key {
	return store.Key{Table: store.Work, Partition: "passing", Sort: "0" + name}
}
