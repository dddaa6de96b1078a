// Package faulty puts bad luck in front of any bell: rings are lost, doubled, late and out of order, and a call may fail
// though all was rung. All of it keeps the port's contract, and what becomes of a ring depends on nothing but the seed, its
// queue and how many rings of that queue came before. So a run whose callers are deterministic is the same each time.
//
// The package imports bell and the standard library.
package faulty
