// Package bell is the port by which whoever makes a task ready wakes those who run tasks. The tasks themselves, and their
// order, are in the store: a ring says only that it is worth looking.
//
// Package local rings within a process, package sqs through a queue of SQS; package belltest is the conformance suite of
// both. This package imports only the standard library.
package bell
