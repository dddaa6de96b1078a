// Package memory is a store in the memory of one process: the port's contract in as few lines as it takes.
//
// It keeps nothing: what is written is gone with the process. Tests compare the other backends with it, and the simulator runs
// on it. The product never opens it.
//
// The package imports store and the standard library.
package memory
