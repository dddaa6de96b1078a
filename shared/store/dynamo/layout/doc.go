// Package layout defines the attributes of the storage port's items in DynamoDB tables, and counts the bytes they take there.
//
// It is shared by the backend, which writes them, and the cost meter, which prices them, so that the two cannot
// disagree. It does no I/O. It imports store and the standard library.
package layout
