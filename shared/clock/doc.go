// Package clock says whether this process's clock may decide for others. Ticks of schedules, the ends of leases and what is due are
// decided by time, for every process of a deployment: one whose clock is some minutes ahead would give up the ticks in between as
// missed, and end everybody's leases. So whoever decides such a thing asks a [Watch] first, which compares the clock with
// the store's date, and refuses beyond a few seconds. What a process does for its own tasks goes on, by the store's time.
//
// Where one process has the store to itself there is no other clock. It can only jump: then leases are not taken for
// over before those who hold them have had the time to say that they are there.
//
// It imports store.
package clock
