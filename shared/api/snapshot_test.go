package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
)

func TestSnapshots(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, plural := range map[string]string{
		"order": "orders", "job": "jobs", "jobChain": "jobChains", "task": "tasks", "fileBased": "fileBaseds", "object": "objects",
	} {
		overview := strings.ToUpper(name[:1]) + name[1:] + "Overview"
		want := fmt.Sprintf(`{"%s":[],"eventId":%d}`, plural, firstID-1)
		for _, target := range []string{name + "/", name + "/aFolder/", name + "/aFolder%2F", name + "/aFolder"} {
			if got := b.as(t, access.Viewer, "GET", base+"/"+target+"?return="+overview, ""); got.body != want {
				t.Errorf("GET %s = %d %s, want %s", target, got.StatusCode, got.body, want)
			}
		}
		if got := b.as(t, access.Viewer, "POST", base+"/"+name+"?return="+overview, `{"path":"/aFolder/"}`); got.body != want {
			t.Errorf("POST %s = %d %s, want %s", name, got.StatusCode, got.body, want)
		}
	}
}

func TestSnapshotByPath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.journal.snapshots["OrderOverview"] = []object{
		{"/a/x,1", `{"TYPE":"OrderOverview","path":"/a/x,1"}`},
		{"/a/x,2", `{"TYPE":"OrderOverview","path":"/a/x,2"}`},
		{"/b,1", `{"TYPE":"OrderOverview","path":"/b,1"}`},
	}
	for path, want := range map[string][]string{
		"":        {"/a/x,1", "/a/x,2", "/b,1"},
		"a/":      {"/a/x,1", "/a/x,2"},
		"*":       {"/b,1"},
		"a/x":     {"/a/x,1", "/a/x,2"},
		"a/x,2":   {"/a/x,2"},
		"a/|/b":   {"/a/x,1", "/a/x,2", "/b,1"},
		"none/":   {},
		"a/x%2C1": {"/a/x,1"},
	} {
		got := b.as(t, access.Viewer, "GET", base+"/order/"+path+"?return=OrderOverview", "")
		var answer struct{ Orders []struct{ Path string } }
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
			t.Fatalf("%s: %v", got.body, err)
		}
		paths := []string{}
		for _, o := range answer.Orders {
			paths = append(paths, o.Path)
		}
		if diff := cmp.Diff(want, paths); diff != "" {
			t.Errorf("%q: %s", path, diff)
		}
	}
}

// A task is found by its job's path.
func TestSnapshotOfTasks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.journal.snapshots["TaskOverview"] = []object{{"/a/job\x007", `{"taskId":"7"}`}, {"/b\x008", `{"taskId":"8"}`}}
	for path, want := range map[string]string{"a/": `{"taskId":"7"}`, "b": `{"taskId":"8"}`, "a/job": `{"taskId":"7"}`} {
		got := b.as(t, access.Viewer, "GET", base+"/task/"+path+"?return=TaskOverview", "")
		if !strings.HasPrefix(got.body, `{"tasks":[`+want+`]`) {
			t.Errorf("%s = %s, want %s", path, got.body, want)
		}
	}
}

// A snapshot larger than what is held back is sent on as it is read, and is complete all the same.
func TestSnapshotLarge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 5000 {
		key := fmt.Sprintf("/o/%d", i)
		b.journal.snapshots["ObjectOverview"] = append(b.journal.snapshots["ObjectOverview"],
			object{key, fmt.Sprintf(`{"TYPE":"ObjectOverview","key":%q}`, key)})
	}
	got := b.as(t, access.Viewer, "GET", base+"/object/?return=ObjectOverview", "")
	var answer struct {
		Objects []struct{ Key string }
		EventID int64 `json:"eventId"`
	}
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || len(answer.Objects) != 5000 || answer.EventID != int64(firstID)-1 {
		t.Errorf("%d objects at %d, %v", len(answer.Objects), answer.EventID, err)
	}
}

// A projection that the server does not have is not found, and not in the description. Events of its objects are.
func TestMissingOverviews(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *api.Options) { o.Missing = []string{"OrderOverview", "JobChainOverview"} })
	for target, status := range map[string]int{
		"order/?return=OrderOverview":          404,
		"jobChain/a?return=JobChainOverview":   404,
		"order/?return=OrderStatisticsChanged": 200, // there are none, and it says so
		"order/?return=OrderEvent&after=0":     200,
		"job/?return=JobOverview":              200,
		"task/?return=TaskOverview":            200,
		"order/?return=JobChainOverview":       400,
	} {
		got := b.as(t, access.Viewer, "GET", base+"/"+target, "")
		if got.StatusCode != status {
			t.Errorf("GET %s = %d %s, want %d", target, got.StatusCode, got.body, status)
		}
		if status == 404 {
			wantProblem(t, got, 404, api.CodeNotFound, "query.return")
		}
	}
	wantProblem(t, b.as(t, access.Viewer, "POST", base+"/order?return=OrderOverview", `{}`), 404, api.CodeNotFound, "query.return")
	doc, _ := description(t, b)
	for path, item := range doc.Paths {
		for _, op := range item {
			for _, p := range op.Parameters {
				if p.Name != "return" {
					continue
				}
				for _, name := range []string{"OrderOverview", "JobChainOverview"} {
					if p.Schema.offers([]string{name}) {
						t.Errorf("%s offers %s", path, name)
					}
				}
				if !p.Schema.offers([]string{"Event"}) {
					t.Errorf("%s does not offer events", path)
				}
			}
		}
	}
}
