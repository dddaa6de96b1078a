package store

import (
	"context"
	"time"
)

// Table names one of the three tables. A backend may map it to a name of its own (a prefix, say).
type Table string

// The tables: journal holds slots, sequencers and snapshot generations; work holds tasks, streams and their index
// entries; definitions holds what operators declare.
const (
	Journal     Table = "journal"
	Work        Table = "work"
	Definitions Table = "definitions"
)

// Key names one item. Sort orders the items of a Partition bytewise. Both are valid UTF-8 of 1 to [MaxPartition] and [MaxSort]
// bytes.
type Key struct {
	Table     Table
	Partition string
	Sort      string
}

// Item is one stored value.
type Item struct {
	Key Key

	// Version is chosen by the writer and is at least 1. An item changed together with an append to a journal carries the
	// position of that append's slot, so that item order is journal order.
	Version int64

	// Token names the Write that put the item. It is set by the backend from [Write.Token].
	Token string

	// Value is opaque to the store, at most [MaxValue] bytes, and immutable: neither side changes it once handed over.
	Value []byte

	// Expires, if not zero, permits the backend to remove the item at any later time, or never; precision is a second. An
	// expired item may still be seen, satisfies and refuses conditions like any other, and is the reader's to filter.
	Expires time.Time
}

// Condition is what an [Op] demands of the item that its key names, at the moment the Write is applied.
type Condition struct {
	kind    conditionKind
	version int64
}

type conditionKind uint8

const (
	always conditionKind = iota
	absent
	versionIs
)

// The conditions without a parameter.
var (
	// Always holds for any item and for none.
	Always = Condition{kind: always}
	// Absent holds while no item has the key.
	Absent = Condition{kind: absent}
)

// VersionIs holds while there is an item with exactly that version.
func VersionIs(version int64) Condition { return Condition{kind: versionIs, version: version} }

// IsAlways reports whether the condition is [Always].
func (c Condition) IsAlways() bool { return c.kind == always }

// IsAbsent reports whether the condition is [Absent].
func (c Condition) IsAbsent() bool { return c.kind == absent }

// Version returns the version that a [VersionIs] condition asks for; ok is false for the other conditions.
func (c Condition) Version() (version int64, ok bool) { return c.version, c.kind == versionIs }

// Holds reports whether the condition holds for the item found, nil meaning none.
func (c Condition) Holds(found *Item) bool {
	switch c.kind {
	case absent:
		return found == nil
	case versionIs:
		return found != nil && found.Version == c.version
	default:
		return true
	}
}

// OpKind says what an [Op] does.
type OpKind uint8

// The kinds of operations.
const (
	OpPut OpKind = iota + 1
	OpDelete
	OpCheck
)

// Op is one part of a [Write]: a put, a delete, or a check that changes nothing.
type Op struct {
	Kind OpKind
	Item Item      // of a delete and a check, only the Key counts
	Cond Condition // default [Always], which a check may not have
}

// Put stores item in place of whatever has its key, if cond holds.
func Put(item Item, cond Condition) Op { return Op{Kind: OpPut, Item: item, Cond: cond} }

// Delete removes the item with that key, if cond holds. Deleting what is not there is no error under [Always].
func Delete(key Key, cond Condition) Op {
	return Op{Kind: OpDelete, Item: Item{Key: key}, Cond: cond}
}

// Check changes nothing and demands that cond holds.
func Check(key Key, cond Condition) Op { return Op{Kind: OpCheck, Item: Item{Key: key}, Cond: cond} }

// Write is a set of operations that is applied as a whole or not at all.
type Write struct {
	// Token, non-empty and unique to this Write, lets a backend tell a repeated request from another's: when the Write is
	// sent again (by the caller, or by a client library's silent retry) and an item that it puts is found carrying this
	// token, the Write has been applied, and the backend returns nil. A backend that does not learn what a failed condition
	// found (see [Failure]) cannot tell, and returns the Conflict.
	Token string

	// Ops holds 1 to [MaxOps] operations, or as many as [Store.MaxOps] says, each on a different key.
	Ops []Op

	// NotAfter, if not zero, is the last moment (on the monotonic clock) at which a request may leave this process. A
	// backend checks it immediately before each request is signed and sent, and returns [ErrTooLate] afterwards.
	NotAfter time.Time

	// Advance, if not nil, is a ticket that the Write takes itself, for a store that [Store.Advances].
	Advance *Advance
}

// Advance is a ticket that a [Write] takes at the moment it is applied, instead of one that was reserved before: what the caller supposes to
// be the next. It is taken if the sequencer stands where the caller supposes, and if the Write's conditions hold; otherwise nothing of the
// Write is applied and the position stays; after a [Conflict] the ids may be used up all the same. Position and items are there at the same
// time, for every reader: who has reserved a later position sees the items.
type Advance struct {
	Key             Key   // of the sequencer
	From            int64 // the position at which it must stand; the ticket's is the next
	FirstID, LastID int64 // the ticket's ids, the first of which must be above the sequencer's last id; at least one
}

// Limits that hold on every backend, so that what works on one works on all. Only of MaxOps some backends take more.
const (
	MaxOps        = 100       // operations in a Write
	MaxValue      = 380 << 10 // bytes of a Value: DynamoDB's 400 KB less keys and attributes
	MaxWriteBytes = 3 << 20   // bytes of all Values of a Write: DynamoDB's 4 MB less overhead
	MaxPartition  = 2048      // bytes of Key.Partition
	MaxSort       = 1024      // bytes of Key.Sort
	MaxID         = 1 << 53   // the largest id that Reserve hands out: JavaScript's exact integers
)

// Range selects items of one partition whose Sort lies in [From, To). An empty From or To leaves that end open.
type Range struct {
	Table     Table
	Partition string
	From, To  string
	Backward  bool // in falling order of Sort
	Limit     int  // at most so many items in a page; 0 means as many as the backend returns at once
	Eventual  bool // permits a result that lacks recent writes, at half the price
}

// Page is the result of a Query, in the order of the Range.
type Page struct {
	Items []Item
	// More says that the range may hold items beyond the last one here, because of Limit or of the backend's own bound.
	// The next Range goes on from the last item's Sort.
	More bool
}

// Sequence is the state of one sequencer.
type Sequence struct {
	Position int64 // the newest position handed out; 0 before the first
	LastID   int64 // the newest id handed out; 0 before the first

	// The floor: the position and last id of the newest slot that retention has evicted; 0 before the first.
	FloorPosition int64
	FloorID       int64
}

// Ticket is the result of Reserve: a position nobody else has, and ids nobody else has.
type Ticket struct {
	Sequence           // as after the reservation, so Position is the ticket's own and LastID the last of its ids
	FirstID  int64     // the first of its ids
	Sends    int       // requests that the reservation took, at least 1
	Sent     time.Time // when the first request left, on the monotonic clock: the ticket's age counts from here
}

// Store keeps items. All methods may be called concurrently. Errors are those of errors.go. A backend or a wrapper does not compare
// what it is given with the limits of this package: it is used through a [Checked].
//
// A method whose context ends returns the context's error if nothing was sent. Otherwise Write returns [ErrUnknown]; an
// Exclusive store's Write waits until it is decided, and returns its outcome.
type Store interface {
	// Get reads items by key, strongly consistent: it sees every Write acknowledged before the call. It returns one
	// element per key in the keys' order, nil where there is no item. Each item is read at one moment, different items
	// perhaps at different moments.
	Get(ctx context.Context, keys ...Key) ([]*Item, error)

	// Query reads a range of one partition in order. Unless the range is Eventual, it sees every Write acknowledged
	// before the call.
	Query(ctx context.Context, r Range) (Page, error)

	// Write applies the operations as a whole if every condition holds. When it returns nil, the Write is durable and is seen
	// by every strong read that starts afterwards; nothing of it is seen by anyone before it is durable.
	//
	// Otherwise the error is one of:
	//   - [*Conflict]: conditions failed; this request applied nothing and never will.
	//   - [*Moved]: its Advance cannot be taken; this request applied nothing and never will, nor will an earlier one with the same Token.
	//   - [ErrNoAdvance]: the store takes no Advance; this request applied nothing and never will.
	//   - [ErrBusy]: throttled or in contention; this request applied nothing and never will.
	//   - [ErrTooLate]: NotAfter has passed; this request was not sent.
	//   - [ErrUnknown]: it may have been applied, may be applied later, or never.
	//   - [ErrInvalid]: the Write breaks a limit; nothing was sent.
	//
	// All of them speak of this request only: an earlier one with the same Token whose outcome was unknown may still
	// land, so that only what the items then hold decides. Repeating a Write with its Token is always safe where
	// at least one of its puts has the condition Absent on a key that is never deleted.
	Write(ctx context.Context, w Write) error

	// Remove deletes every item of the range's partition between From and To. It is not atomic, may be repeated, and
	// ignores Backward, Limit and Eventual.
	Remove(ctx context.Context, r Range) error

	// Reserve takes the next position of the sequencer that key names and ids new ids, ids ≥ 1, in one atomic step. The
	// first id is max(now, LastID+1), now being the caller's clock in microseconds since 1970; where reservations contend,
	// a backend may take LastID+1 although now is some milliseconds ahead of it. Positions are dense from
	// 1; two tickets never share a position or an id. A reservation whose response is lost wastes a position and is
	// repeated freely. Where now is more than an hour ahead of LastID, the backend first compares it with Date and
	// returns [ErrClock] if it is more than an hour ahead of that too; ids beyond [MaxID] are refused with [ErrClock].
	//
	// A sequencer is not an item: Get and Write do not reach it. It stays for ever, unless it is [Passing]. A backend may
	// lose reservations in a crash as long as everything written since is lost with them.
	Reserve(ctx context.Context, key Key, ids int, now int64) (Ticket, error)

	// Advances reports whether a Write may have an [Advance]. It may change from true to false, and [Checked] returns [ErrNoAdvance]
	// where it may not.
	Advances() bool

	// MaxOps returns how many operations a Write may have: [MaxOps] at least. Who gathers what many ask for may go by it; what one asks
	// for must fit in any backend.
	MaxOps() int

	// Sequence reads a sequencer; unless eventual, it sees every Reserve and Raise that returned before the call.
	Sequence(ctx context.Context, key Key, eventual bool) (Sequence, error)

	// Raise moves the floor of a sequencer up. A floor at or above position stays as it is, without an error.
	Raise(ctx context.Context, key Key, position, id int64) error

	// Date returns the store's own time, which is compared with the callers' clocks.
	Date(ctx context.Context) (time.Time, error)

	// Exclusive reports that no other process can reach the data, so that nothing changes without passing this Store: what its
	// process remembers is what is stored. A Write is decided when it returns; it is unknown only if the Store has failed for
	// good.
	Exclusive() bool

	// Ping returns nil if the store can be reached and used.
	Ping(ctx context.Context) error

	// Close releases the store. Calls under way end first; later ones return [ErrClosed].
	Close() error
}
