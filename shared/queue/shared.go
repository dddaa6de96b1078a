package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/notifier"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// shared is the strategy of a process that shares the store with others. It reads what it decides by, and keeps only when it met
// others. The conditions of each write decide between claimers; marks keep most of them from choosing the same entries.
type shared struct {
	q *Queue

	promotions atomic.Int64 // how many were begun
	moves      atomic.Int64 // how often one has made something ready, or may have
	next       time.Time    // when the next entry falls due, as the last one has found
	failed     error        // of the last one

	known   atomic.Pointer[dueThen] // what the last one that succeeded has found; nil: none has
	renewal renewal                 // of that

	chosen   chosen // by claims of this process
	pickings *groupcommit.Keyed[string, *picking]

	mu    sync.Mutex
	after []store.Key      // tasks that come after those that a claim has picked
	met   map[string]int64 // when claimers of other processes were met last, in microseconds since 1970, by queue
}

// promote is made once for all who wait for one: one that began after it was asked for has seen what was due then.
func (s *shared) promote(ctx context.Context) (next time.Time, err error) {
	if err := s.q.mayDecide(ctx); err != nil {
		return time.Time{}, err
	}
	if known := s.dueLately(); known != nil {
		if known.isOld(s.q.micro()) {
			s.q.renewBehind(&s.renewal, s.promoteAgain)
		}
		return known.next, nil
	}
	asked := s.promotions.Load()
	s.q.promoting.Lock()
	defer s.q.promoting.Unlock()
	if s.promotions.Load() > asked && s.failed == nil {
		return s.next, nil
	}
	if known := s.dueLately(); known != nil {
		return known.next, nil
	}
	return s.promoteNow(ctx)
}

// promoteAgain promotes even if that was done just now.
func (s *shared) promoteAgain(ctx context.Context) {
	s.q.promoting.Lock()
	defer s.q.promoting.Unlock()
	_, _ = s.promoteNow(ctx) // the next claim tries it again
}

// promoteNow promotes. The caller holds q.promoting.
func (s *shared) promoteNow(ctx context.Context) (next time.Time, err error) {
	s.promotions.Add(1)
	defer func() { s.next, s.failed = next, err }()
	for {
		began := s.q.micro()
		last, first, err := s.q.promoteFrom(ctx, "")
		if last != "" || err != nil {
			s.moves.Add(1)
		}
		if err != nil {
			return time.Time{}, err
		}
		if last == "" {
			s.known.Store(&dueThen{began, timeOf(first)})
			return timeOf(first), nil
		}
	}
}

// dueLately returns what was found to be due just now, if that does for a claim; otherwise nil.
func (s *shared) dueLately() *dueThen {
	if known := s.known.Load(); known.holds(s.q.micro()) && s.q.parts.takesPart() {
		return known
	}
	return nil
}

// removesLater returns true where a transaction has a price for each of its operations. Claims that meet often would mark and read what is
// about to be removed.
func (s *shared) removesLater(queue string) bool {
	return !s.q.onePart && !s.q.crowds.contended(queue, s.q.micro())
}

// removeFor is how long the removal of entries may take, of those that are marked and of the others. What is left of them is stale.
const removeFor = time.Second

// remove removes entries one by one, those that are marked last: their marks keep others off until then. The condition tells an entry
// from a later one of the same task. Nothing is repeated where the store is busy: the claim has done what it was asked for.
func (s *shared) remove(ctx context.Context, started []layout.Place) {
	removal := func() {
		for _, marked := range []bool{false, true} {
			ctx, done := context.WithTimeout(context.WithoutCancel(ctx), removeFor)
			var group sync.WaitGroup
			for i := range started {
				if p := &started[i]; (p.Taken != nil) == marked {
					ops := []store.Op{store.Delete(p.At, store.VersionIs(p.Version))}
					group.Go(func() { _ = s.q.store.Store.Write(ctx, store.Write{Token: s.q.token(), Ops: ops}) })
				}
			}
			group.Wait()
			done()
		}
	}
	if s.q.lasting {
		s.q.behind.do(removal)
	} else {
		removal()
	}
}

// idCondition guards against another process that makes the same id, within one microsecond and with the same random bits.
func (s *shared) idCondition() store.Condition { return store.Absent }

func (s *shared) lookOut() (stop context.CancelFunc) {
	ctx, stop := context.WithCancel(context.Background())
	s.q.lookOuts.Go(func() { s.q.lookOut(ctx) })
	return stop
}

// noticeAhead is how far ahead a process that shares the store notifies of a due entry that it stores: for entries due later, the
// next tick of the cron function notifies.
const noticeAhead = 2 * time.Minute

func (s *shared) stored(p *layout.Place) (notice notifier.Notice, needed bool) {
	if p.At.Partition != layout.PartitionDue {
		return p.Line().Notice(), true
	}
	at := layout.DueTime(p)
	if at > s.q.micro()+noticeAhead.Microseconds() {
		return notice, false
	}
	notice = p.Line().Notice()
	notice.At = time.UnixMicro(at)
	return notice, true
}

// precedes returns true: what other processes have made ready, only a read shows.
func (s *shared) precedes(context.Context, []layout.Line, string) bool { return true }

// precedes reads the lines, the first time: whatever is ready there comes before.
func (v *sharedView) precedes(ctx context.Context, _ string) bool {
	if !v.looked {
		v.looked = true
		found, err := v.pick(ctx, 1)
		v.empty = err == nil && len(found) == 0
		v.putBack(ctx, found, false)
	}
	return v.empty
}

// delayed does nothing: whoever waits looks each second, and the end of the attempt before has notified servers.
func (s *shared) delayed(layout.Line, int64) {}

func (s *shared) doubt() {}

// sharedView is the view of a claim by [shared].
type sharedView struct {
	*shared
	c      *claim
	looked bool  // by precedes
	empty  bool  // it has found nothing
	order  int64 // version of the item that counts the starts of an ordered queue

	parts  []string            // the partitions of the claim's lines, as far as they are known
	ahead  map[string]readPage // by partition: pages that were read ahead
	from   map[string]string   // by partition: where to read on; one that is not there has been read to its end; nil before the first read
	full   map[string]bool     // concurrency keys that had no slot left
	passed []layout.Place      // entries that were read past and are to be tidied, at most passedMost
	more   bool                // there were more than that
}

func (s *shared) view(c *claim) claimView { return &sharedView{shared: s, c: c} }

func (v *sharedView) putBack(ctx context.Context, left []layout.Place, _ bool) {
	v.notStarted(left)
	v.q.unmark(ctx, left)
}

func (v *sharedView) settled(picks, left []layout.Place) {
	v.chosen.settle(picks, nil, v.q.micro())
	v.notStarted(left)
}

// notStarted lets this process's claims find entries again that were picked. Those that have missed some may wait by now, and are notified.
func (v *sharedView) notStarted(picks []layout.Place) {
	if v.chosen.settle(nil, picks, v.q.micro()) {
		v.q.notify(context.Background(), noticesOf(v.c.lines))
	}
	if l, may := v.mayShare(); may {
		r, _ := v.q.parts.reserveOf(l)
		r.giveBack(picks)
	}
}

// given returns a function that reports whether another claim of this process may start an entry.
func (v *sharedView) given() func(layout.Place) bool {
	l, may := v.mayShare()
	if !may {
		return func(layout.Place) bool { return false }
	}
	r, _ := v.q.parts.reserveOf(l)
	return r.isGiven
}

func (v *sharedView) rival() {
	v.q.crowds.met(v.c.queue.Name, v.q.micro())
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.met == nil {
		v.met = map[string]int64{}
	}
	v.met[v.c.queue.Name] = v.q.micro()
}

// rivalMemory is how long, in microseconds, a rival counts as met lately.
const rivalMemory = 10_000_000

// metLately reports whether a claim from a queue has met others lately.
func (s *shared) metLately(queue string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.met[queue]
	return known && s.q.micro() < last+rivalMemory
}

// contested returns the limits of the claimer and of the queue.
func (v *sharedView) contested() []string {
	var limits []string
	if at := v.c.at; at != nil {
		limits = append(limits, at.Limit)
	}
	if v.c.queue.MaxParallel > 0 {
		limits = append(limits, layout.QueueLimit(v.c.queue.Name))
	}
	return limits
}

func (v *sharedView) readOrder(ctx context.Context) error {
	items, err := v.q.store.Get(ctx, layout.OrderKey(v.c.queue.Name))
	if err != nil {
		return layout.Failure("read the order of a queue", err)
	}
	if v.order = 0; items[0] != nil {
		v.order = items[0].Version
	}
	return nil
}

func (v *sharedView) countStart() []store.Op {
	cond := store.Absent
	if v.order > 0 {
		cond = store.VersionIs(v.order)
	}
	return []store.Op{store.Put(store.Item{Key: layout.OrderKey(v.c.queue.Name)}, cond)}
}
