package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/tasklog"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/task"
)

// remotes is an API for instances over a real engine.
type remotes struct {
	bundle
	*queue.Queue
	there *membership.Membership
}

func instances(t *testing.T, change ...func(*api.Options)) *remotes {
	t.Helper()
	r := &remotes{}
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	there := membership.Open(membership.Options{Store: s})
	r.there = there
	r.Queue = queue.Open(queue.Options{Store: s, Journal: j, Definitions: definitions(), Heard: there.Heard})
	more := access.NewToken("other", access.Worker, "other-secret")
	options := api.Options{Tokens: append(tokens(), more)}
	for _, c := range change {
		c(&options)
	}
	r.api = api.New(options, api.Tasks(r.Queue, definitions()), api.Instances(there, r.Queue))
	return r
}

func (r *remotes) register(t *testing.T, jobs string) (path string) {
	t.Helper()
	return r.registerAs(t, `{"name":"w","jobs":["`+jobs+`"],"capacity":4}`)
}

func (r *remotes) registerAs(t *testing.T, instance string) (path string) {
	t.Helper()
	got := r.as(t, access.Worker, "POST", "/api/v1/instances", instance)
	i := into[struct {
		ID    string
		Lease float64
	}](t, got, http.StatusCreated)
	if i.Lease != membership.DefaultLease.Seconds() {
		t.Errorf("a new instance's lease = %v s, want %v", i.Lease, membership.DefaultLease)
	}
	return "/api/v1/instances/" + i.ID
}

func (r *remotes) add(t *testing.T, n queue.New) task.Task {
	t.Helper()
	n.Dialect = task.Job
	e, err := r.Enqueue(t.Context(), nil, n)
	if err != nil {
		t.Fatal(err)
	}
	return e.Tasks[0].Task
}

type claim struct {
	ID      string    `json:"id"`
	Token   string    `json:"token"`
	Job     string    `json:"job"`
	Attempt int       `json:"attempt"`
	Payload any       `json:"payload"`
	Expires time.Time `json:"expires_at"`
	Lease   float64   `json:"lease"`
}

// claims claims for the instance at a path.
func (r *remotes) claims(t *testing.T, path, body string) []claim {
	t.Helper()
	return into[struct{ Claims []claim }](t, r.as(t, access.Worker, "POST", path+"/claims", body), http.StatusOK).Claims
}

func TestInstanceRunsATask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := instances(t)
		w := r.register(t, "/topics/a/*")
		if got := r.claims(t, w, `{"max":4}`); len(got) != 0 {
			t.Errorf("claims of nothing = %+v", got)
		}
		r.add(t, queue.New{Job: "/topics/b/c"})
		added := r.add(t, queue.New{Job: "/topics/a/b", Payload: []byte(`{"n":1}`), Attempts: 2})
		got := r.claims(t, w, `{"max":4}`)
		if len(got) != 1 {
			t.Fatalf("claims = %+v, want one", got)
		}
		c := got[0]
		want := claim{string(added.ID), c.Token, "/topics/a/b", 1, map[string]any{"n": 1.0}, c.Expires, 30}
		if diff := cmp.Diff(want, c); diff != "" {
			t.Error(diff)
		}
		if left := time.Until(c.Expires).Round(time.Second); left != 30*time.Second {
			t.Errorf("expires in %v, want 30s", left)
		}
		beat := `{"progress":{"step":1,"steps":2,"message":"half"},"logs":[{"message":"hello"},{"level":"error","message":"oh"}]}`
		alive := into[struct{ Stop bool }](t, r.as(t, access.Worker, "POST", "/api/v1/leases/"+c.Token+"/heartbeat", beat), 200)
		if alive.Stop {
			t.Error("a stop that nobody asked for")
		}
		list := r.as(t, access.Viewer, "GET", "/api/v1/instances", "").body
		for _, part := range []string{`"name":"w"`, `"running":1`, `"leader":true`, `"capacity":4`} {
			if !strings.Contains(list, part) {
				t.Errorf("instances = %s, want %s", list, part)
			}
		}
		page, err := r.Logs(t.Context(), added.ID, tasklog.Query{})
		if err != nil || len(page.Lines) != 2 || page.Lines[1].Level != "error" {
			t.Errorf("log = %+v, %v", page.Lines, err)
		}
		if _, err := r.Stop(t.Context(), added.ID); err != nil {
			t.Fatal(err)
		}
		if got := r.as(t, access.Worker, "POST", "/api/v1/leases/"+c.Token+"/heartbeat", `{"logs":[]}`); !strings.Contains(got.body, `"stop":true`) {
			t.Errorf("heartbeat = %s, want stop", got.body)
		}
		done := r.as(t, access.Worker, "POST", "/api/v1/leases/"+c.Token+"/complete", `{"result":"cancel"}`)
		if state := into[struct{ State string }](t, done, 200).State; state != "STOPPED" {
			t.Errorf("state = %s, want STOPPED", state)
		}
		for _, act := range []string{"/complete", "/heartbeat"} {
			body := map[string]string{"/complete": `{"result":"ok"}`, "/heartbeat": `{}`}[act]
			wantProblem(t, r.as(t, access.Worker, "POST", "/api/v1/leases/"+c.Token+act, body), 409, api.CodeConflict)
			wantProblem(t, r.as(t, access.Worker, "POST", "/api/v1/leases/never"+act, body), 404, api.CodeNotFound)
		}
	})
}

func TestClaimWaitsAndIsWoken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := instances(t)
		w := r.register(t, "/topics/a/**")
		began := time.Now()
		if got := r.claims(t, w, `{"wait":"7s"}`); len(got) != 0 || time.Since(began) != 7*time.Second {
			t.Errorf("claims = %v after %v, want none after 7s", got, time.Since(began))
		}
		began = time.Now()
		var got []claim
		var group sync.WaitGroup
		group.Go(func() { got = r.claims(t, w, `{"wait":20}`) })
		time.Sleep(3 * time.Second)
		r.add(t, queue.New{Job: "/topics/b"})
		r.add(t, queue.New{Job: "/topics/a/b/c"})
		group.Wait()
		if len(got) != 1 || time.Since(began) != 3*time.Second {
			t.Errorf("claims = %v after %v, want one at once", got, time.Since(began))
		}
	})
}

// TestPartitionedInstance: a task that it completes after its lease had run out is refused, with a line in the task's log; the
// task runs elsewhere.
func TestPartitionedInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := instances(t)
		first := r.register(t, "/topics/a/b")
		added := r.add(t, queue.New{Job: "/topics/a/b", Attempts: 3})
		lost := r.claims(t, first, `{}`)[0]
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.Run(ctx)
		time.Sleep(31 * time.Second)
		wantProblem(t, r.as(t, access.Worker, "PUT", first, `{}`), 404, api.CodeNotFound)
		second := r.register(t, "/topics/a/b")
		again := r.claims(t, second, `{"wait":"1m"}`)
		if len(again) != 1 || again[0].ID != lost.ID || again[0].Attempt != 2 {
			t.Fatalf("claims of another instance = %+v, want the second attempt", again)
		}
		for range 2 {
			wantProblem(t, r.as(t, access.Worker, "POST", "/api/v1/leases/"+lost.Token+"/complete", `{"result":"ok"}`), 409, api.CodeConflict)
		}
		page, err := r.Logs(t.Context(), added.ID, tasklog.Query{})
		if err != nil || len(page.Lines) != 1 || !strings.Contains(page.Lines[0].Message, "attempt 1 came when its lease was over") {
			t.Errorf("log = %+v, %v, want the late result, once", page.Lines, err)
		}
		done := r.as(t, access.Worker, "POST", "/api/v1/leases/"+again[0].Token+"/complete", `{"result":"ok"}`)
		if done.StatusCode != 200 {
			t.Errorf("complete = %d %s", done.StatusCode, done.body)
		}
	})
}

// TestCapacity: the leases that an instance holds count, not what it asks for. One that waits for a free slot is woken when it
// has one; a task that becomes ready meanwhile wakes another.
func TestCapacity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := instances(t)
		full := r.registerAs(t, `{"name":"full","jobs":["/topics/a"],"capacity":2}`)
		for range 5 {
			r.add(t, queue.New{Job: "/topics/a"})
		}
		held := r.claims(t, full, `{"max":2}`)
		if more := r.claims(t, full, `{"max":2}`); len(held) != 2 || len(more) != 0 {
			t.Fatalf("claims = %d, then %d, want 2 and none", len(held), len(more))
		}
		began := time.Now()
		var got []claim
		var group sync.WaitGroup
		group.Go(func() { got = r.claims(t, full, `{"max":2,"wait":"1m"}`) })
		time.Sleep(3 * time.Second)
		done := r.as(t, access.Worker, "POST", "/api/v1/leases/"+held[0].Token+"/complete", `{"result":"ok"}`)
		if done.StatusCode != 200 {
			t.Fatalf("complete = %d %s", done.StatusCode, done.body)
		}
		group.Wait()
		if len(got) != 1 || time.Since(began) != 3*time.Second {
			t.Errorf("claims = %v after %v, want one when there was room", got, time.Since(began))
		}

		free := r.register(t, "/topics/a")
		r.claims(t, free, `{"max":2}`) // the rest of what waited
		group.Go(func() {
			if got := r.claims(t, full, `{"max":2,"wait":"5s"}`); len(got) != 0 {
				t.Errorf("claims = %v, want none: it is full", got)
			}
		})
		synctest.Wait()
		group.Go(func() { got = r.claims(t, free, `{"wait":99999999999999999999}`) })
		synctest.Wait()
		r.add(t, queue.New{Job: "/topics/a"})
		group.Wait()
		if len(got) != 1 {
			t.Errorf("claims of another = %v, want the new task", got)
		}
		if list := r.as(t, access.Viewer, "GET", "/api/v1/instances", "").body; !strings.Contains(list, `"capacity":2,"running":2`) {
			t.Errorf("instances = %s", list)
		}
	})
}

// A claim that waits takes account of changes of the instance meanwhile: other jobs, more capacity, that it leaves.
func TestAClaimThatWaitsFollowsItsInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := instances(t)
		for _, job := range []string{"/topics/a", "/topics/a", "/topics/b"} {
			r.add(t, queue.New{Job: job})
		}
		w := r.registerAs(t, `{"name":"w","jobs":["/topics/a"],"capacity":1}`)
		r.claims(t, w, `{}`)
		for _, change := range []string{`{"capacity":2}`, `{"capacity":3,"jobs":["/topics/b"]}`} {
			var got []claim
			var group sync.WaitGroup
			began := time.Now()
			group.Go(func() { got = r.claims(t, w, `{"wait":"20s"}`) })
			time.Sleep(3 * time.Second)
			if beat := r.as(t, access.Worker, "PUT", w, change); beat.StatusCode != 200 {
				t.Fatalf("heartbeat = %d %s", beat.StatusCode, beat.body)
			}
			group.Wait()
			if len(got) != 1 || time.Since(began) != 3*time.Second {
				t.Errorf("%s: claims = %v after %v, want one at once", change, got, time.Since(began))
			}
		}
		var left reply
		var group sync.WaitGroup
		began := time.Now()
		group.Go(func() { left = r.as(t, access.Worker, "POST", w+"/claims", `{"wait":"20s"}`) })
		time.Sleep(3 * time.Second)
		r.as(t, access.Worker, "DELETE", w, "")
		group.Wait()
		if left.StatusCode != 404 || time.Since(began) != 3*time.Second {
			t.Errorf("a claim of an instance that left = %d after %v, want 404 at once", left.StatusCode, time.Since(began))
		}
	})
}

// A task that becomes ready goes to an instance that takes it, though another has waited longer that drains or has left meanwhile.
func TestATaskIsNotKeptForAnInstanceThatGetsNone(t *testing.T) {
	t.Parallel()
	for name, end := range map[string][2]string{"it drains": {"POST", "/drain"}, "it has left": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := instances(t)
				first, second := r.register(t, "/topics/a"), r.register(t, "/topics/a")
				var group sync.WaitGroup
				defer group.Wait()
				group.Go(func() { r.as(t, access.Worker, "POST", first+"/claims", `{"wait":"20s"}`) })
				synctest.Wait()
				began := time.Now()
				group.Go(func() {
					if got := r.claims(t, second, `{"wait":"20s"}`); len(got) != 1 || time.Since(began) != 3*time.Second {
						t.Errorf("claims = %v after %v, want the task at once", got, time.Since(began))
					}
				})
				time.Sleep(3 * time.Second)
				if end[0] != "" {
					r.as(t, access.Operator, end[0], first+end[1], "")
				} else if err := r.there.Leave(t.Context(), first[len("/api/v1/instances/"):]); err != nil {
					t.Fatal(err)
				}
				r.add(t, queue.New{Job: "/topics/a"})
			})
		})
	}
}

func TestDrainedInstanceIsGivenNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := instances(t)
		w := r.register(t, "/topics/a")
		r.add(t, queue.New{Job: "/topics/a"})
		if got := r.as(t, access.Operator, "POST", w+"/drain", ""); got.StatusCode != 204 {
			t.Fatalf("drain = %d %s", got.StatusCode, got.body)
		}
		if got := r.claims(t, w, `{"max":4}`); len(got) != 0 {
			t.Errorf("claims = %+v, want none", got)
		}
		if got := r.as(t, access.Worker, "PUT", w, `{}`); !strings.Contains(got.body, `"lease":30,"draining":true`) {
			t.Errorf("heartbeat = %s, want draining", got.body)
		}
		if got := r.as(t, access.Worker, "DELETE", w, ""); got.StatusCode != 204 {
			t.Errorf("leave = %d %s", got.StatusCode, got.body)
		}
		wantProblem(t, r.as(t, access.Worker, "DELETE", w, ""), 404, api.CodeNotFound)
	})
}

func TestWorkersSeeTheirOwn(t *testing.T) {
	t.Parallel()
	r := instances(t)
	w := r.register(t, "/topics/a")
	ask := func(method, path, body string) reply {
		q := request(t, "", method, path, body)
		q.Header.Set("Authorization", "Bearer other-secret")
		return r.do(t, q)
	}
	for _, call := range [][3]string{{"PUT", w, `{}`}, {"DELETE", w, ""}, {"POST", w + "/claims", `{}`}} {
		wantProblem(t, ask(call[0], call[1], call[2]), 404, api.CodeNotFound)
	}
	wantProblem(t, ask("GET", "/api/v1/instances?cursor=x", ""), 400, api.CodeInvalid, "query.cursor")
	if got := ask("GET", "/api/v1/instances", ""); got.body != `{"instances":[]}` {
		t.Errorf("instances of another = %s", got.body)
	}
	for role, want := range map[access.Role]int{access.Viewer: 200, access.Worker: 200, access.Operator: 200, access.Producer: 403, access.Consumer: 403} {
		if got := r.as(t, role, "GET", "/api/v1/instances", ""); got.StatusCode != want {
			t.Errorf("instances for %s = %d, want %d", role, got.StatusCode, want)
		}
	}
	wantProblem(t, r.as(t, access.Worker, "POST", w+"/drain", ""), 403, api.CodeForbidden)
	wantProblem(t, r.as(t, access.Producer, "POST", "/api/v1/instances", `{}`), 403, api.CodeForbidden)
}

func TestInstanceRefusals(t *testing.T) {
	t.Parallel()
	r := instances(t)
	w := r.register(t, "/topics/a")
	for _, c := range []struct{ method, path, body, location string }{
		{"POST", "/api/v1/instances", `{"jobs":["/a"],"capacity":1}`, "body.name"},
		{"POST", "/api/v1/instances", `{"name":"w","jobs":["/a*"],"capacity":1}`, "body.jobs[0]"},
		{"POST", "/api/v1/instances", `{"name":"w","jobs":[],"capacity":1}`, "body.jobs"},
		{"POST", "/api/v1/instances", `{"name":"w","jobs":["/a"],"capacity":0}`, "body.capacity"},
		{"PUT", w, `{"name":"other"}`, "body.name"},
		{"POST", w + "/claims", `{"max":0}`, "body.max"},
		{"POST", w + "/claims", `{"wait":"soon"}`, "body.wait"},
		{"POST", "/api/v1/leases/x/heartbeat", `{"logs":[{"level":"loud","message":"m"}]}`, "body.logs[0].level"},
		{"POST", "/api/v1/leases/x/heartbeat", `{"progress":{"step":1}}`, "body.progress.steps"},
		{"POST", "/api/v1/leases/x/complete", `{"result":"lost"}`, "body.result"},
		{"POST", "/api/v1/leases/x/complete", `{"result":"ok","variables":[]}`, "body.variables"},
		{"POST", "/api/v1/leases/x/complete", `{"result":"ok","variables":{"a":1,"b":{}}}`, "body.variables.b"},
		{"POST", "/api/v1/leases/x/complete", `{"result":"ok","variables":{"b":[null]}}`, "body.variables.b"},
		{"POST", "/api/v1/leases/x/complete", `{}`, "body.result"},
	} {
		wantProblem(t, r.as(t, access.Worker, c.method, c.path, c.body), 400, api.CodeInvalid, c.location)
	}
	large := strings.Repeat("x", 256<<10)
	for _, c := range []struct{ act, body, location string }{
		{"heartbeat", `{"logs":[{"message":"` + large + `"}]}`, "body.logs[0].message"},
		{"complete", `{"result":"failed","message":"` + large + `"}`, "body.message"},
		{"complete", `{"result":"ok","output":"` + large + `"}`, "body.output"},
	} {
		wantProblem(t, r.as(t, access.Worker, "POST", "/api/v1/leases/x/"+c.act, c.body), 413, api.CodeTooLarge, c.location)
	}
}

// TestAThousandWait: idle instances cost nothing, and each task wakes one of them.
func TestAThousandWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := instances(t)
		w := r.registerAs(t, `{"name":"w","jobs":["/topics/a"],"capacity":1000}`)
		var mu sync.Mutex
		ran := map[string]int{}
		var group sync.WaitGroup
		for range 1000 {
			group.Go(func() {
				for _, c := range r.claims(t, w, `{"wait":"20s"}`) {
					mu.Lock()
					ran[c.ID]++
					mu.Unlock()
				}
			})
		}
		synctest.Wait()
		for i := range 300 {
			r.add(t, queue.New{Job: "/topics/a", Payload: fmt.Appendf(nil, "%d", i)})
		}
		synctest.Wait()
		mu.Lock()
		if len(ran) != 300 {
			t.Errorf("%d tasks were claimed at once, want 300", len(ran))
		}
		mu.Unlock()
		group.Wait()
	})
}

// TestAnyRequestIsAHeartbeat: an instance that claims, waits for a task, keeps a lease or completes needs no heartbeat of its own.
func TestAnyRequestIsAHeartbeat(t *testing.T) {
	t.Parallel()
	ask := func(t *testing.T, r *remotes, path, body string) {
		t.Helper()
		if got := r.as(t, access.Worker, "POST", path, body); got.StatusCode != http.StatusOK {
			t.Fatalf("POST %s = %d %s", path, got.StatusCode, got.body)
		}
	}
	lease := func(t *testing.T, r *remotes, w string) string {
		r.add(t, queue.New{Job: "/topics/a/b", Attempts: 1})
		return "/api/v1/leases/" + r.claims(t, w, `{"max":1}`)[0].Token
	}
	for name, stay := range map[string]func(*testing.T, *remotes, string){
		"claims": func(t *testing.T, r *remotes, w string) {
			for range 5 {
				time.Sleep(25 * time.Second)
				ask(t, r, w+"/claims", `{"max":1}`)
			}
		},
		"waits for a task": func(t *testing.T, r *remotes, w string) { ask(t, r, w+"/claims", `{"max":1,"wait":"130s"}`) },
		"keeps a lease": func(t *testing.T, r *remotes, w string) {
			held := lease(t, r, w)
			for range 5 {
				time.Sleep(25 * time.Second)
				ask(t, r, held+"/heartbeat", `{}`)
			}
		},
		"completes": func(t *testing.T, r *remotes, w string) {
			for range 5 {
				held := lease(t, r, w)
				time.Sleep(25 * time.Second)
				ask(t, r, held+"/complete", `{"result":"ok"}`)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := instances(t)
				w := r.register(t, "/topics/**")
				stay(t, r, w)
				if list := r.as(t, access.Viewer, "GET", "/api/v1/instances", "").body; !strings.Contains(list, `"name":"w"`) {
					t.Errorf("instances = %s, want it there", list)
				}
				time.Sleep(membership.DefaultLease)
				wantProblem(t, r.as(t, access.Worker, "POST", w+"/claims", `{"max":1}`), 404, api.CodeNotFound)
			})
		})
	}
}
