package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/tests/process"
)

// receiver is the target of tasks by HTTP, and is told by workers what they run.
type receiver struct {
	*httptest.Server
	ledger *ledger
	token  string // to complete tasks that were accepted

	mu     sync.Mutex
	putOff map[string]bool // tasks that were asked to come again
	later  sync.WaitGroup  // tasks that were accepted
}

func newReceiver(l *ledger, token string) *receiver {
	r := &receiver{ledger: l, token: token, putOff: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run", r.run)
	mux.HandleFunc("POST /ran", r.ran)
	r.Server = httptest.NewServer(mux)
	return r
}

// ran takes a worker's report of an attempt.
func (r *receiver) ran(_ http.ResponseWriter, q *http.Request) {
	var id string
	var number int
	if _, err := fmt.Fscan(q.Body, &id, &number); err == nil {
		r.ledger.ran(id, number)
	}
}

// posted is a task as a target gets it.
type posted struct {
	ID       string `json:"id"`
	Attempt  int    `json:"attempt"`
	Payload  work   `json:"payload"`
	Callback string `json:"callback"`
}

// run does what the payload of a task says; without one, what its id happens to say.
func (r *receiver) run(w http.ResponseWriter, q *http.Request) {
	var p posted
	if err := json.NewDecoder(q.Body).Decode(&p); err != nil || q.Header.Get("Webhook-Signature") == "" {
		r.ledger.wrong("the target was sent what is no signed task: %v", err)
		return
	}
	if p.Payload.Work == "" {
		h := fnv.New32a()
		_, _ = h.Write([]byte(p.ID))
		p.Payload.Work = []string{"ok", "ok", "ok", "ok", "fail", "again", "later", "reject"}[h.Sum32()%8]
	}
	if p.Payload.Work == "again" && r.firstTime(p.ID) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	r.ledger.ran(p.ID, p.Attempt)
	time.Sleep(time.Duration(p.Payload.Took) * time.Millisecond)
	switch {
	case p.Payload.Work == "fail" && p.Attempt == 1:
		http.Error(w, "the first attempt fails", http.StatusInternalServerError)
	case p.Payload.Work == "reject":
		w.WriteHeader(http.StatusGone)
	case p.Payload.Work == "later":
		w.WriteHeader(http.StatusAccepted)
		r.later.Go(func() { r.complete(p.Callback) })
	default:
		fmt.Fprintf(w, `{"did":%q}`, p.Payload.Work)
	}
}

func (r *receiver) firstTime(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.putOff[id]
	r.putOff[id] = true
	return !was
}

// complete ends a task that was accepted, a little later; if the server is away then, its lease will end it.
func (r *receiver) complete(callback string) {
	time.Sleep(300 * time.Millisecond)
	request, err := http.NewRequest(http.MethodPost, callback+"/complete", strings.NewReader(`{"result":"ok"}`))
	if err != nil {
		return
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	request.Header.Set("Content-Type", "application/json")
	if answer, err := process.Client.Do(request); err == nil {
		_ = answer.Body.Close()
	}
}
