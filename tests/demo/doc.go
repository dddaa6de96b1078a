// Command demo shows the journal at its main job, on real input: many writers emit a recorded log into an empty store while
// followers with different filters and limits read along and snapshots are taken; in the middle the server is killed with
// signal 9 and started again. Then it checks what each follower saw.
//
//	demo -millrace bin/millrace -events events/demo/packages.jsonl
//
// A second part runs tasks: commands that do something on this machine, started by their priorities, one that fails, one that is
// tried again, and events of a handler that is paused.
//
// A third part starts orders for files: a chain compresses and checks them, while the server is killed once more, one step is set
// back until it passes, and one order is repaired by hand.
//
// It ends with status 1 if anything was missed, doubled, out of order or different.
package main
