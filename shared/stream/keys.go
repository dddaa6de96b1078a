package stream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
)

// Where things lie in the table work; N is the number of a stream:
//
//	streams            STREAM          marks that the stream exists
//	stream/=STREAM     -               its head
//	stream-names/N     NAME            the last sequence of an event name
//	stream-order/N     LAST PLACE      which events have the places up to this one
//	stream/N/NAME      LAST SEQUENCE   events with the sequences up to this one
//	offsets/N          CONSUMER=NAME   a consumer's offset
//	append/HASH        -               the receipt of an idempotency key
//
// Keys of different names differ: a name is the rest of its key, unchanged, after parts of fixed length. Where the sort key
// of an offset would be too long, it holds the name's hash behind "#" in place of "=".
const (
	partitionStreams = "streams"
	only             = "-"
	maxPlace         = 1 << 53 // exact in JavaScript, like EventIds
)

func work(partition, sort string) store.Key {
	return store.Key{Table: store.Work, Partition: partition, Sort: sort}
}

func headKey(stream string) store.Key { return work("stream/="+stream, only) }

func (n number) String() string { return fmt.Sprintf("%015x", uint64(n)) }

func namesPartition(n number) string { return "stream-names/" + n.String() }

func orderPartition(n number) string { return "stream-order/" + n.String() }

func runPartition(n number, name string) string { return "stream/" + n.String() + "/" + name }

func offsetPartition(n number) string { return "offsets/" + n.String() }

// offsetSort returns the sort key of an offset. It begins with the consumer, so that the offsets of one consumer are a range.
func offsetSort(consumer UUID, name string) string {
	const most = store.MaxSort - 64
	if len(name) <= most {
		return offsetPrefix(consumer) + "=" + name
	}
	sum := sha256.Sum256([]byte(name))
	return offsetPrefix(consumer) + "#" + hex.EncodeToString(sum[:])
}

func offsetPrefix(consumer UUID) string { return hex.EncodeToString(consumer[:]) }

func onceKey(once *journal.Idempotency) store.Key {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(once.Scope), once.Scope, once.Key))
	return work("append/"+hex.EncodeToString(sum[:]), only)
}

// ordinal returns a place or a sequence as a text that sorts as the number does.
func ordinal(n int64) string { return fmt.Sprintf("%014x", n) }

// head is the item of a stream as a whole.
type head struct {
	Number   number `json:"n"`
	Producer UUID   `json:"p"`
	Last     int64  `json:"l"` // the place of its last event, which is how many it has
}

// named is the item of an event name in a stream.
type named struct {
	Last int64 `json:"l"` // its last sequence
}

// offset is the item of a consumer's offset of an event name.
type offset struct {
	Consumer UUID      `json:"c"`
	Name     string    `json:"n"`
	Offset   int64     `json:"o"` // the last sequence acknowledged
	Moved    time.Time `json:"t"`
}

func encode(value any) []byte {
	text, err := store.Encode(value)
	if err != nil {
		panic(err) // a struct of this package
	}
	return text
}

func decode(item *store.Item, into any) error {
	if err := json.Unmarshal(item.Value, into); err != nil {
		kind, _, _ := strings.Cut(item.Key.Partition, "/")
		return fmt.Errorf("%w: %s: %w", journal.ErrDamaged, kind, err)
	}
	return nil
}
