package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/pebble"
	"github.com/millrace/millrace/shared/task"
)

func TestDumpShowsWhatIsStored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id := task.NewID("", "/topics/a", 1e15, 7)
	lease := layout.TokenOf(id.UUID(), 1, [12]byte{})
	due := layout.DueKey(1e15, "u")
	err = s.Write(t.Context(), store.Write{Token: "w", Ops: []store.Op{
		store.Put(store.Item{Key: layout.TaskKey(id.UUID()), Version: 3, Value: layout.Encode(&task.Task{ID: id, Job: "/topics/a", Lease: lease, Apart: 4})}, store.Absent),
		store.Put(store.Item{Key: layout.LeaseKey(lease), Version: 1, Value: layout.Encode(&layout.Lease{UUID: id.UUID(), Instance: "Anna"})}, store.Absent),
		store.Put(store.Item{Key: layout.PayloadKey(id.UUID()), Version: 3, Value: []byte(`"<b>"`)}, store.Absent),
		store.Put(store.Item{Key: due, Version: 2, Value: layout.Encode(&layout.Entry{UUID: "u", Of: 2})}, store.Absent),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		what   string
		status int
		finds  []string
	}{
		{string(id), 0, []string{`"version":3`, `"job":"/topics/a"`, `"by":"Anna"`, `"value":"<b>"`}},
		{due.Partition, 0, []string{`"sort":"` + due.Sort + `"`, `"value":{"id":"u","v":2,`}},
		{"nothing", 0, nil},
		{string(task.NewID("", "/topics/a", 1e15, 8)), 3, nil},
	}
	for _, c := range cases { // one after the other, since a directory has one user
		var out, stderr bytes.Buffer
		status := run(t.Context(), []string{"dump", "--data", dir, c.what}, console{strings.NewReader(""), &out, &stderr})
		if status != c.status || (len(c.finds) == 0) != (out.Len() == 0) {
			t.Errorf("dump %s: status %d, want %d; it prints\n%s%s", c.what, status, c.status, &out, &stderr)
		}
		for _, want := range c.finds {
			if !strings.Contains(out.String(), want) {
				t.Errorf("dump %s lacks %s:\n%s", c.what, want, &out)
			}
		}
	}
}
