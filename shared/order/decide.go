package order

import (
	"time"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/event/typed"
)

// ended is the end of a step: where it was, and how it ended.
type ended struct {
	node     *definition.GraphNode
	job      definition.Job // the node's
	last     bool           // the node is the order's own end
	setbacks int            // of the order in a row before
	failed   bool
	code     int // return code; 0 of an error counts as 1
}

// decision is what the end of a step means for its order. One of the four is the case: it is set back, it is suspended where it is,
// it goes to Next, or, if Next is empty, it finishes here.
type decision struct {
	transition typed.NodeTransition
	setBack    bool
	delay      time.Duration // of the setback
	setbacks   int           // afterwards
	suspended  bool
	next       string
}

// decide returns what the end of a step means, as in JobScheduler:
//
//   - A range of return codes that holds decides before all else.
//   - An error under on_error: setback sets back, unless the job's maximum of setbacks is exceeded; then the order goes to error.
//   - A success goes to next, or finishes at the order's own end.
//   - An error goes to error; under on_error: suspend, or where there is no error node, the order is suspended here.
//
// Whatever is no setback begins to count setbacks anew.
func decide(s ended) decision {
	d := decision{transition: typed.NodeTransition{Type: typed.Success}}
	if s.failed {
		if s.code == 0 {
			s.code = 1
		}
		d.transition = typed.NodeTransition{Type: typed.Failure, ReturnCode: s.code}
	}
	if next, ok := s.node.OnCode(s.code); ok {
		d.next = next
		return d
	}
	if !s.failed {
		if !s.last {
			d.next = s.node.Next
		}
		return d
	}
	if s.node.OnError == definition.ErrorSetsBack {
		if delay, ok := s.job.Setback(s.setbacks + 1); ok {
			d.transition = typed.NodeTransition{Type: typed.Keep}
			d.setBack, d.delay, d.setbacks = true, delay, s.setbacks+1
			return d
		}
	}
	d.next = s.node.Error
	d.suspended = s.node.OnError == definition.ErrorSuspends || d.next == ""
	return d
}
