// Package memory is a store in the memory of one process: the port's contract in as few lines as it takes.
//
// It keeps nothing: what is written is gone with the process. It is the oracle that the other backends are measured
// against, and the ground under the simulator. The product never opens it.
//
// The package imports store and the standard library.
package memory
