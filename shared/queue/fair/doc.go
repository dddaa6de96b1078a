// Package fair gives the tasks of a round-robin queue their turns.
//
// Fairness is decided when a task becomes ready, not when it is claimed: start-time fair queueing (Goyal, Vin, Chen 1996).
// Each fairness key has a virtual clock, which each of its tasks advances by a stride that is divided by the key's weight; a key
// that was idle begins at the queue's virtual time, the newest turn that was started. So a claim takes the least turn and costs the
// same for every type of queue, and a key's backlog delays no other key.
//
// A key's clock is a sequencer of the store: with the virtual time as now, Reserve returns max(now, last+1), which is the start
// tag of the algorithm.
//
//	turns.go  Turns: taking turns, and the queues' virtual times
//
// The package imports definition, queue/layout, store and the standard library.
package fair
