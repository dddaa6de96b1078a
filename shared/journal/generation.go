package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// generation is the stored state of all folds as of one position, from which a process starts to fold, and up to which
// slots may be evicted. It is made of layers that are applied in order: those of its base hold every key, those of changes
// what has changed since. So a generation is brought up to date by storing what has changed, however large the state is, and
// a base is stored anew only when the changes have grown to its size.
//
// A base is stored layer by layer, each as of the moment at which it was stored, by as many sweeps and processes as it takes
// (a fuzzy checkpoint: Gray and Reuter, Transaction Processing, 11.3). That is right because the changes since it was begun
// are applied above it: a key that has changed since its layer was stored is among them, any other has been the same throughout.
//
//	G#NAME            newest    the manifest
//	G#NAME            rung#N    the Nth generation whose place was taken, kept for what was (ladder.go)
//	G#NAME            layer#ID  every layer begun, needed or not, so that each can be removed
//	G#NAME#ID#000001  0         a layer's chunks, each in a partition of its own, since DynamoDB writes 1 MB a second to one
type generation struct {
	Folds   []string `json:"folds"`
	Base    []layer  `json:"base"`
	Changes []layer  `json:"changes"`
	Ledger  ledger   `json:"ledger"` // as of the newest changes
	Exact   int64    `json:"exact"`  // the position from which on the changes reach every layer of the base; 0: not known
}

// building is a generation whose base is being stored, while its changes are stored already.
type building struct {
	generation
	ID    string `json:"id"`
	From  int64  `json:"from"`  // the position at which it was begun: no layer is older
	Until int64  `json:"until"` // the position of the newest layer, which the changes must reach
	Fold  int    `json:"fold"`  // the next layer begins in this one of the folds,
	Key   []byte `json:"key"`   // at this key
	Whole bool   `json:"whole"` // all layers of the base are stored
}

// manifest says which generations there are. It changes as a whole, by conditional writes of one item. Fields that are
// not known, such as those of an older layout, are ignored.
type manifest struct {
	Newest  *generation `json:"newest,omitempty"`
	Next    *building   `json:"next,omitempty"` // takes the place of Newest once it is complete
	Retired int64       `json:"retired"`        // how many generations have had their place taken
	retired *generation // the one whose place is taken by the change that is being made
}

// When changes and bases are stored. A process that starts folds at most changesAfter events, or changesAfterBytes of them,
// and what was appended since the newest sweep.
const (
	changesAfter      = 4096
	changesAfterBytes = 4 << 20
	stepEvents        = 32 // a sweep that is late stores no more often, however few events are kept

	maxLayers  = 512      // of changes above a base
	maxChanges = 64 << 20 // bytes of one of them; beyond that a new base is begun, which can be stored in parts
)

const newestSort = "newest"

// unknown is a position from which on no changes are known.
const unknown = int64(math.MaxInt64)

func (j *Journal) newestKey() store.Key {
	return store.Key{Table: store.Journal, Partition: j.keys.generations(), Sort: newestSort}
}

// manifest reads the manifest; version is 0 if there is none.
func (j *Journal) manifest(ctx context.Context) (m manifest, version int64, err error) {
	items, err := j.store.Get(ctx, j.newestKey())
	if err != nil {
		return m, 0, j.unavailable("read the newest generation", err)
	}
	if items[0] == nil {
		return m, 0, nil
	}
	if err := store.Decode(items[0].Value, &m); err != nil {
		return m, 0, fmt.Errorf("%w: generation: %w", ErrDamaged, err)
	}
	return m, items[0].Version, nil
}

// amend changes the manifest, and tries again while other processes change it. change returns false if there is nothing
// to be done, as it must when it has been applied already. A generation that it retires is kept by the same write.
func (j *Journal) amend(ctx context.Context, notAfter time.Time, change func(*manifest) bool) (manifest, error) {
	for {
		m, version, err := j.manifest(ctx)
		if err != nil || !change(&m) {
			return m, err
		}
		value, err := json.Marshal(m)
		if err != nil {
			return m, err
		}
		cond := store.Absent
		if version > 0 {
			cond = store.VersionIs(version)
		}
		item := store.Item{Key: j.newestKey(), Version: version + 1, Value: value}
		ops := []store.Op{store.Put(item, cond)}
		if m.retired != nil {
			kept, err := j.rungItem(m.retired, m.Retired)
			if err != nil {
				return m, err
			}
			ops = append(ops, store.Put(kept, store.Always))
		}
		err = j.put(ctx, store.Write{Token: j.token(), NotAfter: notAfter, Ops: ops})
		if store.AsConflict(err) == nil {
			return m, err
		}
	}
}

// of reports whether a generation has exactly these folds, so that their changes can be added to it.
func (g *generation) of(folds []Fold) bool {
	return slices.EqualFunc(g.Folds, folds, func(name string, f Fold) bool { return name == f.Name })
}

// covers reports whether a generation has every fold.
func (g *generation) covers(folds []Fold) bool {
	return !slices.ContainsFunc(folds, func(f Fold) bool { return !slices.Contains(g.Folds, f.Name) })
}

// chains returns the generations that a process with these folds keeps up to date.
func (m *manifest) chains(folds []Fold) (chains []*generation) {
	if m.Newest != nil && m.Newest.of(folds) {
		chains = append(chains, m.Newest)
	}
	if m.Next != nil && m.Next.of(folds) {
		chains = append(chains, &m.Next.generation)
	}
	return chains
}

// tip returns the lowest position, at or above least, from which changes can be added to a generation; unknown if there is
// none.
func (m *manifest) tip(folds []Fold, least int64) int64 {
	tip := unknown
	for _, g := range m.chains(folds) {
		if p := g.Ledger.position; p >= least {
			tip = min(tip, p)
		}
	}
	return tip
}

// position returns that of the newest complete generation, 0 if there is none.
func (m *manifest) position() int64 {
	if m.Newest == nil {
		return 0
	}
	return m.Newest.Ledger.position
}

// baseDue reports whether a new base is to be stored: the changes are as large as the base, 16 chunks at least, or maxLayers.
func (g *generation) baseDue(chunk int) bool {
	return len(g.Changes) >= maxLayers || sizeOf(g.Changes) >= max(sizeOf(g.Base), int64(16*chunk))
}

// loadNewest starts the view from the newest generation that has all folds, or from the journal's beginning.
func (j *Journal) loadNewest(ctx context.Context) error {
	v := &j.view
	for tried := int64(-1); ; {
		// The floor is read before the generation, which it never passes. In the other order, a first generation stored and
		// the floor raised between the two reads would make the evicted events seem to be in no generation.
		seq, err := j.sequence(ctx)
		if err != nil {
			return err
		}
		m, version, err := j.manifest(ctx)
		if err != nil {
			return err
		}
		complete := true
		if m.Newest == nil || !m.Newest.covers(v.folds) {
			// Where there is a floor, a fold is new since, and what was evicted before it is not in it.
			v.reset(ledger{position: seq.FloorPosition, last: event.ID(seq.FloorID)})
		} else {
			v.reset(m.Newest.Ledger)
			if complete, err = j.loadGeneration(ctx, m.Newest); err != nil {
				return err
			}
		}
		if complete {
			v.since, v.loaded = m.tip(v.folds, v.position), true
			if v.worthRemembering(v.events) {
				v.remember(mark{v.position, v.events, v.last})
			}
			return nil
		}
		if version == tried {
			return fmt.Errorf("%w: part of the newest generation is missing", ErrDamaged)
		}
		tried = version // it was replaced and removed while it was read: there is a newer one
	}
}

// loadGeneration reads a generation into the view, and keeps some of the states that it tells; complete is false if part of it is
// gone.
func (j *Journal) loadGeneration(ctx context.Context, g *generation) (complete bool, err error) {
	v := &j.view
	complete, err = j.loadLayers(ctx, g.Folds, g.Base, v.states)
	for i := 0; i < len(g.Changes) && complete && err == nil; i++ {
		c := &g.Changes[i]
		complete, err = j.loadLayers(ctx, g.Folds, g.Changes[i:i+1], v.states)
		if complete && g.tells(c) && v.worthRemembering(c.As.Events) {
			v.remember(*c.As)
		}
	}
	return complete, err
}
