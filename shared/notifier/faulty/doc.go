// Package faulty adds faults to any notifier, for tests: notifications are lost, doubled, late and out of order,
// and a call may fail although all were sent. All of this is within the port's contract. What happens to a notification
// depends only on the seed, its queue and the number of earlier ones of that queue, so a run with deterministic callers is
// reproducible.
//
// The package imports notifier and the standard library.
package faulty
