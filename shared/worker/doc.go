// Package worker runs claimed tasks on their targets: Go functions, HTTP addresses, commands and Lambda functions.
//
// A [Runner] runs one lease: it keeps the lease alive, ends the attempt when a stop is asked for or at its timeout, writes
// its log to the engine, and completes it. A [Pool] claims tasks for a number of workers and runs them. A panic, a kill of
// the process and a store that cannot be reached cost an attempt at most; they never lose a task.
//
// It imports access (for the signing secret), notifier, definition, event (for limits of JSON and times), queue, queue/tasklog, task, and the library of Standard
// Webhooks. The Lambda target is a package of its own, so that only programs that use it link the client of AWS.
package worker
