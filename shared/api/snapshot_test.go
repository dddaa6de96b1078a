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

// What was is asked for in the same way as what is, by GET and by POST, of every kind.
func TestSnapshotAt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3 {
		b.as(t, access.Producer, "POST", eventPath, `[{"TYPE":"A","key":"/a/1"}]`)
	}
	b.journal.floor = firstID
	for _, name := range []string{"order", "job", "jobChain", "task", "fileBased", "object"} {
		overview := strings.ToUpper(name[:1]) + name[1:] + "Overview"
		b.journal.snapshots[overview] = []object{{"/a/1\x001", `{"n":1}`}, {"/a/2\x002", `{"n":2}`}, {"/b/3\x003", `{"n":3}`}}
		path := "/a/"
		if name == "fileBased" {
			path = "/" // the keys are not those of definitions
		}
		for at, want := range map[int64]string{0: `{"n":1}`, 1: `{"n":1},{"n":2}`, 2: `{"n":1},{"n":2}`} {
			if at == 2 && path == "/" {
				want += `,{"n":3}`
			}
			want = fmt.Sprintf(`{"%ss":[%s],"eventId":%d}`, name, want, int64(firstID)+at)
			query := fmt.Sprintf("?return=%s&at=%d", overview, int64(firstID)+at)
			get := b.as(t, access.Viewer, "GET", base+"/"+name+path+query, "")
			post := b.as(t, access.Viewer, "POST", base+"/"+name+query, fmt.Sprintf(`{"path":%q}`, path))
			if get.body != want || post.body != want {
				t.Errorf("%s at the floor + %d: GET %s, POST %s, want %s", name, at, get.body, post.body, want)
			}
		}
	}
}

func TestSnapshotAtIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.as(t, access.Producer, "POST", eventPath, `[{"TYPE":"A","key":"/a/1"}]`)
	b.journal.floor = firstID
	const overview = "object/?return=ObjectOverview&at="
	for target, want := range map[string]struct {
		status int
		code   api.Code
	}{
		overview + fmt.Sprint(firstID):              {200, ""},
		overview + fmt.Sprint(firstID-1):            {410, api.CodeTorn},
		overview + "0":                              {410, api.CodeTorn},
		overview + fmt.Sprint(firstID+1):            {422, api.CodeImpossible},
		overview + "x":                              {400, api.CodeInvalid},
		overview + "-1":                             {400, api.CodeInvalid},
		overview + "1.5":                            {400, api.CodeInvalid},
		overview:                                    {400, api.CodeInvalid},
		overview + "9007199254740993":               {400, api.CodeInvalid},
		overview + "1&at=2":                         {400, api.CodeInvalid},
		"object/?return=Event&after=0&at=1":         {400, api.CodeInvalid},
		"event?after=0&at=1":                        {400, api.CodeInvalid},
		"order/?return=OrderStatisticsChanged&at=1": {400, api.CodeInvalid},
		"object/?return=Event&limit=-1&at=" + fmt.Sprint(firstID):  {400, api.CodeInvalid},
		"event?return=Event&after=0&at=" + fmt.Sprint(firstID+100): {400, api.CodeInvalid},
	} {
		got := b.as(t, access.Viewer, "GET", base+"/"+target, "")
		var p api.Problem
		_ = json.Unmarshal([]byte(got.body), &p)
		if got.StatusCode != want.status || p.Code != want.code {
			t.Errorf("%s = %d %s, want %d %s", target, got.StatusCode, got.body, want.status, want.code)
		}
		if want.status != 200 && (len(p.Errors) != 1 || p.Errors[0].Location != "query.at") {
			t.Errorf("%s names %+v, want query.at", target, p.Errors)
		}
	}
}
