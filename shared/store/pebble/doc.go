// Package pebble keeps the storage port in an embedded ordered store, for one process.
//
// Writers share commits: while one group is on its way to the disk, the next gathers; the committer checks everybody's
// conditions and commits one batch with one sync. Readers use a snapshot that is published after the sync, so that nobody sees what could still
// be lost.
//
//	open.go       opening and closing, Pebble's options
//	directory.go  whose a directory is
//	layout.go     keys and values as bytes
//	queue.go      writers wait, the committer works
//	commit.go     what a group checks and changes
//	sequence.go   sequencers, which live in memory and ride on commits
//	read.go       Get and Query on the published snapshot
//	failure.go    a disk that is full or broken
//	watch.go      errors that Pebble would not survive
//
// It imports store and Pebble, and is the only package that does the latter; no function for Lambda links it.
package pebble
