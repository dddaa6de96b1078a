// Package remote lets several processes use one store: a process that owns it serves it, the others reach it over the network.
//
// It is for tests that need several real processes on one store without a database, each of which can be killed by itself; it
// has no authentication and no encryption. A broken connection has the effects of a real network: a Write whose response does
// not come has an unknown outcome.
//
// The package imports store and the standard library.
package remote
