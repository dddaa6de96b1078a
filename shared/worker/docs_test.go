package worker_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheReceiverOfTheDocs: the function in docs/targets.md accepts what a target is sent, and nothing that another has signed, or changed.
func TestTheReceiverOfTheDocs(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("install python3 to run the example of a receiver")
	}
	page, err := os.ReadFile("../../docs/targets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```python\n")
	code, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("docs/targets.md has no example")
	}
	var headers http.Header
	var body []byte
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		headers = r.Header
		body, _ = io.ReadAll(r.Body) // whose signature is not valid if it is not whole
	})
	post(t, newEngine(), newHTTP(t, true), url, 0, fresh())
	sent := map[string]string{}
	for name := range headers {
		sent[strings.ToLower(name)] = headers.Get(name)
	}
	input, err := json.Marshal([]any{secret, sent, string(body)})
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), python, "-c", code+`
import json, sys
secret, headers, body = json.load(sys.stdin)
print(signed(secret, headers, body.encode()), signed("whsec_" + "A" * 32, headers, body.encode()), signed(secret, headers, b"{}"),
      signed(secret, headers | {"webhook-timestamp": "1"}, body.encode()))
`)
	run.Stdin, run.Stderr = strings.NewReader(string(input)), os.Stderr
	out, err := run.Output()
	if diff := cmp.Diff("True False False False\n", string(out)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
