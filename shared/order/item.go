package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/task"
)

// Order is one order as it is stored. Times are in microseconds since 1970, 0: none.
type Order struct {
	Chain   string `json:"c"` // path
	ID      string `json:"i"`
	Version int    `json:"v"` // of its chain, from 1

	Node    string                `json:"n"`            // where it is
	At      int64                 `json:"at,omitempty"` // earliest start of the step there; 0: at once
	Task    task.ID               `json:"t,omitempty"`  // of the step under way: it waits to run, or runs
	Waiting string                `json:"w,omitempty"`  // what it waits for without a task: one of typed's ForEvent and so on, or forPrompt; empty: nothing
	Until   int64                 `json:"u,omitempty"`  // when the prompt or the wait ends by itself; 0: never
	Await   *waitAt               `json:"aw,omitempty"` // where it is listed as one that waits for an event; nil: nowhere
	Locks   []definition.NodeLock `json:"lo,omitempty"` // that it holds
	Line    *inLine               `json:"li,omitempty"` // where it waits for a lock; nil: nowhere
	Created int64                 `json:"ca"`
	Changed int64                 `json:"ch,omitempty"` // its last event; 0: its only ones are of when it was created
	Started int64                 `json:"sa,omitempty"` // start of its first step, once that has ended

	Suspended   bool `json:"s,omitempty"`
	Blacklisted bool `json:"b,omitempty"`  // it is at its end and stays
	SetBack     bool `json:"sb,omitempty"` // its step is repeated, from At on
	Setbacks    int  `json:"sn,omitempty"` // in a row

	First     string          `json:"f"`            // where it began
	EndNode   string          `json:"en,omitempty"` // it finishes after the step of this node; empty: at an end of the chain
	Priority  int64           `json:"p,omitempty"`
	Variables json.RawMessage `json:"vs,omitempty"` // an object; empty: none
	Visits    map[string]int  `json:"vi,omitempty"` // how often it has come to each node
	Parent    string          `json:"pa,omitempty"` // path of the order that forked it
	Run       string          `json:"ru,omitempty"` // of the parent's fork, which counts its end; empty: nobody does
	Fork      *Fork           `json:"fk,omitempty"` // where it waits for its children; nil: it does not
	Permanent bool            `json:"pe,omitempty"` // a schedule made it: it goes back to its first node at its end
	Idle      bool            `json:"id,omitempty"` // a permanent one waits for its next start
	Starts    []int64         `json:"st,omitempty"` // of a permanent one: the times of its next starts
	LastStart int64           `json:"ls,omitempty"` // of a permanent one: the time for which it was started, or is planned
	File      bool            `json:"fi,omitempty"` // a file made it
	PutAway   bool            `json:"pu,omitempty"` // it finishes only when its file has been put away
	Filing    *Filing         `json:"fl,omitempty"` // how far that is; nil: not begun
	Counted   bool            `json:"co,omitempty"` // it has one of its chain's places, see place.go
	RingsAt   int64           `json:"ra,omitempty"` // when the timeout of its chain is looked at; 0: never again
	Said      int64           `json:"sd,omitempty"` // position of the last write with an event of it; 0: this one
	Then      *Then           `json:"th,omitempty"` // what the end of the running step does; nil: what the step's result means
}

// Then is what happens to an order at the end of its running step, whatever the step's result means. One field is set besides By.
type Then struct {
	Node    string `json:"n,omitempty"` // it goes there
	Remove  bool   `json:"r,omitempty"`
	Fail    bool   `json:"f,omitempty"` // it goes on as after an error
	Replace *Order `json:"o,omitempty"` // this order takes its place

	By string `json:"by,omitempty"` // who has asked for it, see [journal.Actor]; empty: nobody
}

// Path returns the order's path, which is the key of its events.
func (o *Order) Path() string { return o.Chain + "," + o.ID }

// The items of the table work:
//
//	order/PATH        -        the order
//	orders-of/CHAIN   ID       lists it; the value is the id
//	chain/CHAIN       -        whether the chain is stopped, and the actions of its nodes
//	versions/CHAIN    NUMBER   a version of the chain
//	versions-going/…  NUMBER   marks a version that is about to be removed; the value is since when
//	places/CHAIN      -        how many orders have a place, where max_orders is declared
//	line/CHAIN        CREATION an order that waits for a place; the value is the id
//	orders-due        TIME     an alarm: an order, or a chain, is to be looked at then; the value is the path
//	                           or an errand, see errand.go
//	orders-files      PATH     a hint: the order is at its end, and its file is to be put away; the value is the path
//	lock/NAME         -        how many orders hold a lock, and wait for it
//	lock-holders/NAME PATH     an order that holds it
//	lock-line/NAME    NUMBER   an order that waits for it
//	waits/SHAPE       VALUES/  an order that waits for an event; PATH follows
//	wait-shapes       SHAPE    what waits for events have in common
//	wait-position     -        up to which event waits were looked at
//	act/ID            -        an act on many, see bulk.go
//	order-once/HASH   -        the result of the request with an idempotency key
//
// What is too long for a key ends in its hash, see [store.Fit].
const only = "-" // the sort key of a partition with one item

func work(partition, sort string) store.Key {
	return store.Key{Table: store.Work, Partition: partition, Sort: sort}
}

func orderKey(path string) store.Key { return work("order/"+store.Fit(path), only) }

func listKey(chain, id string) store.Key { return work(listPartition(chain), store.Fit(id)) }

func listPartition(chain string) string { return "orders-of/" + store.Fit(chain) }

func versionPartition(chain string) string { return "versions/" + store.Fit(chain) }

func versionKey(chain string, n int) store.Key {
	return work(versionPartition(chain), fmt.Sprintf("%010d", n))
}

func versionName(chain string, n int) string { return chain + "," + strconv.Itoa(n) }

// Split returns the chain and the id of an order's path.
func Split(path string) (chain, id string) {
	chain, id, _ = strings.Cut(path, ",") // no chain has a comma
	return chain, id
}

var errDamaged = errors.New("order: an item cannot be read: damaged, or written by a newer version")

func decode(item *store.Item, target any) error {
	if err := json.Unmarshal(item.Value, target); err != nil {
		return fmt.Errorf("%w: %v: %w", errDamaged, item.Key, err)
	}
	return nil
}

func encode(value any) []byte {
	text, err := store.Encode(value)
	if err != nil {
		panic(err) // structs of this package, whose raw JSON was checked when it came in
	}
	return text
}

// read reads an order and the condition that it is as it was read. The error is [ErrNoOrder] if there is none.
func (e *Engine) read(ctx context.Context, path string) (*Order, store.Condition, error) {
	items, err := e.get(ctx, orderKey(path))
	if err != nil {
		return nil, store.Condition{}, err
	}
	if items[0] == nil {
		return nil, store.Absent, fmt.Errorf("%w: %s", ErrNoOrder, path)
	}
	o := new(Order)
	return o, store.VersionIs(items[0].Version), decode(items[0], o)
}
