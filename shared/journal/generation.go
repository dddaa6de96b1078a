package journal

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/store"
)

// A generation is an immutable snapshot of all folds at one position, from which a process starts to fold, and behind
// which slots may be evicted. Its content is cut into chunks under a partition of its own; it exists once the item
// `newest` names it.
//
//	G#NAME       newest      the manifest of the newest complete generation
//	G#NAME       all#ID      every generation begun, complete or not, so that none is left behind
//	G#NAME#ID    000001 …    chunks

// manifest describes a generation.
type manifest struct {
	ID     string   `json:"id"` // position and a random part: two sweeps may make one at the same position
	Chunks int      `json:"chunks"`
	Folds  []string `json:"folds"`
	Ledger ledger   `json:"ledger"`
}

const (
	newestSort = "newest"
	allPrefix  = "all#"
	chunkSize  = 256 << 10

	// abandonAfter is how old a generation is before one that nobody reads any more is removed.
	abandonAfter = time.Hour
)

func (j *Journal) newestKey() store.Key {
	return store.Key{Table: store.Journal, Partition: j.keys.generations(), Sort: newestSort}
}

// newest reads the manifest of the newest complete generation; version is 0 if there is none.
func (j *Journal) newest(ctx context.Context) (m manifest, version int64, err error) {
	items, err := j.store.Get(ctx, j.newestKey())
	if err != nil {
		return m, 0, j.unavailable("read the newest generation", err)
	}
	if items[0] == nil {
		return m, 0, nil
	}
	if err := json.Unmarshal(items[0].Value, &m); err != nil {
		return m, 0, fmt.Errorf("%w: generation: %w", ErrDamaged, err)
	}
	return m, items[0].Version, nil
}

// loadNewest starts the view from the newest generation that has all folds, or from the journal's beginning.
func (j *Journal) loadNewest(ctx context.Context) error {
	v := &j.view
	for {
		// The floor is read before the generation, which it never passes: were a first one stored and the floor raised
		// between two reads in the other order, the journal's beginning would seem never to have been folded.
		seq, err := j.sequence(ctx)
		if err != nil {
			return err
		}
		m, version, err := j.newest(ctx)
		if err != nil {
			return err
		}
		if version == 0 || !m.covers(v.folds) {
			// Where there is a floor, a fold is new since, and what was evicted before it is not in it.
			v.reset(ledger{position: seq.FloorPosition, last: event.ID(seq.FloorID)})
			v.loaded = true
			return nil
		}
		v.reset(m.Ledger)
		complete, err := j.loadChunks(ctx, m)
		if err != nil {
			return err
		}
		if complete {
			v.loaded = true
			return nil
		}
		// It was replaced and removed while it was read: there is a newer one.
	}
}

// covers reports whether a generation has every fold.
func (m manifest) covers(folds []Fold) bool {
	return !slices.ContainsFunc(folds, func(f Fold) bool { return !slices.Contains(m.Folds, f.Name) })
}

// loadChunks reads the content, a stream of records (fold's index, key, value, each with its length) cut anywhere.
func (j *Journal) loadChunks(ctx context.Context, m manifest) (complete bool, err error) {
	var rest []byte
	for n := 1; n <= m.Chunks; n++ {
		items, err := j.store.Get(ctx, j.chunkKey(m.ID, n))
		if err != nil {
			return false, j.unavailable("read a generation", err)
		}
		if items[0] == nil {
			return false, nil
		}
		rest = j.view.loadRecords(m, append(rest, items[0].Value...))
	}
	if len(rest) > 0 {
		return false, fmt.Errorf("%w: generation %s ends within a record", ErrDamaged, m.ID)
	}
	return true, nil
}

// loadRecords takes the whole records at the beginning of bytes and answers the rest.
func (v *view) loadRecords(m manifest, bytes []byte) []byte {
	in := input{bytes: bytes, text: string(bytes)}
	for at := 0; ; at = in.at {
		index, key, value := in.number(), in.string(), in.slice()
		if in.bad {
			return slices.Clone(bytes[at:])
		}
		if state := v.states[m.Folds[int(index)%len(m.Folds)]]; state != nil {
			state.Put(strings.Clone(key), slices.Clone(value))
		}
	}
}

func (j *Journal) chunkKey(id string, n int) store.Key {
	return store.Key{Table: store.Journal, Partition: j.keys.chunks(id), Sort: fmt.Sprintf("%06d", n)}
}

// generate stores the view as a generation and makes it the newest, unless another process has stored a newer one. It is
// the caller's turn.
func (j *Journal) generate(ctx context.Context, version int64) error {
	v := &j.view
	m := manifest{ID: positionSort(v.position) + "-" + j.token(), Ledger: v.ledger}
	for _, fold := range v.folds {
		m.Folds = append(m.Folds, fold.Name)
	}
	begun := store.Item{
		Key: j.generationKey(m.ID), Version: 1, Value: strconv.AppendInt(nil, j.now().UnixMilli(), 10),
	}
	if err := j.put(ctx, begun, store.Always); err != nil {
		return err
	}
	if err := j.storeChunks(ctx, &m); err != nil {
		return err
	}
	value, err := json.Marshal(m)
	if err != nil {
		return err
	}
	cond := store.Absent
	if version > 0 {
		cond = store.VersionIs(version)
	}
	err = j.put(ctx, store.Item{Key: j.newestKey(), Version: v.position, Value: value}, cond)
	if store.AsConflict(err) != nil {
		return nil // another sweep was quicker; what this one stored is removed when it is old
	}
	return err
}

func (j *Journal) generationKey(id string) store.Key {
	return store.Key{Table: store.Journal, Partition: j.keys.generations(), Sort: allPrefix + id}
}

func (j *Journal) storeChunks(ctx context.Context, m *manifest) error {
	var buf []byte
	flush := func(all bool) error {
		for len(buf) >= chunkSize || all && len(buf) > 0 {
			n := min(len(buf), chunkSize)
			m.Chunks++
			item := store.Item{Key: j.chunkKey(m.ID, m.Chunks), Version: 1, Value: slices.Clone(buf[:n])}
			if err := j.put(ctx, item, store.Always); err != nil {
				return err
			}
			buf = append(buf[:0], buf[n:]...)
		}
		return nil
	}
	for index, fold := range j.view.folds {
		for key, value := range j.view.states[fold.Name].All() {
			buf = binary.AppendUvarint(buf, uint64(index))
			buf = appendText(buf, key)
			buf = appendText(buf, value)
			if err := flush(false); err != nil {
				return err
			}
		}
	}
	return flush(true)
}

// put writes one item, sending again what had no outcome.
func (j *Journal) put(ctx context.Context, item store.Item, cond store.Condition) error {
	w := store.Write{Token: j.token(), Ops: []store.Op{store.Put(item, cond)}}
	for try := 0; ; try++ {
		err := j.call(ctx, w)
		pointless := errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrInvalid)
		if err == nil || store.AsConflict(err) != nil || pointless || try == 2*maxSends || ctx.Err() != nil {
			return err
		}
		j.pause(ctx, try)
	}
}

// dropGenerations removes the generations that nobody starts from any more: older than the one before the newest, and
// begun a while ago.
func (j *Journal) dropGenerations(ctx context.Context, newest string) error {
	p, err := j.store.Query(ctx, store.Range{
		Table: store.Journal, Partition: j.keys.generations(), From: allPrefix, To: allPrefix + newest, Backward: true,
	})
	if err != nil || len(p.Items) < 2 {
		return err
	}
	for _, item := range p.Items[1:] {
		begun, _ := strconv.ParseInt(string(item.Value), 10, 64)
		if j.now().Sub(time.UnixMilli(begun)) < abandonAfter {
			continue
		}
		id := strings.TrimPrefix(item.Key.Sort, allPrefix)
		if err := j.store.Remove(ctx, store.Range{Table: store.Journal, Partition: j.keys.chunks(id)}); err != nil {
			return err
		}
		drop := store.Write{Token: j.token(), Ops: []store.Op{store.Delete(item.Key, store.Always)}}
		if err := j.call(ctx, drop); err != nil {
			return err
		}
	}
	return nil
}
