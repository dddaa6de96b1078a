// Package faulty puts a bad network and a busy service in front of any store.
//
// Requests and responses take time, get lost, arrive late (also long after the caller has given up) and arrive twice;
// the service throttles, refuses requests that were signed too long ago, shows old versions to eventual reads, and
// makes the items of one Write visible one after another; the caller's process freezes and crashes, at any call, with
// its requests still under way. Everything is drawn from a random seed, and all of it keeps the port's contract: an error
// means what errors.go says.
//
// A [Service] is the server; each [Store] that it returns is one process's connection to it, with its own random numbers. All
// waiting is done by package time, so that under testing/synctest it is virtual. What happens to a request depends
// on the seed, the process's name, the method, the key and how often that was called before, and on nothing else: a
// run whose callers are deterministic is the same run each time (except with [Faults.InTurn]).
//
// The package imports store and the standard library.
package faulty
