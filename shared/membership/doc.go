// Package membership keeps the membership: the instances, which are processes elsewhere that claim tasks of certain jobs and
// run them. An instance is a member under a lease that its heartbeats and requests extend. Tasks have leases of their own, so
// that an instance's death costs what it was running, however long the queue is.
//
// One of the instances leads, under a term that grows with each new leader (Gray and Cheriton's leases; terms as in Raft).
//
// It imports clock, definition, journal (for the error of an unavailable store, and for idempotency keys), queue (for
// [queue.Claimer]) and store.
package membership
