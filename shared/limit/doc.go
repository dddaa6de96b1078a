// Package limit gives out the slots of limits, each of which bounds how many tasks run at once: of a queue, of a concurrency key, or
// at an instance.
//
// A slot is an item. Whoever starts a task takes a slot by putting its item, under the condition that it is absent, in the write that
// starts the task, and gives it back in the write that ends the lease. So no more tasks run than there are slots, no slot is lost with a
// process, and no counter is contended. The package makes the operations; the caller writes them.
//
// A process that has the store to itself keeps in memory which slots are taken, and reserves those of starts that are being written.
// An error in that costs a write that is refused, and never a slot too many.
//
//	limits.go  Limits: which slots are taken, read or kept
//	taking.go  Taking: the free slots that a caller chooses
//	slot.go    Slot: one slot, and the operations that take it and give it back
//	set.go     Set: the taken slots of a limit
//	holders.go who holds the slots of a limit
//
// The package imports store and the standard library.
package limit
