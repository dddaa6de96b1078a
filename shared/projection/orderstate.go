package projection

import (
	"encoding/binary"
	"time"

	"github.com/millrace/millrace/shared/event"
)

// order is what the projection of orders keeps of one. Times are in microseconds since 1970; 0: none.
type order struct {
	state     orderState
	flags     orderFlags
	version   int64
	startedAt int64
	at        int64 // of the state
	until     int64 // of the prompt or the wait
	node      string
	task      string // of the step under way
	variables []byte // JSON; none: empty
}

// orderState is one of the constants of [ProcessingState]. The numbers are stored: append new ones at the end.
type orderState byte

const (
	notPlanned orderState = iota
	planned
	due
	waitingInTask
	inTaskProcess
	setBack
	waitingForResource
	blacklisted
)

var orderStates = [...]string{NotPlanned, Planned, Due, WaitingInTask, InTaskProcess, SetBack, WaitingForResource, Blacklisted}

// orderFlags are a set. The bits are stored: append new ones at the end.
type orderFlags byte

const (
	suspended orderFlags = 1 << iota
	permanent
	file
	prompted
	waits // for an event or a time
	joins
)

// held are the flags of an order that waits at a node without a step.
const held = prompted | waits | joins

func (o *order) is(flag orderFlags) bool { return o.flags&flag != 0 }

// value returns the order as it is kept.
func (o *order) value() []byte {
	v := make([]byte, 0, 40+len(o.node)+len(o.task)+len(o.variables))
	v = append(v, byte(o.state), byte(o.flags))
	for _, number := range o.numbers() {
		v = binary.AppendUvarint(v, uint64(*number))
	}
	for _, text := range []string{o.node, o.task} {
		v = append(binary.AppendUvarint(v, uint64(len(text))), text...)
	}
	return append(v, o.variables...)
}

// numbers returns the numbers in the order of a value.
func (o *order) numbers() [4]*int64 { return [...]*int64{&o.version, &o.startedAt, &o.at, &o.until} }

// readOrder returns the order that a value keeps; the zero value if there is none.
func readOrder(value []byte) (o order) {
	if len(value) < 2 {
		return o
	}
	o.state, o.flags, value = orderState(value[0]), orderFlags(value[1]), value[2:]
	for _, number := range o.numbers() {
		n, size := binary.Uvarint(value)
		*number, value = int64(n), value[max(size, 0):]
	}
	for _, text := range []*string{&o.node, &o.task} {
		n, size := binary.Uvarint(value)
		value = value[max(size, 0):]
		n = min(n, uint64(len(value)))
		*text, value = string(value[:n]), value[n:]
	}
	o.variables = value
	return o
}

// overview returns what the order shows beside what it has itself.
func (o *order) overview() (state ProcessingState, obstacles []Obstacle) {
	state.Type = orderStates[int(o.state)%len(orderStates)]
	switch o.state {
	case planned, due, setBack:
		state.At = at(o.at)
	case waitingInTask, inTaskProcess:
		state.TaskID = o.task
	}
	if o.is(suspended) {
		obstacles = append(obstacles, Obstacle{Type: "Suspended"})
	}
	if o.state == setBack {
		obstacles = append(obstacles, Obstacle{Type: "Setback", Until: at(o.at)})
	}
	for _, h := range [...]struct {
		flag orderFlags
		name string
	}{{prompted, "Prompt"}, {waits, "Wait"}, {joins, "Join"}} {
		if o.is(h.flag) {
			obstacles = append(obstacles, Obstacle{Type: h.name, Until: at(o.until)})
		}
	}
	return state, obstacles
}

func at(micro int64) event.Time {
	if micro == 0 {
		return event.Time{}
	}
	return event.Time{Time: time.UnixMicro(micro).UTC()}
}

func micro(t event.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
