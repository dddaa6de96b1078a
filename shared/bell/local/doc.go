// Package local is a bell within one process: whoever waits in Receive is woken at once, and nothing is lost before
// Close, but for rings beyond the 4096 that wait for a queue already.
//
// Its memory does not grow with the number of rings. Those that wait are one number for each queue; those for a later
// time are one entry for each queue and 20 ms. One timer serves all of them.
//
// The package imports bell and the standard library.
package local
