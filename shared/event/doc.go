// Package event says what an event is: its EventId, its key, its type in the hierarchy of seed 000, its JSON, and the
// path queries and durations by which clients ask for it.
//
// It does no I/O and knows no store; it imports the standard library and a JSON tokenizer.
package event
