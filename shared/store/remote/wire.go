package remote

import (
	"errors"
	"time"

	"github.com/millrace/millrace/shared/store"
)

// service is the name under which the calls of the port are served.
const service = "Store"

// Request is a call of any method, exported for package net/rpc; each uses the fields that it needs.
type Request struct {
	Method       string
	Keys         []store.Key
	Range        store.Range
	Token        string
	Ops          []op
	IDs          int
	Now          int64
	Eventual     bool
	Position, ID int64
}

// op is a store.Op whose condition can be sent.
type op struct {
	Kind    store.OpKind
	Item    store.Item
	Absent  bool
	Is      bool
	Version int64
}

// Answer is the response to a call, exported for package net/rpc; each uses the fields that it needs.
type Answer struct {
	Items    []item
	More     bool
	Sequence store.Sequence
	FirstID  int64
	Sends    int
	Date     time.Time
	Failed   []failure
	Kind     int // of the error, an index of kinds, from 1; 0: there is none
	Text     string
}

// item is a store.Item or none.
type item struct {
	There bool
	store.Item
}

// failure is a store.Failure.
type failure struct {
	Op    int
	Found item
}

// kinds are the errors that errors.Is finds on the other side too.
var kinds = []error{
	store.ErrUnknown, store.ErrBusy, store.ErrUnavailable, store.ErrTooLate, store.ErrClock, store.ErrInvalid, store.ErrClosed,
}

// wrapped is an error of the served store.
type wrapped struct {
	kind error
	text string
}

func (w wrapped) Error() string { return w.text }
func (w wrapped) Unwrap() error { return w.kind }

func (a *Answer) fail(err error) {
	if conflict := store.AsConflict(err); conflict != nil {
		for _, f := range conflict.Failed {
			a.Failed = append(a.Failed, failure{f.Op, sent(f.Found)})
		}
		return
	}
	a.Kind, a.Text = 3, err.Error() // unavailable
	for i, kind := range kinds {
		if errors.Is(err, kind) {
			a.Kind = i + 1
			return
		}
	}
}

func (a *Answer) err() error {
	switch {
	case len(a.Failed) > 0:
		conflict := &store.Conflict{}
		for _, f := range a.Failed {
			conflict.Failed = append(conflict.Failed, store.Failure{Op: f.Op, Found: f.Found.received()})
		}
		return conflict
	case a.Kind > 0:
		return wrapped{kinds[a.Kind-1], a.Text}
	}
	return nil
}

func sent(i *store.Item) item {
	if i == nil {
		return item{}
	}
	return item{true, *i}
}

func (i item) received() *store.Item {
	if !i.There {
		return nil
	}
	return &i.Item
}

func sentOps(ops []store.Op) []op {
	all := make([]op, len(ops))
	for i, o := range ops {
		all[i] = op{Kind: o.Kind, Item: o.Item, Absent: o.Cond.IsAbsent()}
		all[i].Version, all[i].Is = o.Cond.Version()
	}
	return all
}

func receivedOps(ops []op) []store.Op {
	all := make([]store.Op, len(ops))
	for i, o := range ops {
		all[i] = store.Op{Kind: o.Kind, Item: o.Item, Cond: store.Always}
		switch {
		case o.Absent:
			all[i].Cond = store.Absent
		case o.Is:
			all[i].Cond = store.VersionIs(o.Version)
		}
	}
	return all
}
