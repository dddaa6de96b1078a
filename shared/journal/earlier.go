package journal

import "github.com/millrace/millrace/shared/event"

// What a process keeps in memory of what it has folded: the states that it had at some moments, at most maxEarlier of them, one for
// each earlierEvents events as long as these are not too many. States share what has not changed between them; what they
// do not share is bounded by earlierBytes.
const (
	earlierEvents = 1 << 15
	maxEarlier    = 32
	earlierBytes  = 64 << 20
)

// earlier is what the states were at an earlier moment.
type earlier struct {
	position int64
	last     event.ID // the last id of the slot at that position
	events   int64
	states   map[string]State // by fold; packed
}

// worthRemembering reports whether so many events have been folded that the states are to be kept again.
func (v *view) worthRemembering(events int64) bool {
	n := len(v.earlier)
	return n == 0 || events >= v.earlier[n-1].events+earlierEvents
}

// remember keeps the states as they are, with the events up to a mark folded, and makes room for them.
func (v *view) remember(as mark) {
	e := earlier{as.Position, as.Last, as.Events, make(map[string]State, len(v.states))}
	for name, state := range v.states {
		state.pack()
		e.states[name] = state.frozen()
	}
	v.earlier = append(v.earlier, e)
	for n := len(v.earlier); n > maxEarlier || n > 1 && v.earlierSize() > earlierBytes; n-- {
		at := v.dispensable()
		v.earlier = append(v.earlier[:at:at], v.earlier[at+1:]...) // readers may hold the slice
	}
}

// dispensable returns the earlier state whose neighbours are the fewest events apart, or the oldest if only one follows it.
func (v *view) dispensable() (at int) {
	least := int64(-1)
	for i := 1; i+1 < len(v.earlier); i++ {
		if gap := v.earlier[i+1].events - v.earlier[i-1].events; least < 0 || gap < least {
			at, least = i, gap
		}
	}
	return at
}

// earlierSize returns the bytes that the earlier states do not share with what came after them, at most.
func (v *view) earlierSize() (bytes int) {
	const reference = 24 // of a slice, for each block
	for i, e := range v.earlier {
		for name, state := range e.states {
			now := v.states[name].replaced
			if i+1 < len(v.earlier) {
				now = v.earlier[i+1].states[name].replaced
			}
			bytes += min(state.packed.size(), now-state.replaced) + reference*len(state.packed)
		}
	}
	return bytes
}

// forgetEarlier forgets the states that nobody needs who asks for what was at a floor or above it.
func (v *view) forgetEarlier(floor int64) {
	for len(v.earlier) > 1 && v.earlier[1].position <= floor {
		v.earlier = v.earlier[1:]
	}
}

// before returns a fold's newest state that shows no event above an id; ok is false if there is none.
func before(states []earlier, fold string, at event.ID) (f folded, ok bool) {
	for i := len(states) - 1; i >= 0; i-- {
		if e := &states[i]; e.last <= at {
			return folded{last: e.last, next: e.position + 1, state: e.states[fold]}, true
		}
	}
	return f, false
}
