// Package task is the unit of work: its identity, its life as a table of states and steps, and how each dialect shows it.
//
// It does no I/O, knows no clock, and imports only the standard library.
package task
