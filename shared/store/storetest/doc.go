// Package storetest is the conformance suite of the storage port: each sentence of its contract is a case of that name.
// Every backend and every wrapper runs it.
//
// The cases use partitions of their own, so that they run side by side on one store, and make few calls, so that the
// store may be across a network. The package imports store, store/memory (the reference) and test libraries.
package storetest
