// Package clock checks whether this process's clock may be used for decisions about others. Ticks of schedules, ends of
// leases and due tasks depend on time, for all processes of a deployment: one whose clock is some minutes ahead would skip
// the ticks in between as missed, and end the leases of others. Before such a decision a process asks a [Watch], which
// compares the clock with the store's date, and refuses if they differ by more than [Tolerance]. Work on the process's own
// tasks continues, with the store's time.
//
// If one process has the store to itself, there is no other clock, but its clock can jump: then leases are not taken as
// expired before their holders have had time to extend them.
//
// It imports store.
package clock
