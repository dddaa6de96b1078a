// Package process runs millrace as it is run in earnest: as a process of its own, which can be stopped and killed.
package process
