package projection

import (
	"encoding/binary"
	"strings"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// OrderStatistics are numbers of orders by what they are doing, as in JobScheduler's event API. An order counts in each that
// holds for it.
type OrderStatistics struct {
	Total              int `json:"total"`
	NotPlanned         int `json:"notPlanned"`
	Planned            int `json:"planned"`
	Due                int `json:"due"`
	Started            int `json:"started"` // their first step has begun
	InTask             int `json:"inTask"`  // in a step, whether it runs or waits for another attempt
	InTaskProcess      int `json:"inTaskProcess"`
	Setback            int `json:"setback"`
	WaitingForResource int `json:"waitingForResource"`
	Suspended          int `json:"suspended"` // blacklisted ones too
	Blacklisted        int `json:"blacklisted"`
	Permanent          int `json:"permanent"`
	FileOrder          int `json:"fileOrder"`
}

// numbers returns the numbers in the order of a value. Append new ones at the end.
func (s *OrderStatistics) numbers() [13]*int {
	return [...]*int{&s.Total, &s.NotPlanned, &s.Planned, &s.Due, &s.Started, &s.InTask, &s.InTaskProcess, &s.Setback,
		&s.WaitingForResource, &s.Suspended, &s.Blacklisted, &s.Permanent, &s.FileOrder}
}

// Add adds the numbers of other.
func (s *OrderStatistics) Add(other OrderStatistics) {
	for i, n := range other.numbers() {
		*s.numbers()[i] += *n
	}
}

// ChangedByTask reports whether an event of a task may change the statistics: in which an order waits in its task, or runs.
func (s *OrderStatistics) ChangedByTask(e *event.Event) bool {
	switch e.Type {
	case event.TaskStarted:
		return s.InTask > s.InTaskProcess
	case event.TaskEnded:
		return s.InTaskProcess > 0 && repeats(e)
	default:
		return false
	}
}

// counted returns the statistics of one order; those of the zero value are zero, since no order is in the version 0.
func (o *order) counted() (s OrderStatistics) {
	if o.version == 0 {
		return s
	}
	return OrderStatistics{
		Total: 1, NotPlanned: one(o.state == notPlanned), Planned: one(o.state == planned), Due: one(o.state == due),
		Started: one(o.startedAt != 0), InTask: one(o.task != ""), InTaskProcess: one(o.state == inTaskProcess),
		Setback: one(o.state == setBack), WaitingForResource: one(o.state == waitingForResource), Suspended: one(o.is(suspended)),
		Blacklisted: one(o.state == blacklisted), Permanent: one(o.is(permanent)), FileOrder: one(o.is(file)),
	}
}

func one(holds bool) int {
	if holds {
		return 1
	}
	return 0
}

// OrderCounts is what the keys of the projection [Orders] begin with that have the numbers of a chain's orders; the chain's path
// follows.
const OrderCounts = "#"

// OrderCount is the statistics of some orders.
type OrderCount struct {
	OrderStatistics
	Changed event.ID // the event that changed them last; 0 of a single order
}

// ReadOrderCount parses a value of the projection [Orders] that is not shown as an overview: the numbers of a chain, or of the
// one order of that key.
func ReadOrderCount(key string, value []byte) (c OrderCount) {
	if !strings.HasPrefix(key, OrderCounts) {
		o := readOrder(value)
		return OrderCount{OrderStatistics: o.counted()}
	}
	for _, number := range c.numbers() {
		n, size := binary.Uvarint(value)
		*number, value = int(n), value[max(size, 0):]
	}
	changed, _ := binary.Uvarint(value)
	c.Changed = event.ID(changed)
	return c
}

// ReadOrderNode returns at which node an order is, from a value of the projection [Orders]: "" of a key that is no order's.
func ReadOrderNode(key string, value []byte) string {
	if strings.HasPrefix(key, OrderCounts) {
		return ""
	}
	o := readOrder(value)
	return o.node
}

func (c *OrderCount) value() []byte {
	v := make([]byte, 0, 32)
	for _, number := range c.numbers() {
		v = binary.AppendUvarint(v, uint64(*number))
	}
	return binary.AppendUvarint(v, uint64(c.Changed))
}

// count notes that an order of that key counted as was, and counts as is since an event.
func count(state *journal.State, key string, now event.ID, was, is OrderStatistics) {
	if was == is {
		return
	}
	chain, _, _ := strings.Cut(key, ",")
	key = OrderCounts + chain
	c := ReadOrderCount(key, state.Get(key))
	for i, n := range c.numbers() {
		*n += *is.numbers()[i] - *was.numbers()[i]
	}
	c.Changed = now
	state.Put(key, c.value())
}
