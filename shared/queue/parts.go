package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/rate"
	"github.com/millrace/millrace/shared/store"
)

// Where processes share a store, one of its partitions bears some 200 entries of a line a second. A line to which more are added grows
// from one part to 4 and to 16, as its signpost says (see package layout), and has one again when it was quiet for a while. Its
// tasks' ids say that their items lie in parts too.
//
// Who adds goes by what the signpost said some minutes ago at most; without that, entries go to the first part, where every claim looks.
// A claim reads the signpost with the head of the first part, and then the other parts in which entries may be, which are more than
// those that get new ones while a line shrinks. A line has its signpost until its other parts have been empty for far longer
// than anybody who adds goes by what it said: as with lines that are forgotten, see package directory.
//
// Ordered queues, round-robin queues and lines that are kept for an instance have one part.
type parts struct {
	q     *Queue
	on    bool          // lines may have several parts
	most  int           // how many a line has at most
	share int           // how many tasks a second that it claims from a line make this process share it out with others, see shares.go
	quiet time.Duration // how long nobody must have needed a line's parts before they are given up

	mu      sync.Mutex
	sharing int64      // until when this process takes part in sharing a line out, microseconds since 1970
	busy    rate.Meter // calls that the store refuses again and again
	lines   map[layout.Line]*lineParts
	groups  map[uint32]bool // whose tasks lie in parts, as the store says
}

// lineParts is what a process knows of a line.
type lineParts struct {
	post    layout.Signpost
	read    int64 // when that was about to be read, in microseconds since 1970; 0: never
	looking bool  // somebody reads it now

	added rate.Meter // entries

	picked  rate.Meter // entries that claims of this process have found
	joining bool       // it is entering itself among those that share the parts out
	again   int64      // when that may be tried again after it has failed, microseconds since 1970
	reserve *reserve
}

// growth is how many entries a second of one process make a line grow to so many parts, at any time and while the store is busy. There
// may be many processes; a partition bears some 200 entries a second of all.
var growth = []struct{ pace, busy, parts int }{{60, 10, 4}, {200, 60, 8}, {200, 60, layout.MostParts}}

// often is how often a second the store refuses calls of this process again when it counts as busy.
const often = 3

// hot is the least rate at which a line may grow.
const hot = 10

// wanted returns in how many parts a line of several should lie: four times as many as now at most by its pace, and one step more while
// the store is busy. p.mu is locked.
func (p *parts) wanted(pace, now int) int {
	busy, wanted := p.busy.PerSecond(p.q.micro()) >= often, now
	for _, g := range growth {
		parts := min(g.parts, p.most)
		if parts > now && parts <= 4*now && (pace >= g.pace || busy && wanted == now && pace >= g.busy) {
			wanted = parts
		}
	}
	return wanted
}

// valid returns how long, in microseconds, a process that adds goes by what a signpost said.
func (p *parts) valid() int64 { return (p.quiet / 6).Microseconds() }

// may reports whether a line of a queue may lie in several parts.
func (p *parts) may(c definition.Queue, l layout.Line) bool {
	return p.on && l.Name == "" && c.Type != definition.Ordered && c.Type != definition.RoundRobin
}

// of returns in how many parts entries of a line may be as far as this process knows, and to how many new ones go.
func (p *parts) of(l layout.Line) (read, write int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.lines[l]
	if k == nil || k.read == 0 {
		return 1, 1
	}
	if now := p.q.micro(); now-k.read >= p.valid() || now < k.read {
		return k.post.Read, 1
	}
	return k.post.Read, k.post.Write
}

// saw notes what a line's signpost said in a read that began at a time.
func (p *parts) saw(l layout.Line, post layout.Signpost, began int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.lines[l]
	if k == nil && post.Read > 1 {
		k = p.line(l)
	}
	if k != nil && began >= k.read {
		k.post, k.read = post, began
	}
}

// line returns what is known of a line; p.mu is locked.
func (p *parts) line(l layout.Line) *lineParts {
	k := p.lines[l]
	if k == nil {
		k = &lineParts{post: layout.Signpost{Write: 1, Read: 1}}
		p.lines[l] = k
	}
	return k
}

// count counts entries that are about to be added to a line, and reports whether its signpost must be read or changed for that.
func (p *parts) count(l layout.Line, n int) (pace int, look bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, now := p.line(l), p.q.micro()
	k.added.Add(now, n)
	pace = k.added.Steady(now)
	if k.looking || pace < hot {
		return pace, false
	}
	known := k.read > 0 && now-k.read < p.valid() && now >= k.read
	look = !known || p.wanted(pace, k.post.Write) > k.post.Write
	k.looking = look
	return pace, look
}

// met notes that the store has refused a call again, as it does when a partition bears no more; another's transaction is over
// soon.
func (p *parts) met() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy.Add(p.q.micro(), 1)
}

// prepare is called before entries are added to a line, outside any write.
func (p *parts) prepare(ctx context.Context, c definition.Queue, l layout.Line, n int) error {
	if !p.may(c, l) {
		return nil
	}
	pace, look := p.count(l, n)
	if !look {
		return nil
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.line(l).looking = false
	}()
	return p.look(ctx, l, pace)
}

// look reads a line's signpost, and changes it if the line needs more parts, or to say that it needs those that it has.
func (p *parts) look(ctx context.Context, l layout.Line, pace int) error {
	began := p.q.micro()
	post, version, err := layout.LoadSignpost(ctx, p.q.store, l)
	if err != nil {
		return err
	}
	next := post
	p.mu.Lock()
	next.Write = p.wanted(pace, post.Write)
	p.mu.Unlock()
	next.Read = max(post.Read, next.Write)
	if next.Write != post.Write || next.Read != post.Read || post.Write > 1 && post.Busy < began-p.valid() {
		next.Busy = began
		if err := p.change(ctx, l, next, version); err != nil {
			if store.AsConflict(err) != nil {
				return nil // somebody else was quicker; it is read again
			}
			return layout.Failure("change in how many parts a line lies", err)
		}
		if next.Write > post.Write {
			p.mu.Lock()
			p.busy = rate.Meter{} // what the parts change shows first
			p.mu.Unlock()
		}
	}
	p.saw(l, next, began)
	return nil
}

// change writes a line's signpost under the condition that it has a version; 0: that there is none.
func (p *parts) change(ctx context.Context, l layout.Line, post layout.Signpost, version int64) error {
	cond := store.Absent
	if version > 0 {
		cond = store.VersionIs(version)
	}
	return p.q.apply(ctx, store.Put(store.Item{Key: layout.SignpostKey(l), Version: p.q.created(), Value: layout.Encode(post)}, cond))
}

// key returns the key of a ready entry that is about to be written.
func (p *parts) key(c definition.Queue, l layout.Line, rank, uuid string) store.Key {
	part := 0
	if p.may(c, l) {
		_, write := p.of(l)
		part = layout.PartOf(uuid, write)
	}
	return layout.Key(layout.ReadyPart(l, part), rank)
}

// spread notes in the store that tasks of a group lie in parts, before the first one does.
func (p *parts) spread(ctx context.Context, group uint32) error {
	p.mu.Lock()
	noted := p.groups[group]
	p.mu.Unlock()
	if noted {
		return nil
	}
	if err := p.q.apply(ctx, layout.SpreadGroup(group)); err != nil {
		return layout.Failure("note a group of tasks", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups[group] = true
	return nil
}

// confirm sees to it that an entry is found whose write took so long that the line may have given up the entry's part meanwhile.
func (p *parts) confirm(ctx context.Context, at *layout.Place) {
	if !p.on {
		return
	}
	l := at.Line()
	part := slices.Index(layout.ReadyParts(l, layout.MostParts), at.At.Partition)
	if part <= 0 {
		return
	}
	p.mu.Lock()
	late := p.q.micro()-p.line(l).read >= 2*p.valid()
	p.mu.Unlock()
	if !late {
		return
	}
	post, version, err := layout.LoadSignpost(ctx, p.q.store, l)
	if err == nil && post.Read <= part {
		post.Read, post.Busy = layout.MostParts, p.q.micro()
		err = p.change(ctx, l, post, version)
	}
	if err != nil {
		p.q.log.Warn("a task that waits may be found late", "line", l.String(), "error", err)
	}
}

// shrink gives up the parts of a line that nobody has needed for long: first no new entries go to them, and long after that, when they
// are empty, they are no longer read. Race: whoever needs the parts meanwhile has changed the signpost's version; an entry that was
// added by a write that took long is seen by the second look.
func (p *parts) shrink(ctx context.Context, l layout.Line) error {
	post, version, err := layout.LoadSignpost(ctx, p.q.store, l)
	if err != nil || version == 0 || p.q.micro() < post.Busy+p.quiet.Microseconds() {
		return err
	}
	date, err := p.q.store.Date(ctx) // so that a clock that runs ahead gives up nothing that others need
	if err != nil || date.UnixMicro() < post.Busy+p.quiet.Microseconds() {
		return layout.Failure("ask for the date", err)
	}
	if post.Write > 1 {
		post.Write, post.Busy = 1, p.q.micro()
		return shrunk(p.change(ctx, l, post, version))
	}
	if empty, err := p.empty(ctx, l, post); err != nil || !empty {
		return err
	}
	if err := p.q.apply(ctx, store.Delete(layout.SignpostKey(l), store.VersionIs(version))); err != nil {
		return shrunk(err)
	}
	if empty, err := p.empty(ctx, l, post); err != nil || !empty {
		post.Busy = p.q.micro()
		return shrunk(p.change(ctx, l, post, 0))
	}
	return nil
}

// shrunk returns an error of a change that gives up parts; that somebody else was quicker is none.
func shrunk(err error) error {
	if store.AsConflict(err) != nil {
		return nil
	}
	return layout.Failure("change in how many parts a line lies", err)
}

// empty reports whether nothing waits in the parts of a line but the first.
func (p *parts) empty(ctx context.Context, l layout.Line, post layout.Signpost) (bool, error) {
	others := layout.ReadyParts(l, post.Read)[1:]
	found, _, err := layout.PlacesIn(ctx, p.q.store, others, store.Range{Table: store.Work, Limit: 1})
	return len(found) == 0, err
}
