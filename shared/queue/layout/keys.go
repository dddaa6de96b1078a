package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// The items of the table work:
//
//	task/GROUP        UUID          the task, and its lease while it runs; of those whose id says so in task/GROUP/PART, see parts.go
//	payload/UUID      -             a payload too large to travel with the task
//	log/UUID          SEQUENCE      lines of its log
//	ready/LINE        RANK          entry of a task that may start; the index of a line
//	ready.PART/LINE   RANK          the same, where the line lies in several parts, as the item ready/LINE ! says
//	due               TIME UUID     entry of a task that waits for a time
//	held/HOLD         ORDER         entry of a task that a rule or a limit holds
//	history/GROUP     TIME UUID     entry of a finished task of a topic
//	lease/SHARD       TOKEN         a lease that was changed since it was given
//	permit/LIMIT      NUMBER        a slot of a limit, taken by a lease; see package limit
//	unique/HASH       -             which task holds a unique key
//	once/HASH         -             the result of the request with an idempotency key
//	rules             PATH          pause and block, which queues are suspended, and for which instances tasks are kept
//	lines, holds      NAME          which lines and holds there may be
//	spread            GROUP         which groups have tasks in task/GROUP/PART
//	orders            QUEUE         counts the starts of an ordered queue
//	turn/QUEUE        KEY           sequencer: a fairness key's next turn; see store.Passing
//	turns             QUEUE         sequencer: its floor is the queue's virtual time
const (
	PartitionDue    = "due"
	PartitionRules  = "rules"
	PartitionLines  = "lines"
	PartitionHolds  = "holds"
	partitionSpread = "spread"
	only            = "-" // the sort key of a partition with one item
)

// Key returns a key of the table work.
func Key(partition, sort string) store.Key {
	return store.Key{Table: store.Work, Partition: partition, Sort: sort}
}

// TaskKey returns the key of a task's item.
func TaskKey(uuid string) store.Key {
	return Key(partition(task.ID(uuid)), uuid)
}

// GroupPartition returns the partition of the tasks of groups with that hash.
func GroupPartition(hash uint32) string { return "task/" + hexadecimal(uint64(hash), 8) }

// PayloadKey returns the key of a payload that is kept apart from its task.
func PayloadKey(uuid string) store.Key { return Key("payload/"+uuid, only) }

// ReadyPartition returns the partition of a ready index.
func ReadyPartition(l Line) string { return "ready/" + store.Fit(l.String()) }

// DueKey returns the key of the entry of a task that waits for a time, in microseconds since 1970.
func DueKey(at int64, uuid string) store.Key { return Key(PartitionDue, Stamp(at)+uuid) }

// HeldPartition returns the partition of the entries that a hold keeps.
func HeldPartition(hold string) string { return "held/" + store.Fit(hold) }

// LeaseKey returns the key of a lease.
func LeaseKey(token string) store.Key { return Key(leasePartition(token[len(token)-1:]), token) }

func leasePartition(shard string) string { return "lease/" + shard }

// leaseShards holds the last characters that a token may have; leases are spread over partitions by them.
const leaseShards = "0123456789abcdef"

// UniqueKey returns the key of the item that says which task of a job holds a unique key.
func UniqueKey(job, key string) store.Key { return Key("unique/"+digest(job, key), only) }

// OnceKey returns the key of the result of the request with an idempotency key.
func OnceKey(once *journal.Idempotency) store.Key {
	return Key("once/"+digest(once.Scope, once.Key), only)
}

// RuleKey returns the key of a rule's item, see package rule.
func RuleKey(path string) store.Key { return Key(PartitionRules, store.Fit(path)) }

// LogPartition returns the partition of a task's log.
func LogPartition(uuid string) string { return "log/" + uuid }

// OrderKey returns the key of the item that counts the starts of an ordered queue.
func OrderKey(queue string) store.Key { return Key("orders", store.Fit(queue)) }

// TurnKey returns the key of a sequencer that the store forgets when it was not used for [store.PassingFor].
func TurnKey(queue, turn string) store.Key {
	return Key(store.Passing+store.Fit(queue), store.Fit(turn))
}

// TurnsKey returns the key of the sequencer that holds a queue's virtual time.
func TurnsKey(queue string) store.Key { return Key("turns", store.Fit(queue)) }

// digest returns a hash of a pair of texts of any content.
func digest(a, b string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(a), a, b))
	return hex.EncodeToString(sum[:])
}

// StampLen is how many characters a time has in a key.
const StampLen = 14

// Stamp returns a time in microseconds, or a virtual time, as a text; the texts sort as the numbers do.
func Stamp(n int64) string { return hexadecimal(uint64(max(n, 0)), StampLen) }

// Unstamp returns the time that a sort key or a rank begins with; 0 if it begins with none.
func Unstamp(text string) int64 {
	n, _ := strconv.ParseInt(text[:min(StampLen, len(text))], 16, 64)
	return n
}

// hexadecimal returns the last digits of a number, in base 16 and with leading zeros.
func hexadecimal(n uint64, digits int) string {
	var text [16]byte
	for i := digits - 1; i >= 0; i-- {
		text[i] = "0123456789abcdef"[n&15]
		n >>= 4
	}
	return string(text[:digits])
}
