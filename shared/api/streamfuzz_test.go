package api_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/millrace/millrace/shared/access"
)

// Whatever is sent is stored unchanged, or refused with a reason; it is never a failure of the server.
func FuzzStreamEvent(f *testing.F) {
	f.Add("s", happened("n"))
	f.Add("a/b", happened(" \u0000 "))
	f.Add("..", `{"event":{"name":"n","version":1e0}}`)
	f.Add("s", strings.Replace(happened("n"), "Europe/Berlin", "../../etc/passwd", 1))
	f.Fuzz(func(t *testing.T, name, body string) {
		if name == "" || len(name) > 300 {
			t.Skip()
		}
		b := streaming(t)
		path := streams + escapeAll(name)
		got := b.as(t, access.Producer, "POST", path+"/events", body, "X-Producer-ID", producer1)
		if got.StatusCode >= 400 {
			if p := problemIn(t, got); p.Status >= 500 || len(p.Errors) == 0 {
				t.Fatalf("%q: %s", body, got.body)
			}
			return
		}
		var sent struct {
			Event   struct{ Name string }
			Payload json.RawMessage
		}
		if err := json.Unmarshal([]byte(body), &sent); err != nil {
			t.Fatalf("%q was taken: %v", body, err)
		}
		events := into[[]consumed](t, b.as(t, access.Consumer, "GET", path+"/events?eventName="+url.QueryEscape(sent.Event.Name), "", "X-Consumer-ID", consumer1), 200)
		if len(events) != 1 || events[0].Event.Name != sent.Event.Name {
			t.Fatalf("%q: read %+v", body, events)
		}
	})
}
