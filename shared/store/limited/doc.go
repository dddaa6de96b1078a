// Package limited holds a store to DynamoDB's published limits, so that tests and benchmarks have what a table would give: its
// throughput, its latency and its conflicts.
//
// Each partition key gives 1,000 write units and 3,000 read units a second, each table 4,000 and 12,000, as one that is new
// and on demand does ("DynamoDB throughput capacity" and "Burst capacity", Amazon DynamoDB Developer Guide). What is not used is
// saved for a while. A request that finds too little left is throttled: a Write returns ErrBusy at once, as package dynamo
// sends it once, and other calls after five tries. A unit is priced as in package meter.
//
// A transaction holds its items from when it has arrived until it is applied. Another transaction on one of them, or a single
// put or deletion of one, is refused meanwhile, with ErrBusy. A single operation happens at one moment and holds nothing.
//
// Calls take time, all of it by package time, so that under testing/synctest it is virtual. The time of a call is drawn from a
// log-normal distribution by its median and its tail, from a seed; without a tail it is always the median.
//
//	limited.go  the limits, and the calls that read or take tickets
//	write.go    writes: units, and conflicts between transactions
//	bucket.go   the units that a partition or a table has left
//	latency.go  how long a call takes
//	usage.go    what was used, and what was turned away
//
// It leaves out, on purpose: adaptive capacity and the splitting of partitions (several partition keys never share limits
// here, and none gets more than its own); the growth of tables on demand beyond twice their peak; a partition's burst of up to
// five minutes, of which there is one second unless the limits say more, for a key that is new too unless they are Cold; responses that leave part of a batch unprocessed; the
// time that large responses take; reads that are eventual and late; tickets that take a second request; time-to-live. Sizes of
// items and requests are bounded by package store, and pages of queries by package memory. For lost, late and doubled messages
// there is package faulty.
//
// The package imports store, meter and the standard library.
package limited
