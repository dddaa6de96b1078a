package client_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/millrace/millrace/client"
)

// TestValuesAreSentAsTheyAreSpelled: a value up to the server's limit does not grow beyond it when it is encoded.
func TestValuesAreSentAsTheyAreSpelled(t *testing.T) {
	t.Parallel()
	value := json.RawMessage(`{"html":"<td>1 & 2</td>"}`)
	c, s := speak(t,
		answer{status: 202, body: `{"id":"i","status":"new"}`}, answer{status: 201, body: `{"id":"i"}`}, answer{status: 201, body: `{"events":[]}`})
	if _, err := c.EmitTo(t.Context(), client.HandlerName{Canvas: "c", Space: "s", Name: "n"}, client.NewEvent{Value: value}); err != nil {
		t.Error(err)
	}
	if _, _, err := c.AddJob(t.Context(), client.NewJob{Topic: "t", Properties: value}); err != nil {
		t.Error(err)
	}
	_, _ = c.AppendToStream(t.Context(), "p", "s", "", client.StreamEvent{Payload: value}) // the response is another test's matter
	if len(s.asked) != 3 {
		t.Fatalf("asked %q", s.asked)
	}
	for _, asked := range s.asked {
		if !strings.Contains(asked, string(value)) {
			t.Errorf("asked %s", asked)
		}
	}
}
