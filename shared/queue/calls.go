package queue

import "github.com/millrace/millrace/shared/queue/layout"

// calls is which lines a process was told of, whether anybody waited or not, so that an instance which begins another wait knows that it
// has missed nothing in between.
type calls struct {
	newest uint64                 // rises with each of them
	lines  map[layout.Line]uint64 // the newest of each line
	all    uint64                 // the newest that was perhaps for all lines
}

// add notes a call for a line.
func (c *calls) add(l layout.Line) {
	if l == (layout.Line{}) {
		c.addAll()
		return
	}
	if c.newest++; c.lines == nil {
		c.lines = map[layout.Line]uint64{}
	}
	if len(c.lines) >= maxLinesKnown {
		clear(c.lines)
		c.all = c.newest
	}
	c.lines[l] = c.newest
}

// addAll notes a call for whatever an instance may claim.
func (c *calls) addAll() {
	c.newest++
	c.all = c.newest
}

// areQuiet reports whether there was no call since a moment for what the claimer takes.
func (c *calls) areQuiet(by *Claimer, since Mark) bool {
	if c.newest == since.calls {
		return true
	}
	if c.all > since.calls {
		return false
	}
	for l, at := range c.lines {
		if at > since.calls && by.takes(l) {
			return false
		}
	}
	return true
}
