// Package pebble keeps the storage port in an embedded ordered store, for one process.
//
// Writers share commits: the first that waits becomes the leader of its group, checks everybody's conditions, and commits
// one batch with one sync. Readers use a snapshot that is published after the sync, so that nobody sees what could still
// be lost.
//
//	open.go       opening and closing, Pebble's options
//	directory.go  whose a directory is
//	layout.go     keys and values as bytes
//	commit.go     the group commit
//	sequence.go   sequencers, which live in memory and ride on commits
//	read.go       Get and Query on the published snapshot
//	failure.go    a disk that is full or broken
//
// It imports store and Pebble, and is the only package that does the latter; no function for Lambda links it.
package pebble
