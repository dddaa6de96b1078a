// Package fileorder starts an order for each file of a directory, or object of S3, and puts it away at the order's end.
//
// A file counts if it is a regular one whose name matches the pattern. Symbolic links do not count, so that nothing outside of the
// directory is read, nor do names that begin with a dot, unless the pattern does so too. It is steady when its size and its time of
// change have been the same for as long as the file order says, counted from when this process saw it first. Steady files start
// orders, those that changed longest ago first. The order's id is the file's path: the order that is there keeps the file from
// starting a second one.
//
// An order of a file does not finish by the write that brings it to its end, which lets it wait there. Then
//
//  1. the file's size and time of change are marked in the order's item,
//  2. the file is moved or removed, and the directories are flushed to the disk,
//  3. the order finishes.
//
// Whoever dies in between is followed by another process, or by the next one: it finds the order that waits, compares the file at the
// path with the mark, and goes on with step 2 if it is the same. Another file, or none, tells that step 2 is done: the order
// finishes, and the other file starts its own. So no file is lost, and none starts two orders. A file that has gone by itself lets its
// order finish too. Where the file cannot be moved or removed, the order is blacklisted. To resume it is to try again, and to finish
// whatever comes of that; a file that is still there afterwards starts a new order.
//
// A file that is replaced while its order is under way belongs to that order: it is put away at the end as it is then. A file that
// another one in the directory for what is done replaces is lost, as with mv. A directory is for one server to look at.
//
// Objects of S3 start orders by their notifications, and are put away by the same steps, if their file order says how: whether an object
// is the marked one, S3 finds out in the request that copies or removes it, so any number of processes may do that. A notification
// that comes while the object before is put away is to be delivered again.
//
// The files, in reading order:
//
//	watcher.go  Options, Open, Run, Pass
//	scan.go     looking for files that are steady, and starting their orders
//	putaway.go  putting away the files of orders at their ends
//	move.go     moving a file, also to another file system
//	bucket.go   starting orders for objects of S3
//	objects.go  putting away objects of S3
//
// Package s3 in it is the client of S3. It imports definition, journal and order.
package fileorder
