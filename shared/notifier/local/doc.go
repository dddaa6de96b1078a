// Package local is a notifier within one process: a caller of Receive is woken at once, and nothing is lost before
// Close, except notifications beyond 4096 for one queue.
//
// Its memory does not grow with the number of notifications. Due ones are one number per queue; those for later are one
// entry per queue and 20 ms. One timer serves all of them.
//
// The package imports notifier and the standard library.
package local
