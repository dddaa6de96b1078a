package queue

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/lock"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// ahead is an entry that was read ahead, with its task.
type ahead struct {
	layout.Place
	task    *store.Item
	payload json.RawMessage // where it is kept apart
	read    int64           // microseconds since 1970
}

// reserve is what this process has read ahead of its share of a line. The next claim reads no entries nor tasks, and others are read while
// its tasks are written.
//
// Whoever has nothing in its share claims from all parts, by marks. So in a share with little in it, marks are made as well.
//
// Order: the entries read for a claim are the first of the share. After each [MaxClaim] of them the parts of others are read too, and what
// comes first of all is chosen, but for the first MaxClaim of each of these parts: those their process starts by its next claim. So parts whose
// processes are slow are helped along, by one choice of some.
type reserve struct {
	q       *Queue
	looking lock.Mutex // who reads entries, and their tasks unless that is for one claim alone

	mu      sync.Mutex
	behind  bool // it is read behind a claim
	ahead   []ahead
	expired []layout.Place      // that were read ahead, are no longer, and may be marked
	given   map[entryName]int64 // when entries were chosen that may still be in the store; microseconds since 1970
	own     int                 // how many entries were chosen since the parts of others were read
	scarce  bool                // the share had no backlog when it was read last
}

// entryName names an entry: of a task, as it was at a version.
type entryName struct {
	uuid string
	of   int64
}

func nameOf(p *layout.Place) entryName { return entryName{p.UUID, p.Of} }

const (
	// aheadFor is how long, in microseconds, entries are kept that were read ahead.
	aheadFor = 250_000

	// lookFor is how long a claim waits for another one's look at the share, before it claims from all parts.
	lookFor = 50 * time.Millisecond

	// behindFor is how long a look behind a claim may take.
	behindFor = time.Second

	// givenFor is how long, in microseconds, an entry is left out that was read before: a claim that has failed may have left it.
	givenFor = 10_000_000
)

func newReserve(q *Queue) *reserve {
	return &reserve{q: q, looking: lock.New(), own: MaxClaim, given: map[entryName]int64{}}
}

// fromShare returns up to n entries of the process's share of the line; none if nothing waits there.
func (v *sharedView) fromShare(ctx context.Context, n int) ([]layout.Place, error) {
	l, may := v.mayShare()
	if !may {
		return nil, nil
	}
	v.q.parts.takePart(ctx, v.c.queue.Name, l)
	r, most := v.q.parts.reserveOf(l)
	mine, others := v.q.parts.shareOf(l)
	if len(mine) == 0 {
		r.empty()
		r.unmark(ctx)
		return nil, nil
	}
	taken := r.take(n, v.passes)
	r.unmark(ctx)
	if len(taken) == 0 {
		var err error
		if taken, err = r.fill(ctx, n, most, mine, others, v.passes); err != nil || len(taken) == 0 {
			return nil, err
		}
	}
	rules := v.c.rules
	r.fillBehind(context.WithoutCancel(ctx), most, mine, others, func(p layout.Place) bool { return rules.Holds(p.Job) })
	places := make([]layout.Place, len(taken))
	v.c.ahead = make(map[string]*ahead, len(taken))
	for i := range taken {
		places[i], v.c.ahead[taken[i].UUID] = taken[i].Place, &taken[i]
	}
	return places, nil
}

// mayShare returns the line whose parts the claim's process may share out with others.
func (v *sharedView) mayShare() (l layout.Line, may bool) {
	if len(v.c.lines) != 1 || !v.q.parts.may(v.c.queue, v.c.lines[0]) {
		return l, false
	}
	l = v.c.lines[0]
	read, _ := v.q.parts.of(l)
	return l, read > 1
}

// take takes up to n entries, the first in order. Those that were read long ago or cannot be started are read again.
func (r *reserve) take(n int, passes func(layout.Place) bool) (taken []ahead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.q.micro()
	r.ahead = slices.DeleteFunc(r.ahead, func(a ahead) bool {
		switch {
		case now-a.read >= aheadFor || passes(a.Place):
			r.drop(a.Place)
		case len(taken) < n:
			taken = append(taken, a)
		default:
			return false
		}
		return true
	})
	return taken
}

// fillBehind reads up to most entries that are not held while the caller goes on, unless that is under way, or little waits in the share.
func (r *reserve) fillBehind(ctx context.Context, most int, mine, others []string, held func(layout.Place) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.behind || r.scarce || len(r.ahead) >= most {
		return
	}
	r.behind = true
	r.q.behind.do(func() {
		ctx, done := context.WithTimeout(ctx, behindFor)
		defer done()
		_, _ = r.fill(ctx, 0, most, mine, others, held) // the next claim that finds nothing reads again
		r.mu.Lock()
		defer r.mu.Unlock()
		r.behind = false
	})
}

// fill returns up to n entries for a claim, and reads others ahead, until there are up to most. It returns none if another look takes long.
func (r *reserve) fill(ctx context.Context, n, most int, mine, others []string, passes func(layout.Place) bool) ([]ahead, error) {
	if !r.looking.LockWithin(lookFor) {
		return nil, nil
	}
	free := sync.OnceFunc(r.looking.Unlock)
	defer free()
	if n > 0 {
		if taken := r.take(n, passes); len(taken) > 0 {
			return taken, nil
		}
	}
	chosen, scarce, err := r.look(ctx, n, most, mine, others, passes)
	if err != nil || len(chosen) == 0 {
		return nil, err
	}
	if scarce {
		mine = nil
		free() // all of them are for this claim
	}
	var read []ahead
	if chosen, err = r.markBut(ctx, mine, chosen); err == nil {
		read, err = r.readTasks(ctx, chosen)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		for _, p := range chosen {
			r.drop(p)
		}
		return nil, err
	}
	n = min(n, len(read))
	r.keep(read[n:])
	return read[:n:n], nil
}

// keep keeps what was read ahead. It may have taken so long that some of it was read again meanwhile, or has waited for a new attempt since.
// The caller holds r.mu.
func (r *reserve) keep(read []ahead) {
	for _, a := range read {
		at := slices.IndexFunc(r.ahead, func(b ahead) bool { return b.UUID == a.UUID })
		switch {
		case at < 0:
			r.ahead = append(r.ahead, a)
		case nameOf(&r.ahead[at].Place) != nameOf(&a.Place):
			r.drop(a.Place)
		}
	}
	slices.SortStableFunc(r.ahead, func(a, b ahead) int { return layout.ByRank(a.Place, b.Place) })
}

// look reads entries, and chooses n for a claim and up to most to be read ahead; see [reserve.choose].
func (r *reserve) look(ctx context.Context, n, most int, mine, others []string, passes func(layout.Place) bool) (chosen []layout.Place, scarce bool, err error) {
	limit, room, around := r.begin(n, most)
	if room <= 0 {
		return nil, false, nil
	}
	if !around {
		others = nil
	}
	began := r.q.micro()
	found, err := r.read(ctx, mine, others, limit)
	if err != nil {
		return nil, false, err
	}
	chosen, scarce = r.choose(began, found, len(mine), n, room, passes)
	return chosen, scarce, nil
}

// begin returns how many entries of each part are to be read, for how many there is room, and whether those of others are read too.
func (r *reserve) begin(n, most int) (limit, room int, around bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return 2*MaxClaim + len(r.given), n + max(0, most-len(r.ahead)), r.own >= MaxClaim
}

// read reads the first entries of each of some parts. Those of others that cannot be read are left out.
func (r *reserve) read(ctx context.Context, mine, others []string, limit int) ([][]layout.Place, error) {
	parts := slices.Concat(mine, others)
	found, errs := make([][]layout.Place, len(parts)), make([]error, len(parts))
	var group sync.WaitGroup
	for i, part := range parts {
		group.Go(func() {
			found[i], _, errs[i] = layout.Places(ctx, r.q.store, store.Range{Table: store.Work, Partition: part, Limit: limit})
		})
	}
	group.Wait()
	for i, err := range errs {
		if err == nil {
			continue
		}
		if found[i] = nil; i < len(mine) {
			return nil, err
		}
	}
	return found, nil
}

// choose chooses entries from the first parts, which are the share, and from those of others, and forgets which were given that are no longer
// there. It chooses none if the share has none. Scarce says that it has no backlog: then it chooses n at most, since others leave alone what
// is marked.
func (r *reserve) choose(began int64, found [][]layout.Place, share, n, room int, passes func(layout.Place) bool) (chosen []layout.Place, scarce bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetGone(began, found)
	var all []layout.Place
	waiting := len(r.ahead)
	for i, part := range found {
		free := slices.DeleteFunc(untaken(part, began), func(p layout.Place) bool { return r.given[nameOf(&p)] > 0 || passes(p) })
		if i < share {
			if len(part) >= 2*MaxClaim && !slices.ContainsFunc(part, func(p layout.Place) bool { return !passes(p) }) {
				return nil, false // what comes behind is not seen: a claim from all parts reads past these, and tidies them
			}
			waiting += len(free)
		} else {
			free = free[min(MaxClaim, len(free)):]
		}
		all = append(all, free...)
	}
	scarce = waiting < backlog
	if r.scarce = scarce; scarce {
		room = n
	}
	if waiting == 0 || room == 0 {
		return nil, scarce
	}
	slices.SortStableFunc(all, layout.ByRank)
	chosen = head(all, room)
	if len(found) > share {
		r.own = 0 // those of others were seen
	}
	r.own += len(chosen)
	for i := range chosen {
		r.given[nameOf(&chosen[i])] = r.q.micro()
	}
	return chosen, scarce
}

// forgetGone forgets what was given and is no longer there. The caller holds r.mu.
func (r *reserve) forgetGone(began int64, found [][]layout.Place) {
	there := map[entryName]bool{}
	for _, part := range found {
		for i := range part {
			there[nameOf(&part[i])] = true
		}
	}
	for i := range r.ahead {
		there[nameOf(&r.ahead[i].Place)] = true
	}
	for name, at := range r.given {
		if !there[name] && (at < began || at >= began+aheadFor) || isLongAgo(at, began) { // the clock may have been set back
			delete(r.given, name)
		}
	}
}

// markBut marks the chosen entries that lie in other parts than some, and returns the entries without those that are lost, or, as long as there
// are others, could not be marked. If err is not nil, they are those that were chosen.
func (r *reserve) markBut(ctx context.Context, mine []string, chosen []layout.Place) ([]layout.Place, error) {
	isTheirs := func(p layout.Place) bool { return !slices.Contains(mine, p.At.Partition) }
	own := slices.DeleteFunc(slices.Clone(chosen), isTheirs)
	if len(own) == len(chosen) {
		return chosen, nil
	}
	theirs := slices.DeleteFunc(slices.Clone(chosen), func(p layout.Place) bool { return !isTheirs(p) })
	lost, err := r.q.markTaken(ctx, theirs)
	if err != nil && len(own) == 0 {
		return theirs, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range theirs {
		if err != nil || slices.ContainsFunc(lost, func(l lostMark) bool { return l.first.At.Partition == p.At.Partition }) {
			r.drop(p)
		} else {
			own = append(own, p)
		}
	}
	slices.SortStableFunc(own, layout.ByRank)
	return own, nil
}

// readTasks reads the tasks of entries, and those of their payloads that are items of their own.
func (r *reserve) readTasks(ctx context.Context, places []layout.Place) ([]ahead, error) {
	if len(places) == 0 {
		return nil, nil
	}
	keys := make([]store.Key, len(places))
	for i := range places {
		keys[i] = layout.TaskKey(places[i].UUID)
	}
	items, err := r.q.store.Get(ctx, keys...)
	if err != nil {
		return nil, layout.Failure("read tasks", err)
	}
	all := make([]ahead, len(places))
	var apart []int
	keys = keys[:0]
	for i, item := range items {
		all[i] = ahead{Place: places[i], task: item, read: r.q.micro()}
		var t task.Task
		if item != nil && layout.Decode(item, &t) == nil && t.Apart > 0 { // a claim says what is damaged
			apart, keys = append(apart, i), append(keys, layout.PayloadKey(places[i].UUID))
		}
	}
	if len(keys) == 0 {
		return all, nil
	}
	payloads, err := r.q.store.Get(ctx, keys...)
	if err != nil {
		return nil, layout.Failure("read payloads", err)
	}
	for i, item := range payloads {
		if item != nil {
			all[apart[i]].payload = item.Value
		}
	}
	return all, nil
}

// giveBack lets entries be read again that were not started.
func (r *reserve) giveBack(places []layout.Place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range places {
		delete(r.given, nameOf(&places[i]))
	}
}

// empty lets all that was read ahead be read again.
func (r *reserve) empty() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.ahead {
		r.drop(a.Place)
	}
	r.ahead = nil
}

// drop lets an entry be read again. The caller holds r.mu.
func (r *reserve) drop(p layout.Place) {
	delete(r.given, nameOf(&p))
	if p.Taken != nil {
		r.expired = append(r.expired, p)
	}
}

// unmark lets others claim what this process has marked and dropped.
func (r *reserve) unmark(ctx context.Context) {
	r.mu.Lock()
	expired := r.expired
	r.expired = nil
	r.mu.Unlock()
	r.q.unmark(ctx, expired)
}

// isGiven reports whether an entry was read ahead and may still be started.
func (r *reserve) isGiven(p layout.Place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, is := r.given[nameOf(&p)]
	return is && !isLongAgo(at, r.q.micro())
}

// isLongAgo reports whether what was given at a time need no longer be left out; the clock may have been set back since.
func isLongAgo(at, now int64) bool { return now-at >= givenFor || at-now >= givenFor }
