// Package layout says how the items of the storage port lie in DynamoDB tables, and how many bytes they take there.
//
// It is shared by the backend, which writes them, and the cost meter, which prices them, so that the two cannot
// disagree. It does no I/O; it imports only store and the standard library.
package layout
