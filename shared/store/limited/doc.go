// Package limited holds a store to DynamoDB's limits on throughput, so that tests throttle what a table would throttle.
//
// Each partition key gives 1,000 write units and 3,000 read units a second, each table 4,000 and 12,000, as one that is new
// and on demand does ("DynamoDB throughput capacity" and "Burst capacity", Amazon DynamoDB Developer Guide). What is not used is
// saved for a while. A request that finds too little left is throttled: a Write returns ErrBusy at once, as package dynamo
// sends it once, and other calls after five tries. A unit is priced as in package meter. Calls take time, all of it by package
// time, so that under testing/synctest it is virtual.
//
// It leaves out, on purpose: adaptive capacity and the splitting of partitions (several partition keys never share limits
// here, and none gets more than its own); the growth of tables on demand beyond twice their peak; a partition's burst of up to
// five minutes, of which there is one second; conflicts between transactions, and their second phase; responses that leave part
// of a batch unprocessed; time-to-live; the cost of failed conditions beyond that of the write itself. For lost, late and
// doubled messages there is package faulty.
//
// The package imports store, meter and the standard library.
package limited
