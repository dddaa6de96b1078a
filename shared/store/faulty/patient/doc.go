// Package patient hides the faults of a store from its caller, by repeating calls where the port's contract says that this is
// safe, so that the conformance suite can run on any backend behind a bad network. It is for tests: the product decides for
// itself what to repeat.
//
// The package imports store, store/faulty and the standard library.
package patient
