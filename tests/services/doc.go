// Package services runs the function binaries as plain HTTP services, as a container platform would: each a process with a
// port, all on the same tables, the sweep started by CloudEvents.
package services
