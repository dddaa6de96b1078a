package queue

import (
	"context"
	"slices"

	"github.com/millrace/millrace/shared/lock"
	"github.com/millrace/millrace/shared/queue/layout"
	"github.com/millrace/millrace/shared/store"
)

// window is the head of one ready index in memory, for [alone]: it holds every entry up to a bound, except those that are being
// started. It saves each claim a search, which on an ordered key-value store has to step over all deleted entries at the head; its
// size does not grow with the backlog.
type window struct {
	q       *Queue
	line    layout.Line
	mu      lock.Mutex
	entries []layout.Place // by rank
	bound   string         // entries above it are not here; they are read when those here are used up
	whole   bool           // the index has none above bound
}

const (
	windowFill = 512  // entries read at once
	windowMost = 2048 // the most entries kept; beyond, the half with the greater ranks is forgotten
)

// add adds an entry that was stored, unless it lies above the bound or a newer one has its key.
func (w *window) add(p layout.Place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.whole && p.At.Sort > w.bound {
		return
	}
	n := len(w.entries)
	if n == 0 || w.entries[n-1].At.Sort < p.At.Sort { // the usual case
		w.entries = append(w.entries, p)
	} else {
		at, there := slices.BinarySearchFunc(w.entries, p, layout.ByRank)
		if there {
			if p.Version > w.entries[at].Version {
				w.entries[at] = p
			}
			return
		}
		w.entries = slices.Insert(w.entries, at, p)
	}
	if len(w.entries) > windowMost {
		w.forget()
	}
}

// forget drops the half with the greater ranks.
func (w *window) forget() {
	keep := windowMost / 2
	clear(w.entries[keep:])
	w.entries = w.entries[:keep]
	w.bound, w.whole = w.entries[keep-1].At.Sort, false
}

// best removes and returns up to n entries of several lines, those of the least ranks.
func (a *alone) best(ctx context.Context, lines []layout.Line, n int) (taken []layout.Place, err error) {
	if len(lines) == 1 {
		return a.window(lines[0]).take(ctx, n, "")
	}
	for len(taken) < n {
		first, next, err := a.least(ctx, lines)
		var more []layout.Place
		if err == nil && first != (layout.Line{}) {
			more, err = a.window(first).take(ctx, n-len(taken), next)
		}
		if err != nil {
			a.doubt() // what was taken is found again
			return nil, err
		}
		if first == (layout.Line{}) {
			break
		}
		taken = append(taken, more...)
	}
	return taken, nil
}

// least returns the line whose head has the least rank, a zero one if all are empty, and the rank of the second line's head; "" if none.
func (a *alone) least(ctx context.Context, lines []layout.Line) (first layout.Line, next string, err error) {
	least := ""
	for _, other := range lines {
		rank, err := a.window(other).head(ctx)
		switch {
		case err != nil:
			return layout.Line{}, "", err
		case rank == "":
		case least == "" || rank < least:
			first, least, next = other, rank, least
		case next == "" || rank < next:
			next = rank
		}
	}
	return first, next, nil
}

func (a *alone) precedes(ctx context.Context, lines []layout.Line, rank string) bool {
	for _, l := range lines {
		if head, err := a.window(l).head(ctx); err != nil || head != "" && head < rank {
			return false
		}
	}
	return true
}

// head returns the rank of the first entry; "" if there is none.
func (w *window) head(ctx context.Context) (rank string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refill(ctx); err != nil || len(w.entries) == 0 {
		return "", err
	}
	return w.entries[0].At.Sort, nil
}

// take removes and returns up to n of the first entries, only those up to the rank next unless that is "".
func (w *window) take(ctx context.Context, n int, next string) ([]layout.Place, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refill(ctx); err != nil {
		return nil, err
	}
	n = min(n, len(w.entries))
	for next != "" && n > 0 && w.entries[n-1].At.Sort > next {
		n--
	}
	if n == 0 {
		return nil, nil
	}
	taken := slices.Clone(w.entries[:n])
	clear(w.entries[:n])
	w.entries = w.entries[n:]
	if len(w.entries) == 0 {
		w.entries = nil
	}
	return taken, nil
}

// refill reads on behind the bound if the entries here are used up. The caller holds mu, so that an entry that is stored meanwhile is
// added afterwards, and none is missed.
func (w *window) refill(ctx context.Context) error {
	if len(w.entries) > 0 || w.whole {
		return nil
	}
	from := ""
	if w.bound != "" {
		from = w.bound + "\x00"
	}
	places, more, err := layout.Places(ctx, w.q.store, store.Range{
		Table: store.Work, Partition: layout.ReadyPartition(w.line), From: from, Limit: windowFill,
	})
	if err != nil {
		return err
	}
	w.entries, w.whole = places, !more
	if len(places) > 0 {
		w.bound = places[len(places)-1].At.Sort
	}
	return nil
}

// window returns the window of a line.
func (a *alone) window(l layout.Line) *window {
	a.mu.RLock()
	found := a.windows[l]
	a.mu.RUnlock()
	if found != nil {
		return found
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.windows == nil {
		a.windows = map[layout.Line]*window{}
	}
	if a.windows[l] == nil {
		a.windows[l] = &window{q: a.q, line: l, mu: lock.New()}
	}
	return a.windows[l]
}

// forgetWindows drops all windows; they are read again. An entry that is added to one that was dropped is in the store already.
func (a *alone) forgetWindows() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.windows = nil
}
