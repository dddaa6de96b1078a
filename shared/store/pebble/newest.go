package pebble

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/shared/store"
)

// newest knows the greatest key that a partition of the journal has or had. A slot is written once, under the condition that there is
// none, and nearly always above all others of its partition: so that it is not there is known without a search, which would go
// through all that was written lately. Only the committer uses it.
type newest map[string][]byte // by partition; nil: asked for once, since many a partition has one item only

// maxNewest is how many partitions are remembered; slots go to one after the other.
const maxNewest = 256

// above reports whether a key lies above all that its partition of the journal has or had.
func (n newest) above(db *pebble.DB, key []byte, of store.Key) (bool, error) {
	if of.Table != store.Journal {
		return false, nil
	}
	greatest, again := n[of.Partition]
	if !again {
		if len(n) == maxNewest {
			clear(n)
		}
		n[of.Partition] = nil
		return false, nil
	}
	if greatest == nil {
		var err error
		if greatest, err = greatestOf(db, of.Partition); err != nil {
			return false, err
		}
		n[of.Partition] = greatest
	}
	return bytes.Compare(key, greatest) > 0, nil
}

// note notes that an item is about to be written.
func (n newest) note(key []byte, of store.Key) {
	if of.Table != store.Journal {
		return
	}
	if greatest := n[of.Partition]; greatest != nil && bytes.Compare(key, greatest) > 0 {
		n[of.Partition] = append(greatest[:0], key...)
	}
}

// greatestOf reads the greatest key of a partition of the journal; the least that one could have if it has none.
func greatestOf(db *pebble.DB, partition string) ([]byte, error) {
	lower, upper := bounds(store.Range{Table: store.Journal, Partition: partition})
	i, err := db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, err
	}
	greatest := lower
	if i.Last() {
		greatest = bytes.Clone(i.Key())
	}
	return greatest, i.Close() // which returns the iterator's errors too
}
