package api_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/queue"
)

// A claim that is repeated with its Idempotency-Key gets the first response again, also when the instance is to take nothing more;
// with another body, or while the first still waits, it is refused.
func TestAClaimIsRepeatedByItsKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := instances(t)
		w := r.register(t, "/topics/a")
		keyed := func(body, key string) reply {
			return r.as(t, access.Worker, "POST", w+"/claims", body, "Idempotency-Key", key)
		}
		for range 3 {
			r.add(t, queue.New{Job: "/topics/a", Attempts: 3})
		}
		claimed := func(got reply, replayed string) []claim {
			t.Helper()
			if said := got.Header.Get("Idempotent-Replayed"); said != replayed {
				t.Errorf("Idempotent-Replayed = %q, want %q", said, replayed)
			}
			all := into[struct{ Claims []claim }](t, got, http.StatusOK).Claims
			for i := range all {
				all[i].Expires = time.Time{}
			}
			return all
		}
		first := claimed(keyed(`{"max":2,"wait":10}`, "k"), "")
		if len(first) != 2 {
			t.Fatalf("claims = %+v, want 2", first)
		}
		if got := r.as(t, access.Operator, "POST", w+"/drain", ""); got.StatusCode != 204 {
			t.Fatalf("drain = %d %s", got.StatusCode, got.body)
		}
		time.Sleep(20 * time.Second)
		if diff := cmp.Diff(first, claimed(keyed(`{"max":2,"wait":10}`, "k"), "true")); diff != "" {
			t.Errorf("repeated (-first +again):\n%s", diff)
		}
		wantProblem(t, keyed(`{"max":3,"wait":10}`, "k"), 422, api.CodeMismatch, "header.Idempotency-Key")
		wantProblem(t, keyed(`{"max":3}`, "no key"), 400, api.CodeInvalid, "header.Idempotency-Key")
		var group sync.WaitGroup
		group.Go(func() { claimed(keyed(`{"wait":5}`, "l"), "") })
		synctest.Wait()
		wantProblem(t, keyed(`{"wait":5}`, "l"), 409, api.CodeInProgress, "header.Idempotency-Key")
		group.Wait()
		time.Sleep(20 * time.Second) // 30 s after the first response, and extended since
		if got := r.as(t, access.Worker, "POST", "/api/v1/leases/"+first[0].Token+"/complete", `{"result":"ok"}`); got.StatusCode != 200 {
			t.Errorf("complete = %d %s", got.StatusCode, got.body)
		}
	})
}

// The response says how long the claim had waited for its tasks, so that a worker knows since when it has them at least.
func TestAClaimSaysHowLongItWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := instances(t)
		w := r.register(t, "/topics/a")
		var got reply
		var group sync.WaitGroup
		group.Go(func() { got = r.as(t, access.Worker, "POST", w+"/claims", `{"wait":20}`) })
		time.Sleep(7 * time.Second)
		r.add(t, queue.New{Job: "/topics/a"})
		group.Wait()
		if !strings.HasSuffix(strings.TrimSpace(got.body), `"waited":7}`) {
			t.Errorf("claims = %s, want waited 7", got.body)
		}
	})
}
