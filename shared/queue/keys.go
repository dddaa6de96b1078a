package queue

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// The items of the table work:
//
//	task/GROUP        UUID          the task
//	payload/UUID      -             a payload too large to travel with the task
//	log/UUID          SEQUENCE      lines of its log
//	ready/LINE        RANK          entry of a task that may start; the index of a line
//	due               TIME UUID     entry of a task that waits for a time
//	held/HOLD         ORDER         entry of a task that a rule or a limit holds
//	history/GROUP     TIME UUID     entry of a finished task of a topic
//	lease/SHARD       TOKEN         the right to run a task
//	permit/LIMIT      NUMBER        a slot of a limit, taken by a lease; see package limit
//	unique/HASH       -             which task holds a unique key
//	once/HASH         -             the result of the request with an idempotency key
//	rules             PATH          pause and block, which queues are suspended, and for which instances tasks are kept
//	lines, holds      NAME          which lines and holds there may be
//	orders            QUEUE         counts the starts of an ordered queue
//	turn/QUEUE        KEY           sequencer: a fairness key's next turn; see store.Passing
//	turns             QUEUE         sequencer: its floor is the queue's virtual time
const (
	partitionDue   = "due"
	partitionRules = "rules"
	partitionLines = "lines"
	partitionHolds = "holds"
	only           = "-" // the sort key of a partition with one item
)

func work(partition, sort string) store.Key {
	return store.Key{Table: store.Work, Partition: partition, Sort: sort}
}

func taskKey(uuid string) store.Key {
	return work(groupPartition(task.ID(uuid).Group()), uuid)
}

func groupPartition(hash uint32) string { return "task/" + hexadecimal(uint64(hash), 8) }

func payloadKey(uuid string) store.Key { return work("payload/"+uuid, only) }

func readyPartition(l line) string { return "ready/" + store.Fit(l.String()) }

func dueKey(at int64, uuid string) store.Key { return work(partitionDue, stamp(at)+uuid) }

func heldPartition(hold string) string { return "held/" + store.Fit(hold) }

func leaseKey(token string) store.Key { return work(leasePartition(token[len(token)-1:]), token) }

func leasePartition(shard string) string { return "lease/" + shard }

// leaseShards holds the last characters that a token may have; leases are spread over partitions by them.
const leaseShards = "0123456789abcdef"

func uniqueKey(job, key string) store.Key { return work("unique/"+digest(job, key), only) }

func onceKey(once *Once) store.Key { return work("once/"+digest(once.Scope, once.Key), only) }

func ruleKey(path string) store.Key { return work(partitionRules, store.Fit(path)) }

func logPartition(uuid string) string { return "log/" + uuid }

func orderKey(queue string) store.Key { return work("orders", store.Fit(queue)) }

// turnKey returns the key of a sequencer that the store forgets when it was not used for [store.PassingFor].
func turnKey(queue, turn string) store.Key {
	return work(store.Passing+store.Fit(queue), store.Fit(turn))
}

func turnsKey(queue string) store.Key { return work("turns", store.Fit(queue)) }

// digest returns a hash of a pair of texts of any content.
func digest(a, b string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(a), a, b))
	return hex.EncodeToString(sum[:])
}

// stampLen is how many characters a time has in a key.
const stampLen = 14

// stamp returns a time in microseconds, or a virtual time, as a text; the texts sort as the numbers do.
func stamp(n int64) string { return hexadecimal(uint64(max(n, 0)), stampLen) }

// unstamp returns the time that a sort key or a rank begins with; 0 if it begins with none.
func unstamp(text string) int64 {
	n, _ := strconv.ParseInt(text[:min(stampLen, len(text))], 16, 64)
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
