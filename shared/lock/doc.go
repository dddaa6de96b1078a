// Package lock has locks that may be held during calls of the store.
//
//	lock.go  Mutex, and Keyed: a mutex for each name
//
// It imports the standard library.
package lock
