package store

import (
	"context"
	"iter"
)

// Record is what a store keeps under one key: an item, or the state of a sequencer.
type Record struct {
	Item     Item      // of a sequencer, only the Key counts
	Sequence *Sequence // nil: it is an item
}

// Portable is a Store whose whole content can be read, and written as it is, which is what moving to another store takes. The
// backends are, wrappers and remote are not.
type Portable interface {
	Store

	// Records returns everything that the store keeps, each item and each sequencer once, in no certain order; a sequencer that was
	// never used may be among them, with the zero Sequence. It is for a store to which nobody writes: of what is written meanwhile
	// some is returned. It ends after the first error, which is [ErrLocked] where the store knows of others that use it.
	Records(ctx context.Context) iter.Seq2[*Record, error]

	// Load stores records, of [MaxLoad] different keys and [MaxWriteBytes] of values at most, as they are, in place of whatever has
	// their keys: items with their Token, Version and Expires, sequencers with their state. When it returns nil, all are durable; after
	// an error any of them may be stored. It may be repeated.
	Load(ctx context.Context, records []Record) error
}

// MaxLoad is how many records a [Portable] loads at once.
const MaxLoad = 500
