package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/membership"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/store/memory"
)

// deployed is an API for jobs, definitions and instances over one store.
func deployed(t *testing.T) (*works, *remotes) {
	t.Helper()
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	catalog := definition.OpenCatalog(definition.CatalogOptions{Store: s, Journal: j})
	places := membership.Open(membership.Options{Store: s})
	w := &works{Queue: queue.Open(queue.Options{Store: s, Journal: j, Definitions: catalog, Instances: places.Claimers})}
	w.api = api.New(api.Options{Tokens: tokens()}, api.Tasks(w.Queue, catalog), api.Jobs(w.Queue, catalog), api.Queues(w.Queue, catalog),
		api.Define(catalog), api.Instances(places, w.Queue))
	return w, &remotes{bundle: w.bundle, Queue: w.Queue}
}

// A job that waits goes to those that run its topic now: instances, this server once it is declared so, and instances again.
func TestAJobFollowsWhoRunsItsTopic(t *testing.T) {
	t.Parallel()
	w, r := deployed(t)
	declare := func(yaml string) {
		t.Helper()
		if got := w.as(t, access.Admin, "PUT", definitionsPath, yaml); got.StatusCode != 200 {
			t.Fatalf("definitions = %d %s", got.StatusCode, got.body)
		}
	}
	instance := r.register(t, "/topics/*")
	first, second := w.add(t, 201, `{"topic":"a"}`)["id"].(string), w.add(t, 201, `{"topic":"a"}`)["id"].(string)
	if why := w.why(t, first); why.Code != "next" {
		t.Errorf("why = %+v, want it to be the next", why)
	}
	declare(run("a"))
	if got := r.claims(t, instance, `{"max":4}`); len(got) != 0 {
		t.Errorf("an instance runs %v, want nothing", got)
	}
	if why := w.why(t, first); why.Code != "next" {
		t.Errorf("why = %+v, want it to be the next", why)
	}
	lease, err := w.Claim(t.Context(), queue.Claimer{Instance: "server"}, 1)
	if err != nil || len(lease) != 1 || string(lease[0].Task.ID) != first {
		t.Fatalf("the server runs %v, %v, want %s", lease, err, first)
	}
	w.finish(t, lease[0], queue.OK)
	declare("{}")
	if got := w.claim(t); len(got) != 0 {
		t.Errorf("the server runs %v, want nothing", got)
	}
	if got := w.job(t, second); got["state"] != "QUEUED" {
		t.Errorf("the job is %v, want it queued", got)
	}
	if got := r.claims(t, instance, `{"max":4}`); len(got) != 1 || got[0].ID != second {
		t.Errorf("the instance runs %v, want %s", got, second)
	}
}

// A job is kept for the instance that it prefers, if that has a free slot and may be given jobs; otherwise any instance may claim it.
func TestPreferredInstance(t *testing.T) {
	t.Parallel()
	w, r := deployed(t)
	mine := r.registerAs(t, `{"name":"mine","jobs":["/topics/*"],"capacity":2}`)
	other := r.registerAs(t, `{"name":"other","jobs":["/topics/*"],"capacity":10}`)
	add := func() string {
		t.Helper()
		return w.add(t, 201, `{"topic":"a","prefer_instance":"mine"}`)["id"].(string)
	}
	claims := func(instance string, want ...string) {
		t.Helper()
		var got []string
		for _, c := range r.claims(t, instance, `{"max":10}`) {
			got = append(got, c.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("claims of %s (-want +got):\n%s", instance, diff)
		}
	}
	first := add()
	claims(other)
	claims(mine, first)
	second := add()
	claims(mine, second)
	claims(other, add()) // the instance is full
	gone := r.registerAs(t, `{"name":"gone","jobs":["/topics/*"],"capacity":2}`)
	if got := w.as(t, access.Operator, "POST", gone+"/drain", ""); got.StatusCode != 204 {
		t.Fatalf("drain = %d %s", got.StatusCode, got.body)
	}
	claims(other, w.add(t, 201, `{"topic":"a","prefer_instance":"gone"}`)["id"].(string))
}
