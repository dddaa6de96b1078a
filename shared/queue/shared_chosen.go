package queue

import (
	"sync"

	"github.com/millrace/millrace/shared/queue/layout"
)

// chosen are the entries that claims of this process have picked and may be about to start, so that others of its claims go on behind them. Marks
// keep off the claims of other processes, and are writes.
type chosen struct {
	mu     sync.Mutex
	until  map[entryName]int64 // when each may be picked again at the latest, in microseconds since 1970
	busy   map[entryName]bool  // those whose claims are not over
	missed map[entryName]bool  // of these, what other claims wanted
	pruned int64               // when those were dropped last that may be picked again
}

// settledFor is how long, in microseconds, an entry is left out that was started: a page that was read before may have it.
const settledFor = 1_000_000

// pick picks up to n of the entries that no claim has picked; given says that it has left some out. next are those behind them.
func (c *chosen) pick(free []layout.Place, n int, now int64) (picked, next []layout.Place, given bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prune(now)
	for i := range free {
		switch name := nameOf(&free[i]); {
		case c.isOut(name, now):
			if given = true; n > 0 && c.busy[name] {
				c.missed[name] = true
			}
		case len(picked) == n:
			next = append(next, free[i])
		default:
			c.until[name], c.busy[name] = now+givenFor, true
			picked = append(picked, free[i])
		}
	}
	return picked, next, given
}

// without returns the entries that no claim has picked.
func (c *chosen) without(free []layout.Place, now int64) []layout.Place {
	_, others, _ := c.pick(free, 0, now)
	return others
}

// isOut reports whether an entry is left out; the clock may have been set back since it was picked. The caller holds mu.
func (c *chosen) isOut(name entryName, now int64) bool {
	until, picked := c.until[name]
	return picked && now < until && until-now <= givenFor
}

// underWay returns how many entries claims have picked that are not over.
func (c *chosen) underWay() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.busy)
}

// settle ends a claim that has picked entries, and lets others pick those that it has not started; missed says that some wanted these.
func (c *chosen) settle(picked, left []layout.Place, now int64) (missed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range picked {
		if name := nameOf(&picked[i]); c.busy[name] {
			delete(c.busy, name)
			c.until[name] = now + settledFor
		}
	}
	for i := range left {
		name := nameOf(&left[i])
		missed = missed || c.missed[name]
		delete(c.busy, name)
		delete(c.until, name)
		delete(c.missed, name)
	}
	return missed
}

// prune drops what may be picked again, now and then. The caller holds mu.
func (c *chosen) prune(now int64) {
	if c.until == nil {
		c.until, c.busy, c.missed = map[entryName]int64{}, map[entryName]bool{}, map[entryName]bool{}
	}
	if now-c.pruned < settledFor && now >= c.pruned {
		return
	}
	c.pruned = now
	for name := range c.until {
		if !c.isOut(name, now) {
			delete(c.until, name)
			delete(c.busy, name)
			delete(c.missed, name)
		}
	}
}
