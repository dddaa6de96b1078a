package dynamo

import (
	"maps"
	"sync"

	"github.com/millrace/millrace/shared/store"
)

// hintAge is how far, in microseconds, ids may be behind the clock for a contended ticket to take the next id.
const hintAge = 20_000

// maxHints is how many sequencers are known; those with a reservation under way may exceed it.
const maxHints = 10_000

// hints is what this process knows of its sequencers, for a guess of the right request for a ticket. A wrong guess costs a
// refused request.
type hints struct {
	mu    sync.Mutex
	known map[store.Key]*hint
}

type hint struct {
	last    int64 // the newest id seen; ids only rise
	pending int   // reservations under way in this process
	behind  int64 // the clock when a reservation was last refused for being behind the ids
}

// begin notes that a reservation begins and guesses its first branch.
func (h *hints) begin(key store.Key, now int64) branch {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil {
		h.known = map[store.Key]*hint{}
	}
	k := h.known[key]
	if k == nil {
		if len(h.known) >= maxHints {
			maps.DeleteFunc(h.known, func(_ store.Key, k *hint) bool { return k.pending == 0 })
		}
		k = &hint{}
		h.known[key] = k
	}
	k.pending++
	contended := k.pending > 1 || k.behind != 0 && now-k.behind <= hintAge
	if k.last >= now || contended && k.last >= now-hintAge {
		return reached
	}
	return ahead
}

// end notes that a reservation ended, its last id (0 if it failed), and whether it was refused for being behind the ids.
func (h *hints) end(key store.Key, now, last int64, behind bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.known[key]
	k.pending--
	k.last = max(k.last, last)
	if behind {
		k.behind = now
	}
}
