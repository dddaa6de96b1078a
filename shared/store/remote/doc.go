// Package remote lets several processes use one store: a process that owns it serves it, the others reach it over the network.
//
// It is for tests that want several real processes on one store without a database, each of which can be killed by itself; it
// knows no tokens and no encryption. What is lost with a connection is what a real network loses: a Write whose answer does
// not come has an unknown outcome.
//
// The package imports store and the standard library.
package remote
