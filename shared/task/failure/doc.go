// Package failure tells which failures of tasks are of one kind, by their messages.
//
// It is apart from package task, so that a function which shows no failures does not compile its expressions when it starts. It imports
// only the standard library.
package failure
