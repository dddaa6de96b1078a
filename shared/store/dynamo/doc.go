// Package dynamo keeps the data of the storage port in DynamoDB, or in a store that speaks its API, such as DynamoDB
// Local and LocalStack, on both of which its tests run. ScyllaDB Alternator has no TransactWriteItems
// (scylladb/scylladb#5064): there, tickets, reads and writes of one operation work, and writes of several are refused with
// an error that names what the server does not have.
//
// There are three tables, PREFIX-journal, PREFIX-work and PREFIX-definitions, with the key attributes pk and sk, on
// demand, with x as their time-to-live attribute; package layout has the attributes of their items. There is no index.
//
// One file per kind of request:
//
//	get.go          GetItem, BatchGetItem
//	query.go        Query
//	write.go        PutItem, DeleteItem: writes of one operation
//	transaction.go  TransactWriteItems: writes of several
//	reserve.go      UpdateItem: tickets
//	sequence.go     GetItem, UpdateItem: the state and the floor of a sequencer
//	remove.go       Query, BatchWriteItem
//	portable.go     Scan, BatchWriteItem: reading and loading everything, for moving to another store
//	ping.go         GetItem: whether the tables can be reached, and the server's date
//	tables.go       CreateTable, DescribeTable, UpdateTimeToLive, DescribeTimeToLive: development and tests only
//
// And besides:
//
//	store.go      options, opening and closing
//	item.go       items as attributes
//	hints.go      a guess of the right request for a ticket
//	departure.go  whether and when a request left the process
//	backoff.go    attempts and pauses
//	failure.go    errors as those of the port
//
// Who repeats what: reads, Reserve, Raise and Remove are harmless when doubled, and the SDK repeats them. A call sends its
// Write once, because it must not leave after its NotAfter and because only the caller knows whether it is still wanted.
// By its token, a Write that arrives twice is still applied once.
//
// Prices below are in DynamoDB's capacity units: WCU, for 1 KB written; RCU, for 4 KB read with strong consistency,
// half of it otherwise. Package meter computes them.
//
// The package imports layout, store, awsenv and the AWS SDK; not the SDK's config module, which would add 2 MB to each function
// binary for ways of signing in that a function does not use.
package dynamo
