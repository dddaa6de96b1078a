package samples

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"github.com/millrace/millrace/shared/access"
)

// Case is one sample and its expected outcome.
type Case struct {
	Name   string // of the file, without .json
	Status int    // of the HTTP response; 0: a tick or a batch of messages; -1: an invocation that fails
	Want   string // part of the HTTP response's body, of the function's result where there is none, or of the error
}

// Tokens are what the samples authenticate with, by the secrets "sample" and "sample-ROLE".
func Tokens() []access.Token {
	return []access.Token{
		access.NewToken("admin", access.Admin, "sample"),
		access.NewToken("viewer", access.Viewer, "sample-viewer"),
		access.NewToken("producer", access.Producer, "sample-producer"),
	}
}

// Order is the order of the functions in which the samples make sense: what is read must have been emitted.
// Define comes last: it replaces the definitions that the others' tasks need.
func Order() []string {
	return []string{"emit", "acknowledge", "read-after", "snapshot", "enqueue-task", "tasks", "lease", "dashboard", "worker", "cron", "sweep", "define"}
}

// Of returns the cases of a function, in the order in which they make sense.
func Of(function string) []Case {
	if cases, found := journalCases()[function]; found {
		return cases
	}
	return taskCases()[function]
}

// Check returns what is wrong with the outcome of an invocation: its response, or the text of its error.
func (c Case) Check(answer []byte, failure string) error {
	switch {
	case c.Status < 0 && !strings.Contains(failure, c.Want):
		return fmt.Errorf("failure %q, want one with %q", failure, c.Want)
	case c.Status >= 0 && failure != "":
		return fmt.Errorf("failure %q, want none", failure)
	case c.Status == 0 && !strings.Contains(compact(answer), c.Want):
		return fmt.Errorf("answer %s, want one with %s", answer, c.Want)
	case c.Status <= 0:
		return nil
	}
	return c.checkHTTP(answer)
}

// compact returns JSON without the spaces that SAM puts in.
func compact(answer []byte) string {
	var compacted bytes.Buffer
	if json.Compact(&compacted, answer) != nil {
		return string(answer)
	}
	return compacted.String()
}

func (c Case) checkHTTP(answer []byte) error {
	var out events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(answer, &out); err != nil {
		return fmt.Errorf("answer %s: %w", answer, err)
	}
	body := []byte(out.Body)
	if out.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(out.Body); err != nil {
			return fmt.Errorf("answer %s: %w", answer, err)
		}
	}
	if out.StatusCode != c.Status || !strings.Contains(string(body), c.Want) {
		return fmt.Errorf("answer %d %s, want %d with %s", out.StatusCode, body, c.Status, c.Want)
	}
	return nil
}
