package storetest

import (
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
)

// Capabilities say what a backend does beyond the contract, or how it differs within it. What is declared is asserted.
type Capabilities struct {
	Exclusive bool // what Exclusive returns
	Advances  bool // what Advances returns

	// Costly makes the suite use fewer random histories and fewer concurrent callers, since every call takes long.
	Costly bool

	// Apart says that the items of a Write may become visible one after the other while it is under way, as those of
	// DynamoDB's transactions do; all of them are when it returns.
	Apart bool
}

// Run runs the suite on stores that open returns and closes when the test ends. They may share their data.
func Run(t *testing.T, open func(t *testing.T) store.Store, able Capabilities) {
	checked := func(t *testing.T) *store.Checked { return store.NewChecked(open(t)) }
	s := &suite{store: checked(t), open: checked, able: able, run: rand.Text()[:10]}
	groups := map[string]func(*testing.T){
		"Get": s.get, "Query": s.query, "Write": s.write, "Conflict": s.conflict, "Token": s.token, "Limits": s.limits,
		"Remove": s.remove, "Sequencer": s.sequencer, "Concurrency": s.concurrency, "Advance": s.advance, "Isolation": s.isolation, "History": s.history, "Life": s.life,
	}
	for name, group := range groups {
		t.Run(name, group)
	}
}

type suite struct {
	store *store.Checked
	open  func(t *testing.T) *store.Checked
	able  Capabilities
	run   string
	next  atomic.Int64
}

// partition returns a partition that no other case has.
func (s *suite) partition() string { return fmt.Sprintf("%s-%d", s.run, s.next.Add(1)) }

// fresh returns a key that no other case has.
func (s *suite) fresh() store.Key { return key(s.partition(), "a") }

func key(partition, sort string) store.Key {
	return store.Key{Table: store.Work, Partition: partition, Sort: sort}
}

func item(k store.Key, version int64, value string) store.Item {
	return store.Item{Key: k, Version: version, Value: []byte(value)}
}

// write returns a Write with a token of its own.
func write(ops ...store.Op) store.Write { return store.Write{Token: rand.Text(), Ops: ops} }

func (s *suite) must(t *testing.T, w store.Write) {
	t.Helper()
	if err := s.store.Write(t.Context(), w); err != nil {
		t.Fatalf("Write = %v, want success", err)
	}
}

func (s *suite) put(t *testing.T, items ...store.Item) {
	t.Helper()
	for _, i := range items {
		s.must(t, write(store.Put(i, store.Always)))
	}
}

// holds demands the value stored under a key, "" for no item, and returns the item.
func (s *suite) holds(t *testing.T, k store.Key, want string) *store.Item {
	t.Helper()
	found, err := s.store.Get(t.Context(), k)
	if err != nil || len(found) != 1 {
		t.Fatalf("Get = %v, %v, want one element", found, err)
	}
	if found[0] == nil {
		if want != "" {
			t.Errorf("item %v is missing, want %q", k, want)
		}
		return nil
	}
	if got := string(found[0].Value); got != want {
		t.Errorf("item %v holds %q, want %q", k, got, want)
	}
	return found[0]
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// cases runs each in parallel.
func cases(t *testing.T, all map[string]func(*testing.T)) {
	t.Helper()
	t.Parallel()
	for name, run := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t)
		})
	}
}

// micros returns this machine's time in microseconds since 1970.
func micros() int64 { return time.Now().UnixMicro() }
