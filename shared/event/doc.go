// Package event defines events: EventId, key, type in a hierarchy of types (as in JobScheduler's event API), and JSON; and
// how clients speak of them: emissions, selections of types, path queries, durations, and the responses to followers.
//
// Its parsers are strict where a client's request is read, and say where and why they refuse ([Error]); they are lenient
// where a server's response is read. Rendering appends to the caller's buffer, and neither rendering nor matching
// allocates.
//
// It does no I/O and knows no store. It imports the standard library and a JSON tokenizer.
package event
