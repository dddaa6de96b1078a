package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/client"
)

// TestServeOnAnyAddress: a server that listens on every address of its machine says how it is reached from there, and gives targets an
// address that others may reach too, with a word in the log on how to name a better one.
func TestServeOnAnyAddress(t *testing.T) {
	callbacks := make(chan string, 1)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var sent struct{ Callback string }
		_ = json.NewDecoder(r.Body).Decode(&sent) // empty if it is no JSON
		callbacks <- sent.Callback
	}))
	defer target.Close()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("MILLRACE_ADMIN_TOKEN", "secret")
	t.Setenv("MILLRACE_CONFIG", fmt.Sprintf("{targets: {allow_private: true}, jobs: [{path: /topics/a, target: {http: {url: %q}}}]}", target.URL))
	for given, want := range map[string]string{"": "http://" + host + ":PORT", "https://millrace.example/": "https://millrace.example"} {
		t.Setenv("MILLRACE_URL", given)
		at, stop := started(t, t.TempDir()+"/data", "0.0.0.0:0")
		if at.Hostname() != "127.0.0.1" {
			t.Errorf("it is ready at %s, want a loopback address", at)
		}
		err := remote{URL: at.String(), Token: "secret"}.on(console{out: io.Discard, err: io.Discard}, func(c *client.Client) error {
			_, _, err := c.AddJob(t.Context(), client.NewJob{Topic: "a"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		want = strings.Replace(want, "PORT", at.Port(), 1) + "/api/v1/leases/"
		if got := <-callbacks; !strings.HasPrefix(got, want) {
			t.Errorf("with MILLRACE_URL %q the callback is %q, want it below %s", given, got, want)
		}
		if log := stop(); strings.Contains(log, "MILLRACE_URL") != (given == "") {
			t.Errorf("with MILLRACE_URL %q the log says\n%s", given, log)
		}
	}
}

// started runs "millrace serve" in this process. It returns where that is ready, and a function that ends it and returns its log.
func started(t *testing.T, data, listen string) (at *url.URL, stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var log strings.Builder
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--data", data, "--listen", listen}, console{in: strings.NewReader(""), out: in, err: &log})
		_ = in.Close() // never fails
	}()
	stop = func() string {
		cancel()
		if status := <-ended; status != 0 {
			t.Errorf("serve: status %d: %s", status, &log)
		}
		return log.String()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		at, err = url.Parse(strings.TrimSpace(strings.TrimPrefix(line, "millrace is ready at ")))
	}
	if err != nil {
		t.Fatalf("serve is not ready: %v; %s", err, stop())
	}
	return at, stop
}
