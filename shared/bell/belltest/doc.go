// Package belltest is the conformance suite of the notifier port (bell): a case for each sentence of its contract, of that
// name.
//
// It imports bell, the standard library and go-cmp.
package belltest
