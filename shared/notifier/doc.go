// Package notifier is the port of the notifier, by which processes that make tasks ready wake the workers. The tasks
// and their order are in the store: a notification says only that it is worth looking.
//
// Package local notifies within a process, package sqs through a queue of SQS, package postgres through a database, package faulty
// adds faults to a notifier for tests; package notifiertest is the conformance suite. The package imports only the standard library.
package notifier
