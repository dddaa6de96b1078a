package pebble

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/shared/store"
)

// newest knows the greatest key that each partition of the journal has or had, what is about to be committed included. A slot is written once,
// under the condition that there is none, and nearly always above all others of its partition: so that it is not there is known
// without a search, which would go through all that was written lately. Only the committer uses it.
type newest map[string]*greatest

// greatest is the greatest key of a partition, as far as it is known.
type greatest struct {
	key  []byte // nil: none was noted or read
	read bool   // the store was asked; before, there may be a greater one
}

// maxNewest is how many partitions are remembered; slots go to one after the other.
const maxNewest = 256

// begin begins a commit. Nothing is forgotten during one, since the store does not show yet what it writes.
func (n newest) begin() {
	if len(n) > maxNewest {
		clear(n)
	}
}

// above reports whether a key lies above all that its partition of the journal has or had. The first time it does not ask the store, since
// many a partition has one item only.
func (n newest) above(db *pebble.DB, key []byte, of store.Key) (bool, error) {
	if of.Table != store.Journal {
		return false, nil
	}
	g := n[of.Partition]
	if g == nil {
		n[of.Partition] = &greatest{}
		return false, nil
	}
	if !g.read {
		stored, err := greatestOf(db, of.Partition)
		if err != nil {
			return false, err
		}
		g.read = true
		g.raise(stored)
	}
	return bytes.Compare(key, g.key) > 0, nil
}

// note notes that an item is about to be written.
func (n newest) note(key []byte, of store.Key) {
	if of.Table != store.Journal {
		return
	}
	if n[of.Partition] == nil {
		n[of.Partition] = &greatest{}
	}
	n[of.Partition].raise(key)
}

func (g *greatest) raise(key []byte) {
	if bytes.Compare(key, g.key) > 0 {
		g.key = append(g.key[:0], key...)
	}
}

// greatestOf reads the greatest key of a partition of the journal; the least that one could have if it has none.
func greatestOf(db *pebble.DB, partition string) ([]byte, error) {
	lower, upper := bounds(store.Range{Table: store.Journal, Partition: partition})
	i, err := db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, err
	}
	last := lower
	if i.Last() {
		last = bytes.Clone(i.Key())
	}
	return last, i.Close() // which returns the iterator's errors too
}
