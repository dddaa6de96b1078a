package services_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/millrace/millrace/tests/containers"
)

// TestObjectsOfOrders: an object of S3 starts an order, and is moved at the order's end, once; its notification may come again.
func TestObjectsOfOrders(t *testing.T) {
	t.Parallel()
	d, target := start(t), receiver(t)
	in, out := containers.Bucket(t), containers.Bucket(t)
	d.apply(t, fmt.Sprintf(`
jobs: [{path: /topics/clock, target: {http: {url: %q}}}]
job_chains: [{path: /parcels, nodes: [{id: ship, job: /topics/clock}, {id: end}]}]
file_orders: [{chain: /parcels, directory: "s3://%s/in", pattern: "*.csv", done: {move_to: "s3://%s/done"}}]
`, target.url, in, out))
	d.bridge(t, func() string { return d.urls["worker"] })
	receive := func(sequencer string) {
		t.Helper()
		body := fmt.Sprintf(`{"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":%q},"object":{"key":"in/a.csv","sequencer":%q}}}]}`, in, sequencer)
		if status := hand(t.Context(), t, d.urls["tasks"], body); status != http.StatusNoContent {
			t.Errorf("the notification: answer %d, want 204", status)
		}
	}
	for n, text := range []string{"first", "second"} {
		sequencer := fmt.Sprint(n)
		containers.PutObject(t, in, "in/a.csv", text)
		until(t, "the object has started an order", func() bool {
			receive(sequencer) // the function may not know what is declared yet
			return target.starts("/topics/clock") == n+1
		})
		until(t, "the object has been moved", func() bool {
			d.tick(t, "sweep")
			return containers.GetObject(t, out, "done/a.csv") == text && containers.GetObject(t, in, "in/a.csv") == ""
		})
		receive(sequencer)
		until(t, "the order has finished", func() bool {
			d.tick(t, "sweep")
			status, _ := ask(t, "GET", d.urls["tasks"]+"/api/v1/orders/%2Fparcels/"+url.PathEscape("s3://"+in+"/in/a.csv"), "", "Authorization: Bearer "+secret)
			return status == http.StatusNotFound
		})
	}
	if got := target.starts("/topics/clock"); got != 2 {
		t.Errorf("%d orders ran, want 2", got)
	}
	for _, name := range []string{"tasks", "sweep"} {
		d.requests[name].Check(t)
	}
}
