// Package notifiertest is the conformance suite of the notifier port: a case for each sentence of its contract, of that
// name.
//
// It imports notifier, the standard library and go-cmp.
package notifiertest
