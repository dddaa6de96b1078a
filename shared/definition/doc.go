// Package definition is what operators declare: sources, handlers, jobs, queues, schedules and job chains. It reads them
// strictly, compares two sets, and keeps the one that is in force in the store, with its version.
//
// It imports event, journal, store and task; only its reader of YAML imports anything else.
package definition
