// Package process runs millrace as in production: as a process of its own, which can be stopped and killed.
package process
