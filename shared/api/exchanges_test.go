package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/exchanges"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// exchanging returns an API for instances with their exchanges, over a store that a process before may have used.
func exchanging(t *testing.T, s store.Store, change ...func(*api.Options)) *remotes {
	t.Helper()
	r := &remotes{}
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	r.there = membership.Open(membership.Options{Store: s})
	r.Queue = queue.Open(queue.Options{Store: s, Journal: j, Definitions: definitions(), Heard: r.there.Heard})
	x := exchanges.Open(exchanges.Options{Store: s, Members: r.there, Queue: r.Queue})
	options := api.Options{Tokens: tokens()}
	for _, c := range change {
		c(&options)
	}
	r.api = api.New(options, api.Tasks(r.Queue, definitions()), api.Instances(r.there, r.Queue), api.Exchange(x))
	return r
}

type outcome struct {
	Token string
	State string
	Error *struct {
		Status int
		Code   string
	}
}

type exchanged struct {
	Expires  time.Time `json:"expires_at"`
	Draining bool
	Claims   []claim
	Results  []outcome
	Stops    []string
}

func (r *remotes) exchange(t *testing.T, path, body string) exchanged {
	t.Helper()
	return into[exchanged](t, r.as(t, access.Worker, "POST", path+"/exchange", body), http.StatusOK)
}

// later makes an exchange in another goroutine.
func (r *remotes) later(t *testing.T, path, body string) <-chan reply {
	t.Helper()
	got := make(chan reply, 1)
	go func() { got <- r.as(t, access.Worker, "POST", path+"/exchange", body) }()
	synctest.Wait()
	return got
}

// bubble runs a test over both ways in which a store can be used, in virtual time.
func bubble(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	for name, s := range map[string]func() store.Store{
		"alone":  func() store.Store { return memory.New(memory.Options{}) },
		"shared": func() store.Store { return memory.New(memory.Options{Shared: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, s()) })
		})
	}
}

func (r *remotes) fill(t *testing.T, n int) {
	t.Helper()
	for range n {
		r.add(t, queue.New{Job: "/topics/a/b", Attempts: 1})
	}
}

// resultsOf is the member of results of an exchange that says ok for all claims.
func resultsOf(all []claim) string {
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = fmt.Sprintf(`{"token":%q,"result":"ok"}`, c.Token)
	}
	return `"results":[` + strings.Join(texts, ",") + `]`
}

// TestAResultSaysWhenTheNextAttemptIs: what it says comes before what the task says, also that there is no pause.
func TestAResultSaysWhenTheNextAttemptIs(t *testing.T) {
	t.Parallel()
	for _, delay := range []string{`0`, `"0s"`, `"1ms"`} {
		for _, by := range []string{"complete", "exchange"} {
			t.Run(delay+" by "+by, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := exchanging(t, memory.New(memory.Options{}))
					w := r.register(t, "/topics/a/*")
					r.add(t, queue.New{Job: "/topics/a/b", Attempts: 2, RetryDelay: time.Hour})
					c := r.exchange(t, w, `{"seq":1,"max":1}`).Claims[0]
					result := `"result":"failed","retry_delay":` + delay
					if by == "exchange" {
						r.exchange(t, w, fmt.Sprintf(`{"seq":2,"results":[{"token":%q,%s}]}`, c.Token, result))
					} else {
						into[job](t, r.as(t, access.Worker, "POST", "/api/v1/leases/"+c.Token+"/complete", "{"+result+"}"), 200)
					}
					time.Sleep(time.Millisecond) // of virtual time
					if got := r.exchange(t, w, `{"seq":3,"max":1}`).Claims; len(got) != 1 || got[0].Attempt != 2 {
						t.Errorf("claims = %+v, want the next attempt", got)
					}
				})
			})
		}
	}
}

func TestAnExchangeCarriesResultsAndClaims(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s store.Store) {
		r := exchanging(t, s)
		w := r.registerAs(t, `{"name":"w","jobs":["/topics/a/*"],"capacity":50}`)
		r.fill(t, 120)
		all := map[string]bool{}
		got := r.exchange(t, w, `{"seq":0,"max":100}`)
		for seq := 1; len(got.Claims) > 0; seq++ {
			for _, c := range got.Claims {
				all[c.ID] = true
			}
			claims := got.Claims
			if got = r.exchange(t, w, fmt.Sprintf(`{"seq":%d,"max":50,%s}`, seq, resultsOf(claims))); len(got.Results) != len(claims) {
				t.Fatalf("%d results of %d", len(got.Results), len(claims))
			}
			for i, o := range got.Results {
				if o.Token != claims[i].Token || o.State != "SUCCEEDED" {
					t.Errorf("result %d = %+v, want success of %s", i, o, claims[i].Token)
				}
			}
		}
		if len(all) != 120 {
			t.Errorf("%d tasks were claimed, want 120", len(all))
		}
	})
}

func TestARepeatedExchangeReturnsTheFirstResponse(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s store.Store) {
		r := exchanging(t, s)
		w := r.register(t, "/topics/a/*")
		r.fill(t, 9)
		first := r.exchange(t, w, `{"seq":3,"max":2}`)
		foreign := r.exchange(t, r.register(t, "/topics/a/*"), `{"seq":0,"max":1}`).Claims[0].Token
		body := fmt.Sprintf(`{"seq":5,"max":4,"beats":[{"token":%[3]q,"logs":[{"message":"once"}]}],"results":[{"token":%[1]q,"result":"ok"},`+
			`{"token":%[1]q,"result":"failed"},{"token":"never","result":"ok"},{"token":%[2]q,"result":"ok"}]}`, first.Claims[0].Token, foreign, first.Claims[1].Token)
		want := r.as(t, access.Worker, "POST", w+"/exchange", body)
		got := into[exchanged](t, want, 200)
		var codes []int
		for _, o := range got.Results[1:] {
			codes = append(codes, o.Error.Status)
		}
		if diff := cmp.Diff([]int{409, 404, 409}, codes); diff != "" || got.Results[0].State != "SUCCEEDED" || len(got.Claims) != 3 {
			t.Errorf("exchange = %s\n%s", want.body, diff)
		}
		for _, each := range []*remotes{r, r, exchanging(t, s)} { // the last after a restart
			for _, repeated := range []string{body, `{"seq":5,"max":4}`} {
				if again := each.as(t, access.Worker, "POST", w+"/exchange", repeated); again.body != want.body {
					t.Errorf("again = %d %s\nwant %s", again.StatusCode, again.body, want.body)
				}
			}
			wantProblem(t, each.as(t, access.Worker, "POST", w+"/exchange", `{"seq":4}`), 409, api.CodeConflict)
		}
		page, err := r.Logs(t.Context(), task.ID(first.Claims[1].ID), tasklog.Query{})
		if err != nil || len(page.Lines) != 1 || page.Lines[0].Message != "once" {
			t.Errorf("log = %+v, %v, want one line", page.Lines, err)
		}
	})
}

func TestMalformedExchanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := exchanging(t, memory.New(memory.Options{}))
		w := r.register(t, "/topics/a/*")
		r.fill(t, 1)
		token := r.exchange(t, w, `{"seq":1,"max":1}`).Claims[0].Token
		ok := fmt.Sprintf(`{"token":%q,"result":"ok"}`, token)
		for body, at := range map[string]string{
			`{}`: "body.seq", `{"seq":-1}`: "body.seq", `{"seq":"1"}`: "body.seq", `{"seq":2,"more":1}`: "body.more", `{"seq":2,"max":-1}`: "body.max",
			`{"seq":2,"results":[` + ok + `,{"token":"t","result":"good"}]}`:                    "body.results[1].result",
			`{"seq":2,"results":[` + ok + `,{"result":"ok"}]}`:                                  "body.results[1].token",
			`{"seq":2,"results":[` + ok + `,{"token":"t","result":"ok","variables":{"a":{}}}]}`: "body.results[1].variables.a",
			`{"seq":2,"results":[` + ok + `],"beats":[{"token":"t","logs":[{}]}]}`:              "body.beats[0].logs[0].message",
			`{"seq":2,"results":null}`: "body.results", `{"seq":2,"wait":"-1s"}`: "body.wait",
		} {
			wantProblem(t, r.as(t, access.Worker, "POST", w+"/exchange", body), 400, api.CodeInvalid, at)
		}
		large := fmt.Sprintf(`{"seq":2,"results":[%s,{"token":"t","result":"ok","output":%q}]}`, ok, strings.Repeat("x", 257<<10))
		wantProblem(t, r.as(t, access.Worker, "POST", w+"/exchange", large), 413, api.CodeTooLarge, "body.results[1].output")
		if got := r.exchange(t, w, `{"seq":2,"results":[`+ok+`],"beats":[]}`); got.Results[0].State != "SUCCEEDED" {
			t.Errorf("exchange = %+v, want the first use of this number, and the task not ended before", got)
		}
		wantProblem(t, r.as(t, access.Worker, "POST", "/api/v1/instances/0123456789abcdef/exchange", `{"seq":1}`), 404, api.CodeNotFound)
	})
}

func TestAnExchangeWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s store.Store) {
		r := exchanging(t, s)
		w := r.register(t, "/topics/a/*")
		began := time.Now()
		if got := r.exchange(t, w, `{"seq":1,"max":1,"wait":"20s"}`); time.Since(began).Round(time.Second) != 20*time.Second || len(got.Claims) != 0 {
			t.Errorf("an exchange without a task = %+v after %v", got, time.Since(began))
		}
		first := r.later(t, w, `{"seq":2,"max":1,"wait":"20s"}`)
		second := r.later(t, w, `{"seq":2,"max":1,"wait":"20s"}`) // takes its place
		wantProblem(t, <-first, 409, api.CodeConflict)
		r.fill(t, 1)
		got := into[exchanged](t, <-second, 200)
		if len(got.Claims) != 1 {
			t.Fatalf("claims = %+v, want one", got.Claims)
		}
		third := r.later(t, w, `{"seq":3,"max":1,"wait":"P99999999999D"}`)
		if fourth := r.exchange(t, w, `{"seq":4,`+resultsOf(got.Claims)+`}`); fourth.Results[0].State != "SUCCEEDED" {
			t.Errorf("results = %+v", fourth.Results)
		}
		if over := into[exchanged](t, <-third, 200); len(over.Claims) != 0 {
			t.Errorf("a wait that a later exchange has ended = %+v", over)
		}
		drained := r.later(t, w, `{"seq":5,"max":1,"wait":"20s"}`)
		if got := r.as(t, access.Operator, "POST", w+"/drain", ""); got.StatusCode != http.StatusNoContent {
			t.Errorf("drain = %d %s", got.StatusCode, got.body)
		}
		if got := into[exchanged](t, <-drained, 200); !got.Draining {
			t.Errorf("exchange = %+v, want draining", got)
		}
		r.fill(t, 1)
		if got := r.exchange(t, w, `{"seq":6,"max":1}`); !got.Draining || len(got.Claims) != 0 {
			t.Errorf("exchange = %+v, want no claims while it drains", got)
		}
		gone := r.later(t, w, `{"seq":7,"max":1,"wait":"20s"}`)
		r.as(t, access.Worker, "DELETE", w, "")
		wantProblem(t, <-gone, 404, api.CodeNotFound)
	})
}

// A wait that was under way when the server died goes on with its repetition.
func TestAWaitOutlivesARestart(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s store.Store) {
		r := exchanging(t, s)
		w := r.register(t, "/topics/a/*")
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			r.do(t, request(t, access.Worker, "POST", w+"/exchange", `{"seq":1,"max":1,"wait":"20s"}`).WithContext(ctx))
		}()
		synctest.Wait()
		cancel()
		<-over
		again := exchanging(t, s)
		repeated := again.later(t, w, `{"seq":1,"max":1,"wait":"20s"}`)
		again.fill(t, 1)
		if got := into[exchanged](t, <-repeated, 200); len(got.Claims) != 1 {
			t.Errorf("exchange = %+v, want a claim", got)
		}
	})
}

// Claims go back when the lease of an instance that is gone is over. Each counts as an attempt, whether the response was read or not: a
// task that kills its worker before the next exchange must not be tried for ever.
func TestUnreadClaimsGoBack(t *testing.T) {
	t.Parallel()
	for _, read := range []bool{true, false} {
		t.Run(fmt.Sprint(read), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s store.Store) {
				r := exchanging(t, s)
				w := r.register(t, "/topics/a/*")
				r.fill(t, 1)
				c := r.exchange(t, w, `{"seq":1,"max":1}`).Claims[0]
				if read {
					r.exchange(t, w, `{"seq":2}`)
				}
				time.Sleep(29 * time.Second)
				if _, err := r.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got, err := r.Get(t.Context(), task.ID(c.ID)); err != nil || got.State != task.Running {
					t.Errorf("before its end the task is %s, %v", got.State, err)
				}
				time.Sleep(2 * time.Second)
				if _, err := r.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				got, err := r.Get(t.Context(), task.ID(c.ID))
				if err != nil || !got.State.Final() {
					t.Errorf("the task is %s, %v", got.State, err)
				}
			})
		})
	}
}

func TestAnExchangeKeepsLeasesAndTellsStops(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s store.Store) {
		r := exchanging(t, s)
		w := r.register(t, "/topics/a/*")
		r.fill(t, 3)
		claims := r.exchange(t, w, `{"seq":1,"max":3}`).Claims
		for seq := 2; seq < 8; seq++ { // two minutes
			if got := r.exchange(t, w, fmt.Sprintf(`{"seq":%d,"wait":"20s"}`, seq)); len(got.Stops) > 0 || !got.Expires.After(time.Now().Add(10*time.Second)) {
				t.Errorf("exchange = %+v at %v", got, time.Now())
			}
		}
		waiting := r.later(t, w, `{"seq":8,"wait":"20s"}`)
		if _, err := r.Stop(t.Context(), task.ID(claims[0].ID)); err != nil {
			t.Fatal(err)
		}
		if got := into[exchanged](t, <-waiting, 200); !cmp.Equal(got.Stops, []string{claims[0].Token}) {
			t.Errorf("stops = %v, want that of the task that was asked to stop", got.Stops)
		}
		waiting = r.later(t, w, `{"seq":9,"wait":"20s"}`)
		if err := r.Remove(t.Context(), task.ID(claims[1].ID)); err != nil {
			t.Fatal(err)
		}
		got := into[exchanged](t, <-waiting, 200)
		if !cmp.Equal(got.Stops, []string{claims[1].Token}) {
			t.Errorf("stops = %v, want that of the task that was removed alone", got.Stops)
		}
		body := fmt.Sprintf(`{"seq":10,"results":[{"token":%q,"result":"cancel"},{"token":%q,"result":"ok"}],"beats":[{"token":"never"}]}`, claims[0].Token, claims[1].Token)
		got = r.exchange(t, w, body)
		if got.Results[0].State != "STOPPED" || got.Results[1].Error.Status != 409 || !cmp.Equal(got.Stops, []string{"never"}) {
			t.Errorf("exchange = %+v", got)
		}
	})
}
