// Package definition is what operators declare: sources, handlers, jobs, queues, schedules and job chains. It reads them
// strictly, compares two sets, and keeps the one that is in force in the store, with its version.
//
// It imports cron, document, event, journal and store.
package definition
