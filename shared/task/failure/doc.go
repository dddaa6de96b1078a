// Package failure tells which failures of tasks are of one kind, by their messages.
//
// It imports only the standard library.
package failure
