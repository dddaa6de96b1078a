package membership

import (
	"cmp"
	"context"
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
	ID       string    `json:"-"`           // 16 hexadecimal digits, random
	Name     string    `json:"n"`           // its own choice, 1 to [MaxName] characters; several may have the same
	Jobs     []string  `json:"j"`           // 1 to [MaxJobs] patterns of the jobs that it can run, see [definition.Match]
	Capacity int       `json:"c"`           // how many tasks it runs at once, 1 to [MaxCapacity]
	Owner    string    `json:"o,omitempty"` // the client that has registered it
	Term     int64     `json:"t"`           // the number of its registration, from 1; a later one has a higher term
	Expires  time.Time `json:"x"`           // the end of its lease, after which it counts as dead
	Draining bool      `json:"d,omitempty"` // it is to finish what it runs, and gets no more tasks

	// Lease is the length of its lease. It is set by Register and Heartbeat, and not stored.
	Lease time.Duration `json:"-"`

	Replayed bool `json:"-"` // an earlier request with the same idempotency key made it; only ID and Term are that one's

	version int64
}

// Claimer returns the instance's name in tasks and their events: NAME/ID.
func (i *Instance) Claimer() string { return i.Name + "/" + i.ID }

// Claims returns the instance as a claimer of tasks.
func (i *Instance) Claims() queue.Claimer {
	return queue.Claimer{Instance: i.Claimer(), Name: i.Name, Capacity: i.Capacity, Jobs: i.Jobs}
}

// Claimers returns the instances that may claim tasks: those whose lease lasts and that do not drain.
func (t *Membership) Claimers(ctx context.Context) ([]queue.Claimer, error) {
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

// New is a request to register; its fields are those of [Instance].
type New struct {
	Name     string
	Jobs     []string
	Capacity int
	Owner    string

	// Once makes requests with the same key register one instance within [journal.OnceFor]: later ones return ID and Term of
	// the first's instance, whether or not that still exists. Nil: each registers one.
	Once *journal.Idempotency
}

// Change is what a heartbeat may change; nil leaves a field as it is.
type Change struct {
	Jobs     []string
	Capacity *int
}

// Register adds an instance, and makes it the leader if there is none. It stays until its lease ends, which heartbeats extend.
// Names need not be unique, since a process that died may come back before its lease has ended.
func (t *Membership) Register(ctx context.Context, n New) (Instance, error) {
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

// check returns an [ErrInvalid] for a field outside its bounds.
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

// keep is how long after its lease an instance's item expires, or is removed by [Membership.List].
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
	if err := store.Decode(item.Value, &i); err != nil {
		return i, fmt.Errorf("membership: %v cannot be read: %w", item.Key, err)
	}
	return i, nil
}

// Get returns an instance. The error is [ErrNoInstance] if there is none or its lease is over.
func (t *Membership) Get(ctx context.Context, id string) (Instance, error) {
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

// knownOr returns an instance that is known, unless its lease is over, or reads it.
func (t *Membership) knownOr(ctx context.Context, id string, known *Instance) (Instance, error) {
	if known == nil || known.version == 0 || !known.Expires.After(t.now()) {
		return t.Get(ctx, id)
	}
	return *known, nil
}

// validID reports whether a text can be an instance's id: 16 hexadecimal digits in lower case.
func validID(id string) bool {
	return len(id) == 16 && !slices.ContainsFunc([]byte(id), func(c byte) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
}

// Heartbeat extends an instance's lease, changes what c says, and makes it the leader if there is none. The error is
// [ErrNoInstance] if its lease is over.
func (t *Membership) Heartbeat(ctx context.Context, id string, c Change) (Instance, error) {
	return t.heartbeat(ctx, id, nil, c)
}

// heartbeat is Heartbeat of an instance that the caller has just read, which is not read again unless it was changed since; nil: it has not.
func (t *Membership) heartbeat(ctx context.Context, id string, known *Instance, c Change) (Instance, error) {
	i, err := t.change(ctx, id, known, func(i *Instance) error {
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

// Drain asks an instance to finish what it runs and to leave. It gets no more tasks, and learns of it by its next heartbeat.
func (t *Membership) Drain(ctx context.Context, id string) error {
	_, err := t.change(ctx, id, nil, func(i *Instance) error {
		i.Draining = true
		return nil
	})
	return err
}

// change changes an instance, as it is or as the caller knows it. Race: of a heartbeat, a request to drain and another heartbeat that read
// the same version, one is applied and the others read again.
func (t *Membership) change(ctx context.Context, id string, known *Instance, change func(*Instance) error) (Instance, error) {
	for try := 0; ; try++ {
		i, err := t.knownOr(ctx, id, known)
		if err != nil {
			return Instance{}, err
		}
		known = nil // after a conflict it is read
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

// Leave removes an instance. The tasks that it still runs are lost when their leases end.
func (t *Membership) Leave(ctx context.Context, id string) error {
	if _, err := t.Get(ctx, id); err != nil {
		return err
	}
	if err := t.write(ctx, store.Delete(instanceKey(id), store.Always)); err != nil {
		return unavailable("take an instance out", err)
	}
	return t.resign(ctx, id)
}

// List returns the instances whose lease lasts, the oldest registration first, and removes the items of those that died long ago.
func (t *Membership) List(ctx context.Context) ([]Instance, error) {
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
