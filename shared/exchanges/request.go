package exchanges

import (
	"errors"
	"time"

	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/task"
)

// The errors of an exchange, besides those of packages membership, queue and journal.
var (
	// ErrOld is returned for a number below that of the instance's last exchange, and for one that waits once another process has gone
	// on with the instance. Nothing was changed.
	ErrOld = errors.New("exchanges: a later exchange of the instance was made")

	// ErrReplaced is returned for an exchange that waited when it was repeated, here or in another process: the repetition waits in its
	// place.
	ErrReplaced = errors.New("exchanges: the same exchange was asked for again, and goes on there")
)

// Request is one exchange of an instance.
type Request struct {
	Seq     int64              // its number, at least 0, above the last one's; the last one's own: a repetition
	Results []queue.Completion // ends of tasks that it runs
	Beats   []Beat             // how far the others are
	Max     int                // at most so many claims; 0: none
	Wait    time.Duration      // how long to wait for a claim or a stop where there are no results

	// Look is what the caller has just looked up. Default: that is read.
	Look *Look

	// Explain returns how a result's own error is told, as a code and a text.
	Explain func(err error) (code, text string)
}

// Beat is the heartbeat of one lease.
type Beat struct {
	Token string
	queue.Beat
}

// Response is what an exchange returns.
type Response struct {
	Expires  time.Time     // the end of the instance's lease
	Draining bool          // it is to finish what it runs, and to leave
	Claims   []queue.Lease // what it is to run now
	Results  []Outcome     // in the order of the request
	Stops    []string      // tokens of what it is to stop: by request, or since it has lost the lease
}

// Outcome is what became of one result.
type Outcome struct {
	Token string      `json:"t"`
	State task.Status `json:"s,omitempty"` // the task's, in the words of its dialect
	Code  string      `json:"c,omitempty"` // of a result that was not taken, as [Request.Explain] returns it; else ""
	Text  string      `json:"x,omitempty"`
}
