package main

import (
	"slices"
	"time"
)

// lateness is how late the tasks of a line were started, or their attempts ended, beyond what their rules explain.
type lateness struct {
	Path  string        `json:"path"`
	Count int           `json:"count"`
	P50   time.Duration `json:"p50"`
	P99   time.Duration `json:"p99"`
	Max   time.Duration `json:"max"`
	At    time.Time     `json:"max_at"`
	Task  string        `json:"max_task"`
}

// circumstances are the spans of time in which a task has a reason to wait.
type circumstances struct {
	began, end int64
	down       spans            // the server is away
	nobody     map[pool]spans   // no process that could run it has a free slot
	held       map[string]spans // an operator holds it
	full       map[int8]spans   // as many run as may at once
	excuses    map[int8]spans   // all of these together, by line
}

// explain works out the circumstances.
func explain(l *ledger, c *cast, h *holds, began, end int64) *circumstances {
	why := &circumstances{
		began: began, end: end, down: c.down(began), nobody: map[pool]spans{}, held: map[string]spans{}, full: map[int8]spans{},
		excuses: map[int8]spans{},
	}
	able := map[pool][]spans{}
	for _, r := range c.runners {
		alive := r.alive
		if alive.to == 0 {
			alive.to = end
		}
		able[r.pool] = append(able[r.pool], spans{alive}.without(atLeast(l.rooms[r.name], r.room, end)))
	}
	for p, all := range able {
		why.nobody[p] = nowhere(all, began, end)
	}
	for name, all := range h.all {
		why.held[name] = union(all)
	}
	for i, line := range lines {
		if line.limit > 0 {
			why.full[int8(i)] = atLeast(l.limits[int8(i)], line.limit, end)
		}
		why.excuses[int8(i)] = union(why.down, why.nobody[line.pool], why.held[line.held], why.full[int8(i)])
	}
	return why
}

// late returns how late starts were: from when the task was ready, by its time and the delay before its next attempt, less what
// explains that it waited.
func (why *circumstances) late(starts []stretch) []lateness {
	return measure(starts, func(s stretch) int64 {
		return s.to - s.from - why.excuses[s.line].covered(s.from, s.to)
	})
}

// overlong returns how much longer attempts took than they may: their work, and their lease, if the process that ran them has died.
func (why *circumstances) overlong(runs []stretch) []lateness {
	return measure(runs, func(s stretch) int64 {
		may := longestWork + lease
		if lines[s.line].path == "/topics/hosts/long" {
			may = longestStop + lease
		}
		return max(0, s.to-s.from-why.down.covered(s.from, s.to)-may.Microseconds())
	})
}

// measure sums up, by line.
func measure(all []stretch, by func(stretch) int64) []lateness {
	values, found := map[int8][]int64{}, map[int8]*lateness{}
	for _, s := range all {
		if s.line < 0 {
			continue
		}
		if found[s.line] == nil {
			found[s.line] = &lateness{Path: lines[s.line].path}
		}
		value := max(0, by(s))
		values[s.line] = append(values[s.line], value)
		if worst := found[s.line]; time.Duration(value)*time.Microsecond >= worst.Max {
			worst.Max, worst.At, worst.Task = time.Duration(value)*time.Microsecond, time.UnixMicro(s.to).UTC(), s.task.String()
		}
	}
	var sums []lateness
	for i := range lines {
		one := found[int8(i)]
		if one == nil {
			continue
		}
		ordered := values[int8(i)]
		slices.Sort(ordered)
		one.Count = len(ordered)
		one.P50 = time.Duration(ordered[len(ordered)/2]) * time.Microsecond
		one.P99 = time.Duration(ordered[len(ordered)*99/100]) * time.Microsecond
		sums = append(sums, *one)
	}
	return sums
}
