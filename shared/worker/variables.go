package worker

import (
	"encoding/json"
	"io"
	"os"

	"github.com/millrace/millrace/shared/queue"
)

// Variables returns the field variables of a target's JSON, which changes those of an order; nothing if it has none.
func Variables(body []byte) json.RawMessage {
	var said struct {
		Variables json.RawMessage `json:"variables"`
	}
	if json.Unmarshal(body, &said) != nil || string(said.Variables) == "null" {
		return nil
	}
	return said.Variables
}

// maxVariables is how many bytes of a file of variables are read: more than an order may have, so that too many are told as such.
const maxVariables = 1 << 20

// variables is the file in which a program finds the variables of an order, and changes them; nil if there is no order.
type variables struct{ path string }

// writeVariables makes the file for an attempt; nil if it is no order's step.
func writeVariables(a *Attempt) (*variables, error) {
	if a.Order == nil {
		return nil, nil
	}
	f, err := os.CreateTemp("", "millrace-variables-*.json") // for this user only
	if err != nil {
		return nil, err
	}
	v := &variables{f.Name()}
	_, err = f.Write(a.Payload)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		v.remove()
	}
	return v, err
}

// env returns the environment variable that names the file.
func (v *variables) env() []string {
	if v == nil {
		return nil
	}
	return []string{"MILLRACE_VARIABLES=" + v.path}
}

// read puts what the file holds into a result. A file that is gone or empty changes nothing.
func (v *variables) read(r *queue.Result) {
	if v == nil {
		return
	}
	f, err := os.Open(v.path)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxVariables))
	if err == nil && len(text) > 0 {
		r.Variables = text
	}
}

func (v *variables) remove() {
	if v != nil {
		_ = os.Remove(v.path) // the system clears its directory of temporary files
	}
}
