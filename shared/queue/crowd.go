package queue

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/groupcommit"
	"github.com/millrace/millrace/shared/rate"
)

// Where processes share the store, concurrent claims of one process on a queue would read the same head and contend for the same
// entries, as those of different processes do. So this process makes them one after the other, and those that wait meanwhile together, as
// one claim.
type crowds struct {
	joint *groupcommit.Keyed[string, *member]

	mu    sync.Mutex
	under map[string]int         // claims under way, by crowd
	lost  map[string]*rate.Meter // how often claims of a queue meet others
	empty map[string]int64       // when a claim found nothing last, in microseconds since 1970, by crowd
}

// member is one of the claims that are made as one.
type member struct {
	c      *claim
	max    int
	leases []Lease
	err    error
}

// claimsAtOnce is how many claims of a crowd are under way at most. By the bench of DynamoDB's limits with 8 workers in each process, two let
// workers wait for each other, and eight contend for the same entries.
const claimsAtOnce = 4

// newJoint returns what gathers the claims of each crowd.
func (q *Queue) newJoint() *groupcommit.Keyed[string, *member] {
	writers := claimsAtOnce
	if q.onePart {
		writers = 2 // there a claim that loses tries again for the first that is left
	}
	return groupcommit.NewKeyed[string](groupcommit.Options[*member]{
		Batch:   func() func(*member) bool { return (&crowd{most: q.maxClaim}).add },
		Write:   claimAsOne,
		More:    func([]*member) bool { return true },
		Writers: writers,
	})
}

// crowd is the claims that are made as one: as many as one write holds.
type crowd struct {
	most  int // tasks
	first *member
	max   int
}

// add adds a claim if it fits.
func (g *crowd) add(m *member) bool {
	switch {
	case g.first == nil:
		g.first = m
	case g.max+m.max > g.most || !reflect.DeepEqual(m.c.by, g.first.c.by):
		return false
	}
	g.max += m.max
	return true
}

// claimAsOne makes the first of several claims for all, and gives out the leases in the order of the claims.
func claimAsOne(ctx context.Context, all []*member) {
	c, max := all[0].c, 0
	for _, m := range all {
		if max += m.max; m.c.rules.Read.After(c.rules.Read) {
			c.rules = m.c.rules // none goes by rules from before it began
		}
	}
	leases, err := c.upTo(ctx, max)
	for _, m := range all {
		n := min(m.max, len(leases))
		m.leases, leases, m.err = slices.Clip(leases[:n]), leases[n:], err
	}
}

// joins reports whether the claim is made together with others of this process.
func (c *claim) joins() bool {
	return !c.q.store.Exclusive() && c.at == nil && c.by.Beside == nil && c.by.Once == nil && c.queue.Type != definition.Ordered
}

// crowd names the claims that the claim is made together with.
func (c *claim) crowd() string {
	return c.by.Instance + "\x00" + c.place()
}

// place names the lines that the claim takes from.
func (c *claim) place() string {
	names := make([]string, len(c.lines))
	for i, l := range c.lines {
		names[i] = l.String()
	}
	return strings.Join(names, "\x00")
}

// inCrowd is upTo, together with others. A claim whose context ends while it waits leaves its place, and another claimer is notified,
// since this one may have been.
func (c *claim) inCrowd(ctx context.Context, max int) ([]Lease, error) {
	if !c.joins() {
		return c.upTo(ctx, max)
	}
	m, name := &member{c: c, max: max}, c.crowd()
	c.q.crowds.count(name, 1)
	defer c.q.crowds.count(name, -1)
	if err := c.q.crowds.joint.Do(ctx, name, m); err != nil {
		c.q.notify(context.WithoutCancel(ctx), noticesOf(c.lines))
		return nil, err
	}
	return m.leases, m.err
}

func (s *crowds) count(name string, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.under == nil {
		s.under = map[string]int{}
	}
	if s.under[name] += n; s.under[name] == 0 {
		delete(s.under, name)
		return 0
	}
	return s.under[name]
}

// emptyFor is how long, in microseconds, lines in which nothing was found are left to claims that must know.
const emptyFor = 100_000

// foundNothing notes that a claim has found nothing in its lines.
func (s *crowds) foundNothing(c *claim) {
	if !c.joins() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := c.q.micro()
	maps.DeleteFunc(s.empty, func(_ string, at int64) bool { return now-at >= emptyFor })
	if s.empty == nil {
		s.empty = map[string]int64{}
	}
	s.empty[c.crowd()] = now
}

// emptyLately reports whether a claim has found nothing in these lines just now.
func (s *crowds) emptyLately(c *claim) bool {
	if !c.joins() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at, found := s.empty[c.crowd()]
	now := c.q.micro()
	return found && now-at < emptyFor && now >= at
}

// met notes that a claim of a queue has met another.
func (s *crowds) met(queue string, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = map[string]*rate.Meter{}
	}
	if s.lost[queue] == nil {
		s.lost[queue] = &rate.Meter{}
	}
	s.lost[queue].Add(now, 1)
}

// contended is how often a second claims of a queue meet others where they rather wait for each other.
const contended = 4

func (s *crowds) contended(queue string, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.lost[queue]
	return p != nil && p.PerSecond(now) >= contended
}

// enter begins a claim that does not wait for others, and reports whether that is right: there is none, or few meet. leave ends it.
func (s *crowds) enter(c *claim) bool {
	if !c.joins() {
		return true
	}
	if !s.contended(c.queue.Name, c.q.micro()) {
		s.count(c.crowd(), 1)
		return true
	}
	if name := c.crowd(); s.count(name, 1) > 1 {
		s.count(name, -1)
		return false
	}
	return true
}

func (s *crowds) leave(c *claim) {
	if c.joins() {
		s.count(c.crowd(), -1)
	}
}
