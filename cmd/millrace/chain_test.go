package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// chainServer has two job chains, and says what it was asked to do.
type chainServer struct {
	mu    sync.Mutex
	acted []string
}

func (s *chainServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/api/v1/definitions":
		fmt.Fprint(w, `{"job_chains":[{"path":"/b/c","max_orders":3,"nodes":[{"id":"A","job":"/j"},{"id":"end"}]},{"path":"/a","nodes":[{"id":"x"}]}]}`)
	case strings.HasSuffix(r.URL.Path, "/jobChain/"):
		fmt.Fprint(w, `{"jobChains":[{"TYPE":"JobChainOverview","path":"/b/c","state":"stopped"}],"eventId":1}`)
	default:
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.acted = append(s.acted, strings.TrimSpace(r.Method+" "+r.URL.EscapedPath()+" "+string(body)))
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	}
}

func TestChainCommands(t *testing.T) {
	t.Parallel()
	chains := &chainServer{}
	server := httptest.NewServer(chains)
	defer server.Close()
	for _, tt := range []struct {
		args   string
		status int
		out    string // all that is printed
		err    string // a part of what is said
	}{
		{"list", 0, "PATH  STATE    NODES  MAX ORDERS\n/b/c  stopped  2      3\n/a    running  1      -\n", ""},
		{"list -o jsonl", 0, `{"path":"/b/c","state":"stopped","nodes":2,"max_orders":3}` + "\n" + `{"path":"/a","state":"running","nodes":1}` + "\n", ""},
		{"show /b/c", 0, "/b/c, at most 3 orders\n    A  job /j\n        → end\n        error → suspended\n    end  end\n", ""},
		{"show /b/c --mermaid", 0, "flowchart TD\n    n1[\"A<br/>job /j\"]\n    n2([\"end\"])\n    n1 --> n2\n", ""},
		{"show /a -o jsonl", 0, `{"format":1,"chain":"/a","max_visits":1000,"nodes":[{"id":"x","kind":"end","action":"process"}]}` + "\n", ""},
		{"show /none", 3, "", "no such job chain: /none"},
		{"show /a --mermaid -o json", 2, "", "cannot both be given"},
		{"stop /b/c", 0, "", ""},
		{"start /b/c", 0, "", ""},
		{"action /b/c f/x/1 next_state", 0, "", ""},
		{"action /b/c A skip", 2, "", "process"},
	} {
		var out, errs bytes.Buffer
		args := append(append([]string{"chain"}, strings.Fields(tt.args)...), "--url", server.URL, "--token", "t")
		status := run(context.Background(), args, console{out: &out, err: &errs})
		if status != tt.status || out.String() != tt.out || !strings.Contains(errs.String(), tt.err) {
			t.Errorf("chain %s: status %d, want %d\n%s\nwant\n%s\nsaid %s, want %s", tt.args, status, tt.status, &out, tt.out, &errs, tt.err)
		}
	}
	want := "POST /api/v1/chains/%2Fb%2Fc/stop|POST /api/v1/chains/%2Fb%2Fc/start|" +
		`POST /api/v1/chains/%2Fb%2Fc/nodes/f%2Fx%2F1/action {"action":"next_state"}`
	if got := strings.Join(chains.acted, "|"); got != want {
		t.Errorf("acted %s, want %s", got, want)
	}
}
