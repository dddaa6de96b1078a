// Package exchanges serves the exchanges of instances: one request brings the results, the heartbeats and the log lines of all that an
// instance runs, keeps up its lease and those of its tasks, and gets new claims, the tasks to stop, and what became of each result.
//
// Exchanges of an instance are numbered. The record of the last one, an item for each instance, is written in the same write of the
// store as the ends and the starts of tasks that it tells of. So an exchange whose response was lost is repeated with its number, to
// whichever process, and returns the same once more. A number above it says that the response was read. Claims of a response that
// nobody has read go back when the lease is over; whether they were begun cannot be known, so they count as an attempt.
//
// The files, in reading order:
//
//	exchanges.go  Exchanges: the stages of one exchange
//	request.go    what callers pass and get
//	look.go       what it begins with, read before its turn
//	record.go     the item of the last exchange
//	entry.go      the record in the writes of an exchange
//	session.go    one exchange of an instance at a time
//	held.go       the leases that it holds
//	results.go    ends of tasks, and heartbeats
//	claims.go     claims, and waiting for them
//	linger.go     an exchange that waits for a moment before it does anything
//	rest.go       an exchange that goes on with a wait
//
// The package imports beside, groupcommit, journal, membership, queue, store, task and the standard library.
package exchanges
