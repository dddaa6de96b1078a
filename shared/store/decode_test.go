package store_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/store"
)

// kept is a value with all that items use of the package encoding/json.
type kept struct {
	Text    string            `json:"t"`
	Count   int64             `json:"n,omitempty"`
	Raw     json.RawMessage   `json:"r,omitempty"`
	List    []string          `json:"l,omitempty"`
	Named   map[string]string `json:"m,omitempty"`
	Pointer *kept             `json:"p,omitempty"`
	Bytes   []byte            `json:"b,omitempty"`
}

// FuzzDecode: Decode reads what encoding/json reads, and as that does.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{}`, `null`, ``, `[]`, `{"t":"a","n":1,"r":{"x": [1, 2]},"l":["a",null],"m":{"k":"v"},"p":{"t":"\u003c\ud800"},"b":"AQI="}`,
		`{"T":"other case","unknown":1}`, `{"t":"a","t":"twice"}`, `{"n":1.5}`, `{"n":null,"l":null,"p":null}`, `{"t":"a"} x`, "{\"t\":\"\xff\"}",
		`{"m":{"a":"1","a":"2"}}`, `{"r":null}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want, got kept
		expected, err := json.Unmarshal(text, &want), store.Decode(text, &got)
		if (err == nil) != (expected == nil) {
			t.Fatalf("Decode(%q): %v, encoding/json: %v", text, err, expected)
		}
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			t.Errorf("Decode(%q) (-encoding/json +Decode):\n%s", text, diff)
		}
	})
}
