// Package postgres is a notifier over PostgreSQL's LISTEN and NOTIFY, for any number of processes: each notification reaches all of
// them, the sender's own process without a round trip.
//
// PostgreSQL keeps no notifications: those sent while a process is not connected do not reach it. So a process that has lost its
// connection connects again, and takes that as a notification for any queue. Delays are kept by the processes.
//
// A process has one connection that listens, and up to two that send. Behind a pooler in transaction mode LISTEN does not work: nothing
// arrives, and nothing says so.
//
//	notifier.go  Notifier: sending, and waiting
//	listen.go    the connection that listens
//	message.go   what is sent
//
// The package imports notifier, notifier/local and pgurl, and of others the driver for PostgreSQL.
package postgres
