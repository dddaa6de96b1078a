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
//	streams            STREAM          that there is this stream
//	stream/STREAM      -               its head
//	stream-names/N     NAME            the last sequence of an event name
//	stream-order/N     LAST PLACE      which events have the places up to this one
//	stream/N/NAME      LAST SEQUENCE   events with the sequences up to this one
//	offsets/N          CONSUMER NAME   a consumer's offset
//	append/HASH        -               what an idempotency key was answered
//
// No two names meet: a name is the whole rest of its key, as it is, after parts of fixed length. Where a sort key would be
// too long, it holds the name's hash under a mark of its own.
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

// offsetSort begins with the consumer, so that what one consumer has is a range.
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

// ordinal answers a place or a sequence so that texts sort as numbers do.
func ordinal(n int64) string { return fmt.Sprintf("%014x", n) }

// head is what is known of a stream as a whole.
type head struct {
	Number   number `json:"n"`
	Producer UUID   `json:"p"`
	Last     int64  `json:"l"` // the place of its last event, and so how many it has
}

// named is what is known of an event name in a stream.
type named struct {
	Last int64 `json:"l"` // its last sequence
}

// offset is how far a consumer is with an event name.
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
