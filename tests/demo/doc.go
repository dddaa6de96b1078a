// Command demo shows the journal at its main job, on real input: many writers emit a recorded log into an empty store while
// followers with different filters and limits read along and snapshots are taken; in the middle the server is killed with
// signal 9 and started again. Then it reckons up what everybody saw.
//
//	demo -millrace bin/millrace -events events/demo/packages.jsonl
//
// It ends with status 1 if anything was missed, doubled, out of order or different.
package main
