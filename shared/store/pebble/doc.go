// Package pebble keeps the storage port in an embedded ordered store, for one process.
//
// Writers share commits: while one group is on its way to the disk, the next gathers; the committer checks the conditions of
// all its writes and commits one batch with one sync. Readers use a snapshot that is published after the sync, so that nobody
// sees what could still be lost.
//
//	open.go       opening and closing, Pebble's options
//	directory.go  the file that marks a directory as Millrace's
//	room.go       too little space: whether to open, pauses between tables
//	layout.go     keys and values as bytes
//	queue.go      writers wait, the committer works
//	commit.go     what a group checks and changes
//	sequence.go   sequencers, which live in memory and are stored with the next commit
//	read.go       Get and Query on the published snapshot
//	recent.go     items that were written or read lately, in memory
//	newest.go     the greatest keys of the journal's partitions, in memory
//	portable.go   reading and loading everything, for moving to another store
//	expire.go     removal of expired items and idle sequencers
//	failure.go    a disk that is full or broken
//	watch.go      errors of the log's files, on which Pebble would end the process
//
// It imports store and Pebble, and is the only package that does the latter; no function for Lambda links it.
package pebble
