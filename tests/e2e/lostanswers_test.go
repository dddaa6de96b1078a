package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"testing"

	"github.com/millrace/millrace/tests/process"
)

const patientHandler = `
handlers:
  - {canvas: c, space: WORKER, name: h, target: {instances: true}, attempts: 3}
`

// thief is a proxy that drops the response of each claim that was given tasks, once: the server has sent it, the worker never sees it.
type thief struct {
	mu     sync.Mutex
	stolen map[string]bool // by the number of the exchange
	first  func()          // called before the first response is dropped
}

var errStolen = errors.New("dropped")

// numberHeader is where the proxy notes the number of an exchange.
const numberHeader = "X-Number"

// numbered notes the number of an exchange for the proxy behind it.
func numbered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		var exchange struct{ Seq json.Number }
		if json.Unmarshal(body, &exchange) == nil {
			r.Header.Set(numberHeader, exchange.Seq.String())
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

func (p *thief) steal(answer *http.Response) error {
	key := answer.Request.Header.Get(numberHeader)
	body, err := io.ReadAll(answer.Body)
	if err != nil || !bytes.Contains(body, []byte(`"token"`)) {
		answer.Body = io.NopCloser(bytes.NewReader(body))
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stolen[key] {
		answer.Body = io.NopCloser(bytes.NewReader(body))
		return nil
	}
	if len(p.stolen) == 0 {
		p.first()
	}
	p.stolen[key] = true
	return errStolen
}

// steals returns the address of a thief before a server, which is killed and started again with the first response that is lost.
func steals(t *testing.T, s *process.Server) (*thief, string) {
	t.Helper()
	target, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	p := &thief{stolen: map[string]bool{}, first: func() {
		if err := errors.Join(s.Kill(), s.Start(t.Context())); err != nil {
			t.Error(err)
		}
	}}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = p.steal
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(numbered(proxy))
	t.Cleanup(server.Close)
	return p, server.URL
}

// TestLostAnswersOfClaimsCostNoAttempt runs workers whose claims are executed and get no response, the first since the server is
// killed: each repeats its claim, is given the same tasks, and runs each once, at the first attempt.
func TestLostAnswersOfClaimsCostNoAttempt(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]func(t *testing.T) *worker{
		"python": pythonWorker,
		"millrace": func(*testing.T) *worker {
			return &worker{command: []string{os.Getenv(process.Variable), "worker", "--jobs", "/canvases/**", "--capacity", "4", "--", "cat"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, embedded(t), declared(t, patientHandler))
			c := dial(t, s)
			p, at := steals(t, s)
			ids := giveWork(t, c, 10)
			w := command(t)
			w.startAt(t, at)
			told := ended(t, c, ids)
			w.drain(t)
			for _, id := range ids {
				if l := told[id]; l.started != 1 {
					t.Errorf("task %s was started %d times, want once", id, l.started)
				}
			}
			if p.mu.Lock(); len(p.stolen) < 3 {
				t.Errorf("%d answers were dropped, want that of each claim", len(p.stolen))
			}
			p.mu.Unlock()
		})
	}
}
