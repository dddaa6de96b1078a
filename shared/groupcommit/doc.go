// Package groupcommit lets concurrent callers share writes, which is known as group commit (DeWitt et al., SIGMOD 1984): what is
// asked for while a write is under way waits, and goes into the next one. So many callers cost few writes, and a caller that is
// alone does not wait for company.
//
//	group.go  Group: who waits, who writes, and what goes into one write
//	keyed.go  Keyed: a group for each key
//	pacer.go  Pacer: whether one more write is worth a ticket of the sequencer that all processes share
//
// The package imports beside, rate and the standard library.
package groupcommit
