package journal

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/millrace/millrace/shared/store"
)

// pageSize is how many consecutive slots share a partition: few enough for the 1,000 writes per second that DynamoDB
// allows a partition, enough for a reader to get many slots with one query.
const pageSize = 256

// positionDigits is how many digits a position has in a sort key: 2^53 has 16.
const positionDigits = 16

// keys builds the keys of one journal's items.
type keys struct {
	name string
	head store.Key               // of the sequencer
	page atomic.Pointer[pageKey] // the page used last, since appends come in runs
}

type pageKey struct {
	number    int64
	partition string
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

// partition names the page that holds position.
func (k *keys) partition(position int64) string {
	number := pageOf(position)
	if p := k.page.Load(); p != nil && p.number == number {
		return p.partition
	}
	p := &pageKey{number: number, partition: fmt.Sprintf("J#%s#%013d", k.name, number)}
	k.page.Store(p)
	return p.partition
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
