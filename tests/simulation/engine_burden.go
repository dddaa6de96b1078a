package simulation

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
)

// burden is a kind of payload or output.
type burden int

const (
	light  burden = iota
	heavy         // as large as a value may be, and of characters that encoders often escape
	larger        // one byte more than is allowed
	bad           // within the limits, and refused by the store
)

// heavies is about how many heavy values one write holds.
const heavies = 10

// distasteful is the text that the store refuses.
const distasteful = "distasteful"

// burden returns a random burden, most often light.
func (a *actor) burden() burden {
	switch n := a.luck.IntN(200); {
	case n < 2:
		return heavy
	case n < 4:
		return larger
	case n < 14:
		return bad
	default:
		return light
	}
}

var heavyText = strings.Repeat("<", queue.MaxPayload-2)

// on returns the value with its burden.
func (b burden) on(value []byte) []byte {
	switch b {
	case heavy:
		return []byte(`"` + heavyText + `"`)
	case larger:
		return []byte(`"` + heavyText + `>"`)
	case bad:
		return []byte(`"` + distasteful + `"`)
	default:
		return value
	}
}

// lines returns what a worker logs: most often nothing, otherwise lines whose encoding is longer than their text.
func (a *actor) lines() []tasklog.Line {
	if !a.chance(5) {
		return nil
	}
	lines := make([]tasklog.Line, 1+a.luck.IntN(12))
	for i := range lines {
		lines[i].Message = strings.Repeat([]string{"<", "\x01"}[a.luck.IntN(2)], 1+a.luck.IntN(60<<10))
	}
	return lines
}

// distaste returns an error if a write contains what the store refuses.
func distaste(w store.Write) error {
	for i := range w.Ops {
		if bytes.Contains(w.Ops[i].Item.Value, []byte(distasteful)) {
			return fmt.Errorf("%w: it is %s", store.ErrInvalid, distasteful)
		}
	}
	return nil
}

// verifyBurden demands that a valid value was not refused as invalid, and that an invalid one was refused.
func (r *engineRun) verifyBurden(what string, b burden, e *engine, err error) {
	sound := b == light || b == heavy
	switch {
	case e.crashed():
	case sound && errors.Is(err, queue.ErrInvalid):
		r.report("sizes", "%s that is sound was refused as invalid: %v", what, err)
	case !sound && err == nil:
		r.report("sizes", "%s that no item holds was taken", what)
	case b == larger && !errors.Is(err, queue.ErrTooLarge):
		r.report("sizes", "%s that is too large was answered %v", what, err)
	case b != light:
		r.count([]string{heavy: "heavy", larger: "larger", bad: "bad"}[b])
	}
}

// verifyRefused demands that err, of a call with a value that the store refuses after the faults have ended, is ErrInvalid.
func (r *engineRun) verifyRefused(err error) {
	if !errors.Is(err, queue.ErrInvalid) || errors.Is(err, journal.ErrUnavailable) {
		r.report("sizes", "what the store does not take was answered %v when all is quiet, want %v", err, queue.ErrInvalid)
	}
}
