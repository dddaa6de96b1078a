// Package meter computes what the calls of a store would cost in DynamoDB.
//
// It wraps any store and adds up write and read capacity units (WCU, RCU) from the bytes of the items, by DynamoDB's
// published rules, for the requests that package dynamo would send. Emulators report consumed capacity wrongly, and real
// tables are not at hand in a test; with the meter, a cost can be a test's expectation, on any backend.
//
// The rules ("DynamoDB throughput capacity", "DynamoDB item sizes and formats" and "Capacity management for
// transactions", Amazon DynamoDB Developer Guide):
//
//   - A write costs 1 WCU for each KB, begun or whole, of the item as it was or as it becomes, whichever is larger; the
//     deletion of what is not there costs 1. In a transaction it costs double.
//   - A write whose condition fails costs what it would have cost.
//   - A strong read costs 1 RCU for each 4 KB, begun or whole, an eventual one half of it. A get is rounded up item by
//     item, a query once for each page of 1 MB. Finding nothing costs as much as 4 KB.
//
// The size of an item before it is replaced or deleted is known only to the store, so the meter reads it before such a write.
// These reads are not counted, but they are made: the meter is for tests and benchmarks, not for production.
//
// The package imports store, dynamo/layout and the standard library; not the AWS SDK.
package meter
