package order

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// Orders that wait for events are found by those who follow the journal, each from a position of its own, at first from a stored
// one. The rules are those of docs/order-waits.md:
//
//   - Who has read events up to a position reads the lists of waits only then. So they hold every order that came to wait below that
//     position, and nobody needs to look at those events again for one that comes later: only later events count for that.
//   - An order that is found goes on only if it still waits as it was found, and came to wait before the event. So any number of
//     followers, and repetitions, do no harm.
//   - The position is stored after the orders have gone on.

// Journal is what an Engine reads of a [journal.Journal].
type Journal interface {
	ReadAfter(ctx context.Context, r journal.Request) (journal.Answer, error)
	ReadNewest(ctx context.Context, r journal.Request) (journal.Answer, error)
	Floor(ctx context.Context) (event.ID, error)
	EventsAt(ctx context.Context, position int64) ([]event.Event, error)
	SnapshotOf(ctx context.Context, fold string, p journal.Part, each func(key string, value []byte)) (event.ID, error)
}

// waiting is what this process knows of waits for events.
type waiting struct {
	shapes  cache[bool]   // keys of those that are stored, and the position's
	skipped cache[bool]   // items that cannot be read
	set     chan struct{} // receives when an order may have come to wait
}

// What a follower reads at once, how many orders it moves at a time, and how often it stores its position while it goes on.
const (
	matchEvents = 1000
	matchBytes  = 1 << 20
	matchMoves  = 16
	matchStore  = time.Second
	matchAgain  = time.Second // after an error
)

var positionKey = work("wait-position", only)

// follower goes through the journal for the orders that wait.
type follower struct {
	e       *Engine
	after   event.ID // up to here nothing is left to do; 0: not known
	newest  event.ID // of the journal, when there was no position yet
	storing time.Time
	known   []shape // those in which orders waited when it looked last
}

// Match lets all orders go on that wait for events which have happened. Any process may call it at any time.
func (e *Engine) Match(ctx context.Context) error {
	_, err := (&follower{e: e}).run(ctx)
	return err
}

// run goes on to the end of the journal, and reports whether any order waits.
func (f *follower) run(ctx context.Context) (anyone bool, err error) {
	if f.e.journal == nil {
		return false, nil
	}
	if ok, err := f.begin(ctx); !ok || err != nil {
		return false, err
	}
	if err := f.look(ctx); err != nil {
		return false, err
	}
	for {
		more, err := f.some(ctx)
		if err != nil {
			return false, err
		}
		if !more {
			return len(f.known) > 0, f.store(ctx, 0)
		}
	}
}

// begin reads the stored position, if it is not known yet. There is none before the first order has ever come to wait: ok is false then.
func (f *follower) begin(ctx context.Context) (ok bool, err error) {
	if f.after > 0 {
		return true, nil
	}
	newest, err := f.e.journal.ReadNewest(ctx, journal.Request{Limit: 1}) // before it looks whether there is one
	if err != nil {
		return false, err
	}
	f.newest = newest.LastEventID
	f.after, _, err = f.load(ctx)
	return f.after > 0, err
}

// load reads the stored position and the condition that it is as it was read.
func (f *follower) load(ctx context.Context) (at event.ID, cond store.Condition, err error) {
	items, err := f.e.get(ctx, positionKey)
	if err != nil || items[0] == nil {
		return 0, store.Absent, err
	}
	return at, store.VersionIs(items[0].Version), decode(items[0], &at)
}

// store stores the position, unless it has done so a short time ago, or another follower is ahead: what is stored may lag behind.
func (f *follower) store(ctx context.Context, pause time.Duration) error {
	if pause > 0 && time.Since(f.storing) < pause {
		return nil
	}
	at, cond, err := f.load(ctx)
	if err != nil || at >= f.after {
		return err
	}
	f.storing = time.Now()
	version, _ := cond.Version()
	put := store.Put(store.Item{Key: positionKey, Version: version + 1, Value: encode(f.after)}, cond)
	err = f.e.store.Write(ctx, store.Write{Token: f.e.token(), Ops: []store.Op{put}})
	if err != nil && store.AsConflict(err) == nil {
		return journal.Failure("store how far waits were looked at", err)
	}
	return nil
}

// look reads in which shapes orders wait.
func (f *follower) look(ctx context.Context) error {
	all, err := f.e.shapes(ctx)
	if err != nil {
		return err
	}
	f.known, err = f.e.occupied(ctx, all)
	return err
}

// some goes on by some events, and reports whether there may be more.
func (f *follower) some(ctx context.Context) (more bool, err error) {
	read, err := f.e.journal.ReadAfter(ctx, journal.Request{After: f.after, Limit: matchEvents, MaxBytes: matchBytes})
	switch {
	case err != nil:
		return false, err
	case read.Torn:
		return true, f.goOnAtFloor(ctx)
	case read.LastEventID == f.after:
		return false, nil
	}
	if err := f.e.arrivals(ctx, read.Events); err != nil {
		return false, err
	}
	if err := f.look(ctx); err != nil {
		return false, err
	}
	for i := range f.known {
		if err := f.e.match(ctx, &f.known[i], read.Events); err != nil {
			return false, err
		}
	}
	f.after = read.LastEventID
	return true, f.store(ctx, matchStore)
}

// goOnAtFloor leaves out the events that retention has evicted.
func (f *follower) goOnAtFloor(ctx context.Context) error {
	floor, err := f.e.journal.Floor(ctx)
	if err != nil {
		return err
	}
	f.e.log.Warn("events were evicted before they were compared with what orders wait for; it goes on behind them",
		"after", f.after, "floor", floor)
	f.after = max(f.after, floor)
	return nil
}

// arrivals waits until the lists hold the orders that came to wait by some events. Race: the items of a write may become visible one
// by one, on a store that others use too, so an event may be read before the list of those who came before it holds them all.
func (e *Engine) arrivals(ctx context.Context, events []event.Event) error {
	if e.store.Exclusive() {
		return nil
	}
	came := map[string]event.ID{}
	for i := range events {
		if isArrival(&events[i]) {
			came[events[i].Key.Path] = events[i].ID
		}
	}
	return atOnce(slices.Collect(maps.Keys(came)), func(path string) error { return e.arrived(ctx, path, came[path]) })
}

// arrived waits until the lists hold an order since an event, if it waits.
func (e *Engine) arrived(ctx context.Context, path string, since event.ID) error {
	for tries := 0; ; tries++ {
		listed, checks, err := e.listed(ctx, path, since)
		if errors.Is(err, errDamaged) {
			e.skip(orderKey(path), err)
			return nil
		}
		if err != nil || listed {
			return err
		}
		err = e.store.Write(ctx, store.Write{Token: e.token(), Ops: checks})
		switch {
		case err == nil:
			return nil // it is as it was read: it does not wait any more
		case store.AsConflict(err) == nil && !errors.Is(err, store.ErrBusy):
			return journal.Failure("see who waits for events", err)
		case tries > 0 || store.AsConflict(err) == nil:
			e.pause(ctx, settle)
		}
	}
}

// listed reports whether all that lists an order which waits since an event, or a later one, can be read: not what it waited for before.
// If not, checks demand that it is as it was read.
func (e *Engine) listed(ctx context.Context, path string, since event.ID) (ok bool, checks []store.Op, err error) {
	o, cond, err := e.read(ctx, path)
	switch {
	case errors.Is(err, ErrNoOrder):
		return false, []store.Op{store.Check(orderKey(path), store.Absent)}, nil
	case err != nil:
		return false, nil, err
	case o.Await == nil:
		return false, []store.Op{store.Check(orderKey(path), cond)}, nil
	}
	keys := []store.Key{o.Await.item(path), shapeKey(o.Await.Shape)}
	items, err := e.get(ctx, keys...)
	if err != nil {
		return false, nil, err
	}
	var who awaited
	if items[0] != nil && items[1] != nil && (decode(items[0], &who) != nil || who.After >= since) {
		return true, nil, nil
	}
	checks = append(checks, store.Check(orderKey(path), cond))
	for i := range items {
		is := store.Absent
		if items[i] != nil {
			is = store.VersionIs(items[i].Version)
		}
		checks = append(checks, store.Check(keys[i], is))
	}
	return false, checks, nil
}

// match lets those orders of a shape go on that wait for one of some events.
func (e *Engine) match(ctx context.Context, s *shape, events []event.Event) error {
	found := map[string][]event.ID{} // by the hash of the values
	for i := range events {
		if !s.selects(&events[i]) {
			continue
		}
		if hash, ok := s.valuesOf(&events[i]); ok {
			found[hash] = append(found[hash], events[i].ID)
		}
	}
	for hash, ids := range found {
		if err := e.matchAll(ctx, waitAt{s.key(), hash}, ids); err != nil {
			return err
		}
	}
	return nil
}

// matchAll lets all orders go on that wait there for one of some events.
func (e *Engine) matchAll(ctx context.Context, at waitAt, ids []event.ID) error {
	r := store.Range{Table: store.Work, Partition: waitsPartition(at.Shape), From: at.Values + "/", To: at.Values + "0"} // "0" follows "/"
	var paths []string
	for item, err := range store.All(ctx, e.store, r) {
		if err != nil {
			return journal.Failure("read who waits for an event", err)
		}
		var who awaited
		if err := decode(item, &who); err != nil {
			e.skip(item.Key, err)
			continue
		}
		if who.After < ids[len(ids)-1] && who.Found == 0 {
			paths = append(paths, who.Path)
		}
	}
	return atOnce(paths, func(path string) error { return e.goesOn(ctx, at, path, ids) })
}

// atOnce does something with each path, several at once, so that they share writes.
func atOnce(paths []string, do func(path string) error) error {
	for some := range slices.Chunk(paths, matchMoves) {
		var all sync.WaitGroup
		errs := make([]error, len(some))
		for i, path := range some {
			all.Go(func() { errs[i] = do(path) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// follow lets orders go on as events happen, until ctx ends.
func (e *Engine) follow(ctx context.Context) {
	f := &follower{e: e}
	for e.journal != nil && ctx.Err() == nil {
		anyone, err := f.run(ctx)
		if err == nil {
			err = f.sleep(ctx, anyone)
		}
		if err != nil && ctx.Err() == nil {
			e.log.Warn("orders that wait for events were not moved; it is tried again", "error", err)
			e.pause(ctx, matchAgain)
		}
	}
}

// sleep waits for something that run has not seen. Where nobody waits, the journal is not followed, since that would wake a goroutine for
// each write: it is enough to look now and then, and when an order of this process may have come to wait.
func (f *follower) sleep(ctx context.Context, anyone bool) error {
	if !anyone {
		if !f.e.pause(ctx, lookShared) {
			return nil
		}
		if !f.e.store.Exclusive() {
			f.e.pause(ctx, settle)
			return nil
		}
		if anyone, err := f.run(ctx); anyone || err != nil { // otherwise the write by which the order comes is still under way
			return err
		}
	}
	after := f.after
	if after == 0 {
		after = f.newest
	}
	r := journal.Request{After: after, Limit: 1, Timeout: lookAlone, Match: f.concerns}
	_, err := f.e.journal.ReadAfter(ctx, r)
	return err
}

// concerns reports whether an event may be waited for, or tells of an order that waits.
func (f *follower) concerns(e *event.Event) bool {
	return isArrival(e) || slices.ContainsFunc(f.known, func(s shape) bool { return s.selects(e) })
}

// settle is how long the write may take by which an order comes to wait.
const settle = 100 * time.Millisecond

// pause waits for some time, or until an order of this process may have come to wait, which it reports.
func (e *Engine) pause(ctx context.Context, d time.Duration) (set bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.waits.set:
		return true
	case <-ctx.Done():
	}
	return false
}

// errUnseen is the error for a position that cannot be read yet though an order waits: the items of a write may become visible one by one.
var errUnseen = errors.New("order: it cannot be seen yet from where events are compared with what orders wait for")

// matchBefore looks at events that happened before the wait of an order timed out, if that is what is due. An order that cannot go on
// yet though its event has happened does not time out.
func (e *Engine) matchBefore(ctx context.Context, path string) error {
	o, _, err := e.read(ctx, path)
	switch {
	case errors.Is(err, ErrNoOrder):
		return nil
	case err != nil || o.Waiting != typed.ForEvent || o.Until == 0 || o.Until > e.micro():
		return err
	}
	f := &follower{e: e}
	if _, err := f.run(ctx); err != nil {
		return err
	}
	if e.journal != nil && f.after == 0 {
		return errUnseen // another item of the write by which the order came: its event would be missed
	}
	_, err = e.retryFound(ctx, path)
	return err
}
