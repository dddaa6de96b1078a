package client_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
)

func TestChains(t *testing.T) {
	t.Parallel()
	c, s := speak(t,
		answer{status: 200, body: `{"jobChains":[{"TYPE":"JobChainOverview","path":"/a/c","state":"stopped"}],"eventId":7}`},
		answer{status: 204}, answer{status: 204}, answer{status: 204}, answer{status: 404, body: `{"code":"not_found","detail":"none"}`})
	states, err := c.ChainStates(t.Context())
	if diff := cmp.Diff([]client.ChainState{{Path: "/a/c", State: "stopped"}}, states); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	for name, err := range map[string]error{
		"stop": c.StopChain(t.Context(), "/a/c", true), "start": c.StopChain(t.Context(), "/a/c", false),
		"action": c.SetNodeAction(t.Context(), "/a/c", "f/x y/1", "stop"),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.StopChain(t.Context(), "/none", true); client.StatusOf(err) != 404 {
		t.Errorf("of none = %v", err)
	}
	want := []string{
		"GET /jobscheduler/master/api/jobChain/?return=JobChainOverview", "POST /api/v1/chains/%2Fa%2Fc/stop", "POST /api/v1/chains/%2Fa%2Fc/start",
		`POST /api/v1/chains/%2Fa%2Fc/nodes/f%2Fx%20y%2F1/action {"action":"stop"}`, "POST /api/v1/chains/%2Fnone/stop",
	}
	if diff := cmp.Diff(want, s.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}
