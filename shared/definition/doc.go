// Package definition is the catalog of what operators declare: sources, handlers, jobs, queues, schedules and job chains.
// It parses sets of definitions strictly, compares two sets, and keeps the set in force in the store, with its version.
//
// It imports access, cron, strict, event, event/typed, journal and store.
package definition
