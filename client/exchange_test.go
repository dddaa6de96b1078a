package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/client"
)

// desk is a server with exchanges: it grants tasks, notes their results, and loses some of its responses.
type desk struct {
	mu       sync.Mutex
	t        *testing.T
	tasks    int // still to be granted
	lossy    bool
	requests int
	seq      int64 // of the last exchange
	answer   map[string]any
	results  map[string][]string // by token
	logs     map[string]int
	stop     string // token that is to be stopped
	ended    chan struct{}
	want     int // results before ended is closed
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var x struct {
		Seq     int64
		Max     int
		Wait    float64
		Results []struct{ Token, Result, Message string }
		Beats   []struct {
			Token string
			Logs  []any
		}
	}
	if r.ContentLength > 1<<20 {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = w.Write([]byte(`{"status":413,"code":"too_large","errors":[{"location":"body"}]}`))
		return
	}
	_ = json.NewDecoder(r.Body).Decode(&x)
	if !strings.HasSuffix(r.URL.Path, "/exchange") {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":"i","lease":30}`))
		return
	}
	d.mu.Lock()
	d.requests++
	switch {
	case x.Seq < d.seq:
		d.t.Errorf("seq %d after %d", x.Seq, d.seq)
	case x.Seq > d.seq || d.answer == nil:
		d.seq = x.Seq
		outcomes, claims, stops := []any{}, []any{}, []string{}
		for _, b := range x.Beats {
			d.logs[b.Token] += len(b.Logs)
		}
		for _, one := range x.Results {
			d.results[one.Token] = append(d.results[one.Token], one.Result+one.Message)
			outcomes = append(outcomes, map[string]any{"token": one.Token, "state": "SUCCEEDED"})
		}
		for ; d.tasks > 0 && len(claims) < x.Max; d.tasks-- {
			token := fmt.Sprint("t", d.tasks)
			claims = append(claims, map[string]any{"id": token, "token": token, "job": "/a", "attempt": 1, "lease": 30})
		}
		if d.stop != "" && len(claims) == 0 {
			stops, d.stop = append(stops, d.stop), ""
		}
		d.answer = map[string]any{"expires_at": "x", "draining": false, "claims": claims, "results": outcomes, "stops": stops}
		if len(d.results) == d.want {
			d.want = -1
			close(d.ended)
		}
		if len(claims)+len(outcomes)+len(stops) == 0 {
			d.mu.Unlock()
			select {
			case <-r.Context().Done():
			case <-time.After(time.Duration(x.Wait * float64(time.Second))):
			}
			d.mu.Lock()
		}
	}
	lost, text := d.lossy && d.requests%3 != 0, []byte(nil)
	text, _ = json.Marshal(d.answer)
	d.mu.Unlock()
	if lost {
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(text)
}

// exchange runs a worker at a desk until all its tasks have ended.
func (d *desk) run(t *testing.T, o client.WorkerOptions) {
	t.Helper()
	d.t, d.want, d.results, d.logs, d.ended = t, d.tasks, map[string][]string{}, map[string]int{}, make(chan struct{})
	c, _ := serve(t, d, client.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		select {
		case <-d.ended:
		case <-time.After(10 * time.Minute):
			t.Error("the tasks do not end")
		}
		cancel()
	}()
	work(ctx, t, c, o)
}

func TestExchangesCarryManyTasks(t *testing.T) {
	t.Parallel()
	for _, lossy := range []bool{false, true} {
		t.Run(fmt.Sprint(lossy), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &desk{tasks: 300, lossy: lossy}
				d.run(t, client.WorkerOptions{Capacity: 30, Jobs: map[string]client.Function{"/a": func(_ context.Context, t *client.Task) (any, error) {
					t.Log("info", "once")
					return nil, nil
				}}})
				for token, all := range d.results {
					if len(all) != 1 || all[0] != "ok" || d.logs[token] != 1 {
						t.Errorf("%s: results %v, %d lines, want one of each", token, all, d.logs[token])
					}
				}
				if most := 60; len(d.results) != 300 || !lossy && d.requests > most {
					t.Errorf("%d results by %d requests, want 300 by at most %d", len(d.results), d.requests, most)
				}
			})
		})
	}
}

// A task that is to be stopped learns of it, and one whose end comes while the worker waits for others is reported at once.
func TestAnExchangeStopsATask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := &desk{tasks: 2, stop: "t1"}
		d.run(t, client.WorkerOptions{Capacity: 4, Jobs: map[string]client.Function{"/a": func(ctx context.Context, t *client.Task) (any, error) {
			if t.ID == "t1" {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			time.Sleep(3 * time.Second)
			return nil, errors.New("no luck")
		}}})
		if got := fmt.Sprint(d.results); got != "map[t1:[failed"+client.ErrStopped.Error()+"] t2:[failedno luck]]" || time.Since(began) > 4*time.Second {
			t.Errorf("results = %s after %v", got, time.Since(began))
		}
	})
}
