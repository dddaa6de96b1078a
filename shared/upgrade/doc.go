// Package upgrade knows the version of the layout in which everything is stored: the keys and the bytes of slots, generations, tasks,
// entries and whatever else is in the tables. The store says which one it has, in one item, and a program that reads another refuses
// to start.
//
//	upgrade.go   the version, and the check at the start of every process
//	copy.go      the mark of a copy that is not complete, on which no process starts
//
// A change of the layout that an older program would read wrongly, or that finds older items where it does not expect them, takes the
// next number, and adds to Check what makes the layout before it the new one, or refuses it. tests/layouts keeps data of each layout
// that was released, and demands that programs open it.
//
// The package imports journal and store.
package upgrade
