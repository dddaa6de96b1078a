package sam_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAnOrderOnLambda leads an order along its chain with Lambda functions only: one adds it, others hand out its steps and take their
// results, another reads its events, which are those of one process.
func TestAnOrderOnLambda(t *testing.T) {
	ctx, gateway := startAPI(t, 5*time.Minute)
	must := func(status int, request, body string, into any) {
		t.Helper()
		got, text := ask(ctx, t, gateway.URL, request, "sample", body)
		if got != status {
			t.Fatalf("%s: %d %s, want %d", request, got, text, status)
		}
		if into != nil {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				t.Fatalf("%s: %v in %s", request, err, text)
			}
		}
	}
	must(200, "PUT /api/v1/definitions", `{"jobs":[{"path":"/step","target":{"instances":true}}],
		"job_chains":[{"path":"/walk","nodes":[{"id":"A","job":"/step"},{"id":"BB","job":"/step"},{"id":"end"}]}]}`, nil)
	must(201, "POST /api/v1/orders/walk", `{"id":"117","variables":{"n":1}}`, nil)
	var instance struct{ ID string }
	must(201, "POST /api/v1/instances", `{"name":"w","jobs":["/step"],"capacity":1}`, &instance)
	for range 2 {
		var got struct{ Claims []struct{ Token string } }
		must(200, "POST /api/v1/instances/"+instance.ID+"/claims", `{"max":1,"wait":"20s"}`, &got)
		if len(got.Claims) != 1 {
			t.Fatalf("%d claims, want 1", len(got.Claims))
		}
		must(200, "POST /api/v1/leases/"+got.Claims[0].Token+"/complete", `{"result":"ok"}`, nil)
	}
	var got struct {
		EventSnapshots []struct{ TYPE, NodeID, FromNodeID string }
	}
	must(200, "GET /jobscheduler/master/api/order/walk,117?return=Event&after=0", "", &got)
	var events []string
	for _, e := range got.EventSnapshots {
		events = append(events, fmt.Sprint(e.TYPE, " ", e.FromNodeID, ">", e.NodeID))
	}
	want := []string{"OrderAdded >A", "OrderStarted >", "OrderStepStarted >A", "OrderStepEnded >", "OrderNodeChanged A>BB",
		"OrderStepStarted >BB", "OrderStepEnded >", "OrderNodeChanged BB>end", "OrderFinished >end"}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("the order's events (-want +got):\n%s", diff)
	}
}
