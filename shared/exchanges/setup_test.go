package exchanges_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// process is one process that serves exchanges, over a store that others may use too.
type process struct {
	*exchanges.Exchanges
	queue   *queue.Queue
	members *membership.Membership
}

type declared struct{ set *definition.Set }

func (d declared) Current(context.Context) (*definition.Set, error) { return d.set, nil }

func open(t *testing.T, s store.Store, with ...func(*exchanges.Options)) *process {
	t.Helper()
	return openWith(t, s, &definition.Set{}, with...)
}

func openWith(t *testing.T, s store.Store, set *definition.Set, with ...func(*exchanges.Options)) *process {
	t.Helper()
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	p := &process{members: membership.Open(membership.Options{Store: s})}
	p.queue = queue.Open(queue.Options{Store: s, Journal: j, Definitions: declared{set}, Heard: p.members.Heard})
	o := exchanges.Options{Store: s, Members: p.members, Queue: p.queue}
	for _, set := range with {
		set(&o)
	}
	p.Exchanges = exchanges.Open(o)
	return p
}

// register adds an instance that runs the jobs of the topic a, and returns its id.
func (p *process) register(t *testing.T, capacity int) string {
	t.Helper()
	i, err := p.members.Register(t.Context(), membership.New{Name: "w", Jobs: []string{"/topics/a"}, Capacity: capacity})
	if err != nil {
		t.Fatal(err)
	}
	return i.ID
}

// add adds tasks that have one attempt, and returns their ids.
func (p *process) add(t *testing.T, n int) []task.ID {
	t.Helper()
	var ids []task.ID
	for range n {
		got, err := p.queue.Enqueue(t.Context(), nil, queue.New{Job: "/topics/a", Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, got.Tasks[0].Task.ID)
	}
	return ids
}

// must makes an exchange that has to succeed.
func (p *process) must(t *testing.T, id string, r exchanges.Request) exchanges.Response {
	t.Helper()
	r.Explain = explain
	got, err := p.Exchange(t.Context(), id, r)
	if err != nil {
		t.Fatalf("exchange %d: %v", r.Seq, err)
	}
	return got
}

func explain(err error) (code, text string) { return err.Error(), "" }

func ok(tokens ...string) (all []queue.Completion) {
	for _, token := range tokens {
		all = append(all, queue.Completion{Token: token, Result: queue.Result{Outcome: queue.OK}})
	}
	return all
}

func tokensOf(leases []queue.Lease) (all []string) {
	for i := range leases {
		all = append(all, leases[i].Token)
	}
	return all
}

func line(text string) queue.Beat { return queue.Beat{Lines: []tasklog.Line{{Message: text}}} }

// bubble runs a test over both ways in which a store can be used, in virtual time.
func bubble(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	for name, s := range map[string]func() store.Store{
		"alone":  func() store.Store { return memory.New(memory.Options{}) },
		"shared": func() store.Store { return memory.New(memory.Options{Shared: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, s()) })
		})
	}
}

// shared returns a store that several processes use.
func shared(t *testing.T) store.Store {
	t.Helper()
	return memory.New(memory.Options{Shared: true})
}

// held is a store whose first write that has the record of an exchange in it waits.
type held struct {
	store.Store
	at, on chan struct{} // at is closed when it waits, and on lets it go on
	once   sync.Once
}

func (h *held) Write(ctx context.Context, w store.Write) error {
	if slices.ContainsFunc(w.Ops, func(op store.Op) bool { return strings.HasPrefix(op.Item.Key.Partition, "exchange/") }) {
		h.once.Do(func() {
			close(h.at)
			<-h.on
		})
	}
	return h.Store.Write(ctx, w)
}

// fate is what becomes of one call of a store. The zero value does nothing.
type fate struct {
	err   error         // what it returns
	done  bool          // it is applied all the same
	later time.Duration // after this time; 0: at once
	dies  bool          // so do all calls after it, and nothing of them is applied
}

var errKilled = errors.New("killed")

// doomed is a store whose n-th call has a fate.
type doomed struct {
	store.Store
	fate fate

	mu   sync.Mutex
	left int  // calls before the one with the fate
	dead bool // no call gets through
}

// arm gives the n-th call from here on a fate.
func (d *doomed) arm(f fate, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fate, d.left = f, n
}

// disarm lets all further calls of a process that lives through, and reports whether none has met the fate.
func (d *doomed) disarm() (none bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	none, d.left = d.left >= 0, -1
	return none
}

// next counts a call, and returns what becomes of it.
func (d *doomed) next() fate {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return fate{err: errKilled}
	}
	if d.left--; d.left != -1 {
		return fate{}
	}
	d.dead = d.fate.dies
	return d.fate
}

func (d *doomed) Write(ctx context.Context, w store.Write) error {
	f := d.next()
	switch {
	case f.done && f.later > 0:
		time.AfterFunc(f.later, func() { _ = d.Store.Write(context.WithoutCancel(ctx), w) })
	case f.done || f.err == nil:
		if err := d.Store.Write(ctx, w); err != nil {
			return err
		}
	}
	return f.err
}

// read returns the error of a call that changes nothing that counts.
func (d *doomed) read() error {
	f := d.next()
	if f.err != nil && !f.dies && !errors.Is(f.err, errKilled) {
		return store.ErrBusy // the other errors are of writes
	}
	return f.err
}

func (d *doomed) Get(ctx context.Context, keys ...store.Key) ([]*store.Item, error) {
	if err := d.read(); err != nil {
		return nil, err
	}
	return d.Store.Get(ctx, keys...)
}

func (d *doomed) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if err := d.read(); err != nil {
		return store.Page{}, err
	}
	return d.Store.Query(ctx, r)
}

func (d *doomed) Reserve(ctx context.Context, key store.Key, ids int, now int64) (store.Ticket, error) {
	if err := d.read(); err != nil {
		return store.Ticket{}, err
	}
	return d.Store.Reserve(ctx, key, ids, now)
}

func (d *doomed) Sequence(ctx context.Context, key store.Key, eventual bool) (store.Sequence, error) {
	if err := d.read(); err != nil {
		return store.Sequence{}, err
	}
	return d.Store.Sequence(ctx, key, eventual)
}
