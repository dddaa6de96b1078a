// Package transfer copies everything from one store to another, for moving a deployment that is stopped: journal and sequencers, tasks
// and leases, streams, orders, definitions, tokens and expiry times. A server that starts on the copy goes on where those on the first
// store have ended, with the same EventIds.
//
// The copy is marked as incomplete until everything is there and was verified, so that no program starts on a part of it.
//
//	transfer.go  Copy: what is demanded of both stores, the copy, and its verification
//	load.go      records in batches, several on their way at once
//	sum.go       what tells whether two stores hold the same
//
// The package imports journal, queue/layout, store, upgrade and the standard library.
package transfer
