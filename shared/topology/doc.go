// Package topology keeps the instances: processes elsewhere that claim tasks of certain jobs and run them. An instance is
// there for as long as it is heard of. Nothing of a task rests on it: tasks are leased one by one, so that an instance's
// death costs what it was running, however long the queue is.
//
// One of the instances leads, under a term that grows with each change (Gray and Cheriton's leases; terms as in Raft).
// What must happen under one leader only is written together with [Leadership.Fence].
//
// It imports clock, definition, journal (for the error of a store that is away), queue (for what a claim is) and store.
package topology
