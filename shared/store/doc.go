// Package store is the port between Millrace and whatever keeps its data.
//
// The port is small on purpose: strongly consistent reads of items by key, ordered reads of one partition, conditional
// writes that apply as a whole or not at all, and a sequencer that hands out dense positions and rising ids. It is
// written for DynamoDB's strengths and is natural on an ordered key-value store. Everything above it, the whole of
// Millrace, is written once.
//
// Backends live below this package: pebble (one process, embedded), dynamo (DynamoDB and stores that speak its API), memory
// (the reference, for tests), remote (another process's store, for tests).
// Wrappers: faulty (faults from a random seed), meter (DynamoDB's price of each call), limited (DynamoDB's throughput), tally
// (counts of calls). Whatever uses a Store puts a [Checked] before it, which refuses what breaks a limit. Every backend and every wrapper passes the suite in storetest, in which each sentence of the contract below
// is a case of that name. The backends that keep data are [Portable] besides, so that a deployment can move from one to another.
//
// The package imports a library for JSON and the standard library.
package store
