// Package worker runs claimed tasks on their targets: Go functions, HTTP addresses, commands and Lambda functions.
//
// A [Runner] runs one lease: it keeps the lease alive, hears of requests to stop, ends the attempt at its timeout, carries
// its log to the engine, and says how it ended. A [Pool] claims tasks for a number of workers and runs them. A panic, a
// kill of the process and a store that cannot be reached cost an attempt at most; they never lose a task.
//
// It imports bell, definition, event (for limits of JSON), queue and task. The Lambda target is a package of its own, so that only who wants it links
// the client of AWS.
package worker
