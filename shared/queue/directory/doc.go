// Package directory holds the names of the lines (ready indexes) in which tasks wait. Who adds a task to a line registers it before; a
// line that has been empty for long is forgotten, so that claims and sweeps read the lines in which tasks wait now.
//
//	directory.go  Directory: registering lines, and reading them
//	forget.go     forgetting empty lines
//
// The package imports definition, lock, queue/layout, store and the standard library.
package directory
