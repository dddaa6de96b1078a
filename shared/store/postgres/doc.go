// Package postgres keeps the storage port in PostgreSQL 15 or newer, for any number of processes.
//
// All items are in one table, the sequencers in another. A Write is one call of a function in the database, so that it costs one round
// trip and one commit, however many items it has, also with the ticket that it takes itself; it takes its rows in the order of their keys, so
// that two of them seldom wait for each other. A reservation is another round trip and commit; those of concurrent callers share their waits
// for the disk. Reads that are asked for at one moment share a round trip.
//
//	store.go     Store: opening, closing, the date
//	tables.go    making the tables, and asking whether they are there
//	tables.sql   the tables
//	functions.sql the functions that write
//	read.go      Get and Query
//	reads.go     several of them in one round trip
//	write.go     Write and Remove
//	sequence.go  sequencers
//	outbox.go    delivering what other programs' transactions ask for
//	portable.go  reading and loading everything, for moving to another store
//	expire.go    removing what has expired
//	vacuum.go    vacuuming more often than autovacuum does
//	footprint.go what the tables take
//	failure.go   PostgreSQL's errors as the port's
//
// The package imports pgurl and store, and of others the driver for PostgreSQL.
package postgres
