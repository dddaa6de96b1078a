package journal

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/millrace/millrace/shared/store"
)

// pageSize is how many consecutive slots are read at once, beginning with a multiple of it. It is also how many share a partition,
// which is few enough for what DynamoDB allows a partition in its time.
const pageSize = 256

// A store that other processes share may allow each partition so many writes a second only, as DynamoDB does. There, consecutive runs
// of slots go to different partitions in turn, so that the writers of a moment do not meet in one; a reader asks for those of a page
// side by side. The runs are short, since slots may be large, and long enough that whoever reads the newest slots mostly asks for one
// partition.
const (
	ShortRun = 4        // slots in a row that share a partition, in stores whose partitions bear only so much
	LongRun  = 32       // in those that began before 0.3.0
	PageRun  = pageSize // in those whose partitions bear whatever the store does: a page is read at once

	sharedSpread = 16 // partitions that take turns
)

// positionDigits is how many digits a position has in a sort key: 2^53 has 16.
const positionDigits = 16

// keys builds the keys of one journal's items.
type keys struct {
	name   string
	head   store.Key                  // of the sequencer
	run    int64                      // so many consecutive slots go to one partition,
	spread int64                      // and their runs to so many partitions in turn
	block  atomic.Pointer[partitions] // those used last, since appends come in runs
}

// partitions are those of a block, which is all slots that share them.
type partitions struct {
	block int64
	names []string
}

// lay sets the layout. In a store of one process a page is a partition, so that it is read at once.
func (k *keys) lay(exclusive bool, run int64) {
	k.run, k.spread = run, sharedSpread
	if exclusive {
		k.run, k.spread = pageSize, 1
	}
}

func pageOf(position int64) int64 { return position / pageSize }

// lastOfPage returns the last position of the page that holds position.
func lastOfPage(position int64) int64 { return (pageOf(position)+1)*pageSize - 1 }

// of sets the name of the journal.
func (k *keys) of(name string) {
	k.name, k.head = name, store.Key{Table: store.Journal, Partition: "H#" + name, Sort: "0"}
}

// sequencer is the key of the journal's sequencer.
func (k *keys) sequencer() store.Key { return k.head }

// lastOfRun returns the last position of the run that holds position.
func (k *keys) lastOfRun(position int64) int64 { return (position/k.run+1)*k.run - 1 }

// partition names the one that holds position.
func (k *keys) partition(position int64) string {
	return k.partitions(position / (k.spread * pageSize))[position/k.run%k.spread]
}

// partitions names those of a block.
func (k *keys) partitions(block int64) []string {
	if p := k.block.Load(); p != nil && p.block == block {
		return p.names
	}
	p := &partitions{block: block, names: make([]string, k.spread)}
	for n := range p.names {
		p.names[n] = k.named(block, int64(n))
	}
	k.block.Store(p)
	return p.names
}

// slotsPrefix begins the names of the partitions of slots.
const slotsPrefix = "J#"

// named names one of a block.
func (k *keys) named(block, n int64) string {
	name := fmt.Sprintf(slotsPrefix+"%s#%013d", k.name, block)
	if k.spread > 1 {
		name += fmt.Sprintf("#%02d", n)
	}
	return name
}

// slot is the key of the slot at position.
func (k *keys) slot(position int64) store.Key {
	return store.Key{Table: store.Journal, Partition: k.partition(position), Sort: positionSort(position)}
}

// part is the key of a slot's n-th further item, n ≥ 1. It sorts right behind its slot.
func (k *keys) part(position int64, n int) store.Key {
	key := k.slot(position)
	key.Sort += fmt.Sprintf(".%02d", n)
	return key
}

// once is the key of an idempotency item.
func (k *keys) once(digest string) store.Key {
	return store.Key{Table: store.Journal, Partition: "I#" + k.name + "#" + digest, Sort: "0"}
}

// generations is the partition of the manifest and of the entries of all layers.
func (k *keys) generations() string { return "G#" + k.name }

// chunks begins the names of the partitions of a layer's chunks.
func (k *keys) chunks(id string) string { return "G#" + k.name + "#" + id }

// upkeep is the key of the removal's state, which sweeps hand on.
func (k *keys) upkeep() store.Key {
	return store.Key{Table: store.Journal, Partition: "U#" + k.name, Sort: "0"}
}

func positionSort(position int64) string {
	var memory [2 * positionDigits]byte
	digits := strconv.AppendInt(append(memory[:0], zeros...), position, 10)
	return string(digits[min(len(digits)-positionDigits, positionDigits):])
}

var zeros = strings.Repeat("0", positionDigits)

// positionOf reads a Sort made by slot or part.
func positionOf(sort string) (position int64, isPart bool, err error) {
	digits, _, isPart := strings.Cut(sort, ".")
	position, err = strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("journal: no position in sort key %q", sort)
	}
	return position, isPart, nil
}

// Moved returns the key under which a store that begins keeps an item of the table journal that another store keeps under key: slots lie
// in other partitions where one process has the store to itself than where several share it, in which run of them share one.
func Moved(key store.Key, exclusive bool, run int64) (store.Key, error) {
	name, slots := strings.CutPrefix(key.Partition, slotsPrefix)
	if key.Table != store.Journal || !slots {
		return key, nil
	}
	if n := len(name) - len("#00"); n > 0 && name[n] == '#' {
		name = name[:n]
	}
	n := len(name) - len("#0000000000000")
	if n < 1 || name[n] != '#' {
		return key, fmt.Errorf("%w: no block in the partition %q", ErrDamaged, key.Partition)
	}
	position, _, err := positionOf(key.Sort)
	if err != nil {
		return key, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	k := keys{name: name[:n]}
	k.lay(exclusive, run)
	key.Partition = k.named(position/(k.spread*pageSize), position/k.run%k.spread)
	return key, nil
}
