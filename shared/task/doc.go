// Package task defines the unit of work: its identity, its states and the steps between them, and its words in each
// dialect (docs/dialects.md).
//
// It does no I/O and knows no clock. It imports only the standard library.
package task
