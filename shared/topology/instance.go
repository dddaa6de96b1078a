package topology

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store"
)

// Instance is a process that claims tasks of certain jobs.
type Instance struct {
	ID       string    `json:"-"`
	Name     string    `json:"n"`           // its own choice; several may have the same
	Jobs     []string  `json:"j"`           // patterns of the jobs that it can run, see [definition.Match]
	Capacity int       `json:"c"`           // how many tasks it runs at once
	Owner    string    `json:"o,omitempty"` // the client that has registered it
	Term     int64     `json:"t"`           // which registration of all this is: a later one has a higher term
	Expires  time.Time `json:"x"`           // when it is taken for dead if it is not heard of until then
	Draining bool      `json:"d,omitempty"` // it is to finish what it runs, and is given nothing more

	// Lease is how long it is there without being heard of; it is told to whoever registers or sends a heartbeat, and not kept.
	Lease time.Duration `json:"-"`

	Replayed bool `json:"-"` // an earlier request of the same idempotency was answered this

	version int64
}

// Claimer is what an instance is called in tasks and their events: its name, and its id.
func (i *Instance) Claimer() string { return i.Name + "/" + i.ID }

// Claims answers how the instance asks for tasks.
func (i *Instance) Claims() queue.Claimer {
	return queue.Claimer{Instance: i.Claimer(), Name: i.Name, Capacity: i.Capacity, Jobs: i.Jobs}
}

// Claimers answers how those instances ask for tasks that may be given some: that are there and do not drain.
func (t *Topology) Claimers(ctx context.Context) ([]queue.Claimer, error) {
	all, err := t.List(ctx)
	if err != nil {
		return nil, err
	}
	var claimers []queue.Claimer
	for n := range all {
		if i := &all[n]; !i.Draining {
			claimers = append(claimers, i.Claims())
		}
	}
	return claimers, nil
}

// New is a request to register.
type New struct {
	Name     string
	Jobs     []string
	Capacity int
	Owner    string

	// Once makes it happen once for all requests with the same one: later ones are answered ID and Term of the first's
	// instance, be it there still or not. Nil: each counts.
	Once *journal.Idempotency
}

// Change is what a heartbeat may change; nil leaves a field as it is.
type Change struct {
	Jobs     []string
	Capacity *int
}

// Register takes an instance in, and lets it lead if nobody does. It is there until its lease ends, which heartbeats extend.
// Names need not be unique, since a process that died may come back before its lease has ended.
func (t *Topology) Register(ctx context.Context, n New) (Instance, error) {
	i := Instance{ID: t.newID(), Name: n.Name, Jobs: n.Jobs, Capacity: n.Capacity, Owner: n.Owner, Lease: t.lease}
	if err := i.check(); err != nil {
		return Instance{}, err
	}
	now, _ := t.time(ctx)
	ticket, err := t.store.Reserve(ctx, termKey, 1, now.UnixMicro())
	if err != nil {
		return Instance{}, unavailable("number an instance", err)
	}
	i.Term, i.Expires, i.version = ticket.Position, now.Add(t.lease), 1
	if err := t.admit(ctx, &i, n.Once); err != nil {
		return Instance{}, err
	}
	if !i.Replayed {
		_, err = t.Lead(ctx, i.ID)
	}
	return i, err
}

// check answers an [ErrInvalid] for what an instance cannot be.
func (i *Instance) check() error {
	switch n := utf8.RuneCountInString(i.Name); {
	case n < 1 || n > MaxName:
		return fmt.Errorf("%w: name: want 1 to %d characters", ErrInvalid, MaxName)
	case len(i.Jobs) < 1 || len(i.Jobs) > MaxJobs:
		return fmt.Errorf("%w: jobs: want 1 to %d patterns", ErrInvalid, MaxJobs)
	case i.Capacity < 1 || i.Capacity > MaxCapacity:
		return fmt.Errorf("%w: capacity: want 1 to %d", ErrInvalid, MaxCapacity)
	}
	for n, pattern := range i.Jobs {
		if len(pattern) > MaxPattern {
			return fmt.Errorf("%w: jobs[%d]: more than %d bytes", ErrInvalid, n, MaxPattern)
		}
		if err := definition.ValidPattern(pattern); err != nil {
			return fmt.Errorf("%w: jobs[%d]: %w", ErrInvalid, n, err)
		}
	}
	return nil
}

// keep is how much longer than its lease an item stays for the backend to remove.
const keep = time.Hour

func (i *Instance) put(cond store.Condition) store.Op {
	value, err := store.Encode(i)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	return store.Put(store.Item{Key: instanceKey(i.ID), Version: i.version, Value: value, Expires: i.Expires.Add(keep)}, cond)
}

func read(item *store.Item) (Instance, error) {
	i := Instance{ID: item.Key.Sort, version: item.Version}
	if err := json.Unmarshal(item.Value, &i); err != nil {
		return i, fmt.Errorf("topology: %v cannot be read: %w", item.Key, err)
	}
	return i, nil
}

// Get answers an instance that is there. The error is [ErrNoInstance] if it is not.
func (t *Topology) Get(ctx context.Context, id string) (Instance, error) {
	if !validID(id) {
		return Instance{}, ErrNoInstance
	}
	items, err := t.store.Get(ctx, instanceKey(id))
	if err != nil {
		return Instance{}, unavailable("read an instance", err)
	}
	if items[0] == nil {
		return Instance{}, ErrNoInstance
	}
	i, err := read(items[0])
	if now, _ := t.time(ctx); err == nil && !i.Expires.After(now) {
		return Instance{}, ErrNoInstance
	}
	return i, err
}

// validID reports whether a text can be an instance's id: no other need be looked up.
func validID(id string) bool {
	return len(id) == 16 && !slices.ContainsFunc([]byte(id), func(c byte) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
}

// Heartbeat says that an instance is alive, and perhaps what it can do now.
func (t *Topology) Heartbeat(ctx context.Context, id string, c Change) (Instance, error) {
	i, err := t.change(ctx, id, func(i *Instance) error {
		if c.Jobs != nil {
			i.Jobs = c.Jobs
		}
		if c.Capacity != nil {
			i.Capacity = *c.Capacity
		}
		now, _ := t.time(ctx)
		i.Expires, i.Lease = now.Add(t.lease), t.lease
		return i.check()
	})
	if err != nil {
		return i, err
	}
	if t.told.note(id, i.Expires); i.Draining {
		return i, nil
	}
	_, err = t.Lead(ctx, id)
	return i, err
}

// Drain asks an instance to finish what it runs and to leave. It is given no more tasks, and hears of it by its next
// heartbeat.
func (t *Topology) Drain(ctx context.Context, id string) error {
	_, err := t.change(ctx, id, func(i *Instance) error {
		i.Draining = true
		return nil
	})
	return err
}

// change changes an instance. Race: a heartbeat, a request to drain and another heartbeat rest on the same version; one of
// them lands, the others read again.
func (t *Topology) change(ctx context.Context, id string, change func(*Instance) error) (Instance, error) {
	for try := 0; ; try++ {
		i, err := t.Get(ctx, id)
		if err != nil {
			return Instance{}, err
		}
		before := i.version
		if err := change(&i); err != nil {
			return Instance{}, err
		}
		i.version++
		err = t.write(ctx, i.put(store.VersionIs(before)))
		if store.AsConflict(err) == nil || try == tries || !wait(ctx) {
			return i, unavailable("change an instance", err)
		}
	}
}

// Leave takes an instance out. What it runs still is lost when those leases end.
func (t *Topology) Leave(ctx context.Context, id string) error {
	if _, err := t.Get(ctx, id); err != nil {
		return err
	}
	if err := t.write(ctx, store.Delete(instanceKey(id), store.Always)); err != nil {
		return unavailable("take an instance out", err)
	}
	return t.resign(ctx, id)
}

// List answers the instances that are there, the oldest first, and removes what is left of those that died long ago.
func (t *Topology) List(ctx context.Context) ([]Instance, error) {
	now, off := t.time(ctx)
	var all []Instance
	for item, err := range store.All(ctx, t.store, store.Range{Table: store.Work, Partition: partitionInstances}) {
		if err != nil {
			return nil, unavailable("read instances", err)
		}
		i, err := read(item)
		if err != nil {
			return nil, err
		}
		if i.Expires.After(now) {
			all = append(all, i)
		} else if off == nil && i.Expires.Add(keep).Before(now) {
			_ = t.write(ctx, store.Delete(item.Key, store.VersionIs(i.version))) // the next list tries again
		}
	}
	slices.SortFunc(all, func(a, b Instance) int { return cmp.Compare(a.Term, b.Term) })
	return all, nil
}
