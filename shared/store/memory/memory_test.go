package memory_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
)

func write(t *testing.T, s *memory.Store, token string, ops ...store.Op) {
	t.Helper()
	if err := s.Write(t.Context(), store.Write{Token: token, Ops: ops}); err != nil {
		t.Fatalf("Write: %v", err)
	}
}

func key(sort string) store.Key { return store.Key{Table: store.Work, Partition: "p", Sort: sort} }

func TestPageEndsAtItsBytes(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	for n := range 8 {
		value := bytes.Repeat([]byte{'x'}, 300<<10)
		write(t, s, "w", store.Put(store.Item{Key: key(fmt.Sprint(n)), Version: 1, Value: value}, store.Absent))
	}
	r := store.Range{Table: store.Work, Partition: "p"}
	var sorts []string
	for more := true; more; {
		page, err := s.Query(t.Context(), r)
		if err != nil || len(page.Items) == 0 || len(page.Items) > 4 {
			t.Fatalf("Query = %d items, %v, want 1 to 4", len(page.Items), err)
		}
		for _, item := range page.Items {
			sorts = append(sorts, item.Key.Sort)
		}
		more = page.More
		r.From = sorts[len(sorts)-1] + "\x00"
	}
	if diff := cmp.Diff([]string{"0", "1", "2", "3", "4", "5", "6", "7"}, sorts); diff != "" {
		t.Errorf("sorts (-want +got):\n%s", diff)
	}
}

func TestItemsAnsweredAreCopies(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	write(t, s, "w", store.Put(store.Item{Key: key("1"), Version: 1}, store.Absent))
	items, err := s.Get(t.Context(), key("1"))
	if err != nil {
		t.Fatal(err)
	}
	items[0].Version = 99
	if items, err = s.Get(t.Context(), key("1")); err != nil || items[0].Version != 1 {
		t.Errorf("Get after the caller changed its copy = %+v, %v, want version 1", items[0], err)
	}
}

func TestDateIsCompared(t *testing.T) {
	t.Parallel()
	date := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	s := memory.New(memory.Options{Date: func() time.Time { return date }})
	for lead, want := range map[time.Duration]error{time.Hour: nil, 61 * time.Minute: store.ErrClock} {
		_, err := s.Reserve(t.Context(), key(lead.String()), 1, date.Add(lead).UnixMicro())
		if !errors.Is(err, want) {
			t.Errorf("Reserve with a clock %v ahead = %v, want %v", lead, err, want)
		}
	}
}

func TestWriteChecksNotAfter(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	w := store.Write{Token: "w", Ops: []store.Op{store.Put(store.Item{Key: key("1"), Version: 1}, store.Absent)}}
	w.NotAfter = time.Now().Add(-time.Second)
	if err := s.Write(t.Context(), w); !errors.Is(err, store.ErrTooLate) {
		t.Errorf("Write = %v, want ErrTooLate", err)
	}
}

func TestCloseForgets(t *testing.T) {
	t.Parallel()
	s := memory.New(memory.Options{})
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), key("1")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Get after Close = %v, want ErrClosed", err)
	}
}
