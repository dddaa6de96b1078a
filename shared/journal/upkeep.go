package journal

import (
	"context"
	"slices"
	"time"
)

// keepGenerations brings the stored generations up to date, and returns the position that the newest reaches, 0 if there is
// none or it is not known. The view is taken for each step anew, so that snapshots need not wait for a base that takes
// minutes. A sweep that has no time left, or is cut off, leaves the rest of a base to the next one.
func (j *Journal) keepGenerations(ctx context.Context) (newest int64, err error) {
	var longest time.Duration
	amended := false
	for {
		began := time.Now()
		s, err := j.lay(ctx)
		newest, amended = max(newest, s.position()), amended || s.amended
		if err == nil && hasTime(ctx, longest) {
			goesOn := s.behind
			if s.base != nil {
				goesOn, err = j.storeBase(ctx, s.base)
			}
			if goesOn {
				longest = max(longest, time.Since(began))
				continue
			}
		}
		if err == nil && amended && hasTime(ctx, longest) {
			err = j.dropLayers(ctx)
		}
		if err != nil {
			return newest, j.unavailable("store a generation", err)
		}
		return newest, nil
	}
}

// hasTime reports whether ctx leaves time for two steps as long as the longest so far, and a second.
func hasTime(ctx context.Context, longest time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() == nil && (!bounded || time.Until(deadline) > 2*longest+time.Second)
}

// base is what the next layer of a base is made from.
type base struct {
	building
	position int64
	states   []State // in the order of the folds
}

// step is what a step of the upkeep leaves.
type step struct {
	manifest
	base    *base // of which a layer is to be stored; nil: none
	amended bool  // the manifest may have changed
	behind  bool  // there is more to fold
}

// lay takes the view, folds what is new, as much as changes are to have, and stores changes if that is due.
func (j *Journal) lay(ctx context.Context) (s step, err error) {
	v := &j.view
	done, err := v.enter(ctx)
	if err != nil {
		return s, err
	}
	defer done()
	v.swept = true
	m, err := j.current(ctx, j.enough)
	if err != nil {
		return s, err
	}
	if j.due(&m) {
		if m, err = j.extend(ctx, m); err != nil {
			return s, err
		}
		s.amended = true
	}
	v.trim(m.tip(v.folds, v.since))
	s.manifest, s.base, s.behind = m, v.base(m), v.behind
	return s, nil
}

// current reads the manifest, and folds what is new until it is enough; nil: all of it. The caller holds the view. A view that
// does not know what has changed since any generation is loaded again from the newest.
func (j *Journal) current(ctx context.Context, enough func(*manifest) bool) (m manifest, err error) {
	v := &j.view
	for range 2 {
		if m, _, err = j.manifest(ctx); err != nil {
			return m, err
		}
		if err = j.advanceUntil(ctx, func() bool { return enough != nil && enough(&m) }); err != nil {
			return m, err
		}
		if len(m.chains(v.folds)) == 0 || m.tip(v.folds, v.since) != unknown {
			break
		}
		v.loaded = false
	}
	return m, nil
}

// base returns what the next layer of a base is made from; nil if there is none to be stored.
func (v *view) base(m manifest) *base {
	if m.Next == nil || m.Next.Whole || !m.Next.of(v.folds) || v.position < m.Next.From {
		return nil
	}
	b := &base{building: *m.Next, position: v.position}
	for _, fold := range v.folds {
		b.states = append(b.states, v.states[fold.Name].frozen())
	}
	return b
}

// due reports whether changes are to be stored: there is no generation with these folds, or a process that starts would have
// enough to fold, or retention needs it, since the floor never passes a generation, or a base only has to be completed.
func (j *Journal) due(m *manifest) bool {
	v := &j.view
	chains := m.chains(v.folds)
	if len(chains) == 0 && (m.Newest == nil || !m.Newest.covers(v.folds)) {
		return v.position > 0
	}
	if m.Next != nil && m.Next.Whole && m.Next.of(v.folds) {
		return true
	}
	newest := m.Newest
	if len(chains) > 0 {
		newest = chains[0]
	}
	l := &newest.Ledger
	if v.position <= l.position {
		return false
	}
	events := v.events - l.events
	return events >= min(changesAfter, max(1, j.keep.Events/2)) || v.bytes-l.bytes >= changesAfterBytes ||
		l.last.Time().Before(j.now().Add(-j.keep.Age/2))
}

// enough reports whether the view has folded as much as changes are to have at most, so that however late a sweep is, what was
// can be told by folding a few events above stored changes.
func (j *Journal) enough(m *manifest) bool {
	v := &j.view
	var stored ledger
	for _, g := range m.chains(v.folds) {
		if g.Ledger.position > stored.position {
			stored = g.Ledger
		}
	}
	most := min(changesAfter, max(stepEvents, j.keep.Events/2))
	return v.events-stored.events >= most || v.bytes-stored.bytes >= changesAfterBytes
}

// extend stores what has changed and adds it to the generations since which that is known. If there are none, or too much
// has changed, a base is begun. The caller holds the view.
func (j *Journal) extend(ctx context.Context, m manifest) (manifest, error) {
	v := &j.view
	notAfter := j.named()
	from, records := v.changesFor(&m)
	changes, err := j.storeLayer(ctx, v.position, records)
	if err != nil {
		return m, err
	}
	changes = told(changes, &v.ledger)
	fresh := &building{ID: j.token(), From: v.position}
	fresh.Folds, fresh.Ledger = names(v.folds), v.ledger
	m, err = j.amend(ctx, notAfter, func(m *manifest) bool { return m.extend(v, from, changes, fresh, j.chunk) })
	if err == nil && from == unknown {
		v.forgetChanges() // only the new base is to be extended, with what changes from now on
	}
	return m, err
}

// extend adds changes to every generation that reaches at least from, completes the next one if it can be, and puts fresh in
// its place if a base is due.
func (m *manifest) extend(v *view, from int64, changes []layer, fresh *building, chunk int) (changed bool) {
	for _, g := range m.chains(v.folds) {
		if tip := g.Ledger.position; from <= tip && tip < v.position {
			g.Changes, g.Ledger = append(g.Changes, changes...), v.ledger
			changed = true
			if g == m.Newest && g.Exact == 0 { // as an older version has left it
				g.Exact = v.position
			}
		}
	}
	// Rule (retention): a base is complete once the changes above it reach its newest layer and the position of the newest
	// generation, up to which other processes may have moved the floor.
	if n := m.Next; n != nil && n.Whole && n.Ledger.position >= max(n.Until, m.position()) {
		n.complete()
		if m.Newest != nil {
			m.Retired++
		}
		m.retired, m.Newest, m.Next, changed = m.Newest, &n.generation, nil, true
	}
	if m.begins(v, from, fresh.ID, chunk) {
		m.Next, changed = fresh, true
	}
	return changed
}

// begins reports whether a base is to be begun from the view. Rule (retention): never below the newest generation, up to
// which the floor may have moved.
func (m *manifest) begins(v *view, from int64, id string, chunk int) bool {
	switch {
	case v.position < m.position() || m.Next != nil && m.Next.ID == id:
		return false
	case from == unknown: // the changes can be added to no generation
		return true
	case m.Next != nil && m.Next.of(v.folds):
		return false
	}
	return m.Newest == nil || !m.Newest.of(v.folds) || m.Newest.baseDue(chunk)
}

// storeBase stores one more layer of a base; goesOn is false if another process has stored one meanwhile.
func (j *Journal) storeBase(ctx context.Context, b *base) (goesOn bool, err error) {
	notAfter := j.named()
	records, fold, key := b.records(j.chunk * layerChunks)
	layers, err := j.storeLayer(ctx, b.position, records)
	if err != nil {
		return false, err
	}
	_, err = j.amend(ctx, notAfter, func(m *manifest) bool {
		n := m.Next
		if n == nil || n.ID != b.ID || n.Whole || len(n.Base) != len(b.Base) {
			return false
		}
		n.Base = append(n.Base, layers...)
		n.Fold, n.Key, n.Whole = fold, []byte(key), fold == len(b.states)
		n.Until = max(n.Until, b.position)
		goesOn = true
		return true
	})
	return goesOn, err
}

// records returns the records of the next layer, up to the first that reaches size in bytes, and the fold and the key at
// which the layer after it begins.
func (b *base) records(size int) (records []byte, fold int, next string) {
	from := string(b.Key)
	for fold = b.Fold; fold < len(b.states); fold++ {
		for key, value := range b.states[fold].from(from) {
			if len(records) >= size {
				return records, fold, key
			}
			records = appendRecord(records, fold, key, value, false)
		}
		from = ""
	}
	return records, fold, ""
}

// changesFor returns what has changed since the oldest generation for which that is known and not larger than maxChanges, and
// that generation's position; unknown if there is none.
func (v *view) changesFor(m *manifest) (from int64, records []byte) {
	for from = m.tip(v.folds, v.since); from != unknown; from = m.tip(v.folds, from+1) {
		if records = v.changes(from); len(records) <= maxChanges {
			return from, records
		}
	}
	return unknown, nil
}

// changes returns the records of the keys that have changed above a position.
func (v *view) changes(above int64) (records []byte) {
	for index, fold := range v.folds {
		state := v.states[fold.Name]
		var keys []string
		for key, position := range state.touched {
			if position > above {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			value, there := state.find(key)
			records = appendRecord(records, index, key, value, !there)
		}
	}
	return records
}

func names(folds []Fold) []string {
	all := make([]string, len(folds))
	for i, f := range folds {
		all[i] = f.Name
	}
	return all
}
