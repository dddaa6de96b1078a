// Package event says what an event is: its EventId, its key, its type in the hierarchy of seed 000, and its JSON; and how
// clients speak of events: emissions, selections of types, path queries, durations, and the answers to followers.
//
// Its parsers are strict where a client's request is read, and say where and why they refuse ([Error]); they are lenient
// where a server's answer is read. Rendering appends to the caller's buffer, and neither rendering nor matching allocates.
//
// It does no I/O and knows no store; it imports the standard library and a JSON tokenizer.
package event
