package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/store/pebble"
)

// TestSecret: the secret that a server has made at its first start is shown to who has the store, verifies what the server sends, and
// is in no log. Where none was made, that is said.
func TestSecret(t *testing.T) {
	type message struct {
		header http.Header
		body   []byte
	}
	took := make(chan message, 1)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // whose signature is not valid if it is not whole
		took <- message{r.Header, body}
	}))
	defer target.Close()
	t.Setenv("MILLRACE_ADMIN_TOKEN", "secret")
	t.Setenv("MILLRACE_CONFIG", fmt.Sprintf("{targets: {allow_private: true}, jobs: [{path: /topics/a, target: {http: {url: %q}}}]}", target.URL))
	data := t.TempDir() + "/data"
	at, stop := started(t, data, "127.0.0.1:0")
	err := remote{URL: at.String(), Token: "secret"}.on(console{out: io.Discard, err: io.Discard}, func(c *client.Client) error {
		_, _, err := c.AddJob(t.Context(), client.NewJob{Topic: "a"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	sent, log := <-took, stop()
	made := shownSecret(t, 0, data)
	by, err := standardwebhooks.NewWebhook(strings.TrimSpace(made))
	if err == nil {
		err = by.Verify(sent.body, sent.header)
	}
	if err != nil || strings.Contains(log, strings.TrimSpace(made)) {
		t.Errorf("%q does not verify what was sent, or is in the log: %v\n%s", made, err, log)
	}
	empty := t.TempDir() + "/empty"
	s, err := pebble.Open(empty, pebble.Options{})
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if none := shownSecret(t, 3, empty); none != "" {
		t.Errorf("a store without a secret has %q", none)
	}
	shownSecret(t, 2, "/nowhere")
}

// shownSecret returns what "millrace secret" prints.
func shownSecret(t *testing.T, status int, data string) string {
	t.Helper()
	var out, stderr bytes.Buffer
	if got := run(t.Context(), []string{"secret", "--data", data}, console{strings.NewReader(""), &out, &stderr}); got != status {
		t.Errorf("secret --data %s: status %d, want %d: %s", data, got, status, &stderr)
	}
	return out.String()
}
