package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
)

// three are the events that most tests read.
const three = `[{"TYPE":"Added","key":"/a/x","n":1},{"TYPE":"Changed","key":"/a/b/y","n":2},{"TYPE":"Added","key":"/c","n":3}]`

func id(n int) event.ID { return firstID + event.ID(n) }

// seq is the response of JobScheduler's event API.
type seq struct {
	TYPE           string
	EventID        event.ID `json:"eventId"`
	LastEventID    event.ID `json:"lastEventId"`
	EventSnapshots []map[string]any
}

func seqIn(t *testing.T, r reply) seq {
	t.Helper()
	var s seq
	if err := json.Unmarshal([]byte(r.body), &s); err != nil || r.StatusCode != 200 {
		t.Fatalf("answer = %d %s: %v", r.StatusCode, r.body, err)
	}
	return s
}

// numbers are the n of the events, by which tests tell them apart.
func numbers(s seq) []int {
	got := []int{}
	for _, e := range s.EventSnapshots {
		got = append(got, int(e["n"].(float64)))
	}
	return got
}

func TestEventsAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(t, three)
	got := b.as(t, access.Viewer, "GET", fmt.Sprintf("%s?after=%d", eventPath, id(1)), "")
	want := fmt.Sprintf(`{"TYPE":"NonEmpty","eventId":%d,"eventSnapshots":[{"eventId":%d,"key":"/c","TYPE":"Added","n":3}]}`,
		firstID+1_000_000, id(2))
	if got.body != want || got.StatusCode != 200 || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %d %s\nwant %s", got.StatusCode, got.body, want)
	}
}

func TestEventsSelected(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(t, three)
	cases := map[string]struct {
		target string
		want   []int
	}{
		"event means all":            {"event?after=0", []int{1, 2, 3}},
		"Event":                      {"event?return=Event&after=0", []int{1, 2, 3}},
		"a super type":               {"event?return=CustomEvent&after=0", []int{1, 2, 3}},
		"a custom type":              {"event?return=Changed&after=0", []int{2}},
		"several":                    {"event?return=Changed,Added,OrderEvent&after=0", []int{1, 2, 3}},
		"others":                     {"event?return=OrderEvent&after=0", []int{}},
		"limit":                      {"event?after=0&limit=2", []int{1, 2}},
		"limit of what is wanted":    {"event?return=Added&after=0&limit=2", []int{1, 3}},
		"newest first":               {"event?limit=-2", []int{3, 2}},
		"newest after":               {fmt.Sprintf("event?limit=-5&after=%d", id(0)), []int{3, 2}},
		"newest until":               {fmt.Sprintf("event?limit=-5&until=%d", id(1)), []int{2, 1}},
		"newest until one between":   {fmt.Sprintf("event?limit=-5&until=%d", id(2)-1), []int{2, 1}},
		"newest until one to come":   {fmt.Sprintf("event?limit=-2&until=%d", id(2)+1000), []int{3, 2}},
		"newest after and until":     {fmt.Sprintf("event?limit=-5&after=%d&until=%d", id(0), id(1)), []int{2}},
		"newest before all":          {"event?limit=-5&until=1", []int{}},
		"newest never waits":         {"event?return=Nothing&limit=-2&timeout=60s", []int{}},
		"unknown parameters":         {"event?after=0&colour=red", []int{1, 2, 3}},
		"below":                      {"object/a/?return=Event&after=0", []int{1, 2}},
		"below, escaped":             {"object/a%2F?return=Event&after=0", []int{1, 2}},
		"below, all escaped":         {"object/%2Fa%2F?return=Event&after=0", []int{1, 2}},
		"direct children":            {"object/a/*?return=Event&after=0", []int{1}},
		"children of the root":       {"object/*?return=Event&after=0", []int{3}},
		"all":                        {"object/?return=Event&after=0", []int{1, 2, 3}},
		"one":                        {"object/a/b/y?return=Event&after=0", []int{2}},
		"one, escaped":               {"object/a%2Fb%2Fy?return=Event&after=0", []int{2}},
		"two slashes at first":       {"object//a/?return=Event&after=0", []int{1, 2}},
		"two slashes":                {"object/a//b/?return=Event&after=0", []int{2}},
		"several paths":              {"object/a/x|/c?return=Event&after=0", []int{1, 3}},
		"several paths, escaped":     {"object/a%2Fx%7C%2Fc?return=Event&after=0", []int{1, 3}},
		"one kind has none of these": {"order/?return=Event&after=0", []int{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := seqIn(t, b.as(t, access.Viewer, "GET", base+"/"+c.target, ""))
			if diff := cmp.Diff(c.want, numbers(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEventsByPathQuery(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(t, three)
	for body, want := range map[string][]int{
		`{}`:                             {1, 2, 3},
		`{"path":"/a/"}`:                 {1, 2},
		`{"path":"/c"}`:                  {3},
		`{"paths":["/a/*","/c"]}`:        {1, 3},
		`{"paths":["/nothing","/nor/"]}`: {},
	} {
		got := seqIn(t, b.as(t, access.Viewer, "POST", base+"/object?return=Event&after=0", body))
		if diff := cmp.Diff(want, numbers(got)); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}

// A single object's events leave the key out; those of a folder have it.
func TestEventsOfOneObject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(t, three)
	one := seqIn(t, b.as(t, access.Viewer, "GET", base+"/object/a/x?return=Event&after=0", ""))
	folder := seqIn(t, b.as(t, access.Viewer, "GET", base+"/object/a/?return=Event&after=0", ""))
	if _, has := one.EventSnapshots[0]["key"]; has {
		t.Errorf("single object: %v has a key", one.EventSnapshots[0])
	}
	if folder.EventSnapshots[0]["key"] != "/a/x" {
		t.Errorf("folder: %v lacks its key", folder.EventSnapshots[0])
	}
}

func TestEventsEmptyAndTorn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(t, three)
	empty := seqIn(t, b.as(t, access.Viewer, "GET", eventPath+"?return=Nothing&after=0", ""))
	if empty.TYPE != "Empty" || empty.LastEventID != id(2) || empty.EventID < id(2) {
		t.Errorf("filtered = %+v, want Empty with the last id looked at", empty)
	}
	beyond := seqIn(t, b.as(t, access.Viewer, "GET", eventPath+"?after=9007199254740992", ""))
	if beyond.TYPE != "Empty" || beyond.LastEventID != 1<<53 || beyond.EventID == 1<<53 {
		t.Errorf("beyond the newest = %+v, want Empty echoing after, stamped now", beyond)
	}
	b.journal.floor = id(1)
	torn := b.as(t, access.Viewer, "GET", fmt.Sprintf("%s?after=%d", eventPath, id(0)), "")
	if s := seqIn(t, torn); s.TYPE != "Torn" || s.EventID == 0 || strings.Contains(torn.body, "lastEventId") {
		t.Errorf("below the floor = %s, want Torn", torn.body)
	}
}

func TestEventsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := strings.Repeat("9", 40)
	cases := map[string]struct {
		target string
		fields []string
	}{
		"no after":                {"event", []string{"query.after"}},
		"no after, limit":         {"event?limit=5", []string{"query.after"}},
		"after a word":            {"event?after=now", []string{"query.after"}},
		"after negative":          {"event?after=-1", []string{"query.after"}},
		"after with a sign":       {"event?after=%2B1", []string{"query.after"}},
		"after with a fraction":   {"event?after=1.0", []string{"query.after"}},
		"after empty":             {"event?after=", []string{"query.after"}},
		"after beyond 2^53":       {"event?after=9007199254740993", []string{"query.after"}},
		"after beyond all":        {"event?after=" + long, []string{"query.after"}},
		"after twice":             {"event?after=1&after=1", []string{"query.after"}},
		"until of the oldest":     {"event?after=0&limit=5&until=9", []string{"query.until"}},
		"until without a limit":   {"event?after=0&until=9", []string{"query.until"}},
		"until nothing":           {"event?limit=-5&until=0", []string{"query.until"}},
		"limit 0":                 {"event?after=0&limit=0", []string{"query.limit"}},
		"limit a word":            {"event?after=0&limit=all", []string{"query.limit"}},
		"limit empty":             {"event?after=0&limit=", []string{"query.limit"}},
		"limit with a fraction":   {"event?after=0&limit=1.5", []string{"query.limit"}},
		"limit beyond all":        {"event?after=0&limit=" + long, []string{"query.limit"}},
		"limit twice":             {"event?after=0&limit=1&limit=2", []string{"query.limit"}},
		"timeout a word":          {"event?after=0&timeout=soon", []string{"query.timeout"}},
		"timeout negative":        {"event?after=0&timeout=-1", []string{"query.timeout"}},
		"timeout without zero":    {"event?after=0&timeout=.1", []string{"query.timeout"}},
		"timeout empty":           {"event?after=0&timeout=", []string{"query.timeout"}},
		"timeout with a year":     {"event?after=0&timeout=P1Y", []string{"query.timeout"}},
		"timeout long and wrong":  {"event?after=0&timeout=P106752DT1H1H", []string{"query.timeout"}},
		"return like a family":    {"event?after=0&return=OrderFoo", []string{"query.return"}},
		"return, one bad of two":  {"event?after=0&return=Event,TaskFoo", []string{"query.return"}},
		"return empty":            {"event?after=0&return=", []string{"query.return"}},
		"return with a hole":      {"event?after=0&return=A,,B", []string{"query.return"}},
		"return twice":            {"event?after=0&return=A&return=B", []string{"query.return"}},
		"return no name":          {"event?after=0&return=%00", []string{"query.return"}},
		"snapshot of event":       {"event?after=0&return=OrderOverview", []string{"query.return"}},
		"no return":               {"order/a/?after=0", []string{"query.return"}},
		"another kind's snapshot": {"order/a/?return=JobOverview", []string{"query.return"}},
		"another kind's events":   {"order/a/?return=TaskEvent&after=0", []string{"query.return"}},
		"snapshot and events":     {"order/a/?return=OrderOverview,Event&after=0", []string{"query.return"}},
		"a star in the middle":    {"order/a/*/b?return=Event&after=0", []string{"path"}},
		"an empty path":           {"order/a%7C?return=Event&after=0", []string{"path"}},
		"two slashes":             {"order/a%2F%2Fb?return=Event&after=0", []string{"path"}},
		"a broken escape":         {"event?after=%zz", []string{"query"}},
		"a semicolon":             {"event?after=0;limit=1", []string{"query"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantProblem(t, b.as(t, access.Viewer, "GET", base+"/"+c.target, ""), 400, api.CodeInvalid, c.fields...)
		})
	}
}

func TestPathQueryRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		body   string
		kind   string
		status int
		code   api.Code
		field  string
	}{
		"no body":            {"", "application/json", 400, api.CodeInvalid, "body"},
		"not JSON":           {"{", "application/json", 400, api.CodeInvalid, "body"},
		"a list":             {"[]", "application/json", 400, api.CodeInvalid, "body"},
		"null":               {"null", "application/json", 400, api.CodeInvalid, "body"},
		"an unknown field":   {`{"colour":"red"}`, "application/json", 400, api.CodeInvalid, "body.colour"},
		"a null path":        {`{"path":null}`, "application/json", 400, api.CodeInvalid, "body.path"},
		"a number":           {`{"path":1}`, "application/json", 400, api.CodeInvalid, "body.path"},
		"a path of no slash": {`{"path":"a"}`, "application/json", 400, api.CodeInvalid, "body.path"},
		"a bad path of many": {`{"paths":["/a","/*/b"]}`, "application/json", 400, api.CodeInvalid, "body.paths[1]"},
		"a null among paths": {`{"paths":[null]}`, "application/json", 400, api.CodeInvalid, "body.paths[0]"},
		"a form":             {`{}`, "application/x-www-form-urlencoded", 415, api.CodeMediaType, "header.Content-Type"},
		"too large":          {`{"path":"/` + strings.Repeat("a", 1<<20) + `"}`, "application/json", 413, api.CodeTooLarge, "body"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.as(t, access.Viewer, "POST", base+"/order?return=OrderOverview", c.body, "Content-Type", c.kind)
			wantProblem(t, got, c.status, c.code, c.field)
		})
	}
}

func TestEventsWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timeout    string
		host, want time.Duration
	}{
		"as long as asked":         {"60", 0, time.Minute},
		"one hour at most":         {"172800", 0, time.Hour},
		"however long it would be": {"99999999999999999999", 0, time.Hour},
		"what the host can":        {"3600", 20 * time.Second, 20 * time.Second},
		"not at all":               {"0", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, func(o *api.Options) { o.MaxWait = c.host })
				began := time.Now()
				got := seqIn(t, b.as(t, access.Viewer, "GET", eventPath+"?after=5&timeout="+c.timeout, ""))
				if waited := time.Since(began); waited != c.want || got.TYPE != "Empty" || got.LastEventID != 5 {
					t.Errorf("after %v: %+v, want Empty after %v", waited, got, c.want)
				}
			})
		})
	}
}

func TestEventsArriveWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		go func() {
			time.Sleep(3 * time.Second)
			b.emit(t, `[{"TYPE":"Other"}]`)
			time.Sleep(3 * time.Second)
			b.emit(t, `[{"TYPE":"Wanted","n":7}]`)
		}()
		began := time.Now()
		got := seqIn(t, b.as(t, access.Viewer, "GET", eventPath+"?return=Wanted&after=0&timeout=PT1M", ""))
		if diff := cmp.Diff([]int{7}, numbers(got)); diff != "" || time.Since(began) != 6*time.Second {
			t.Errorf("after %v: %s", time.Since(began), diff)
		}
		if strings.Contains(b.logs.String(), "slow") {
			t.Errorf("waiting is logged as slow: %s", b.logs)
		}
	})
}

// TestEventsEndWithTheServer: a reader that waits while the server ends is told to ask again, and no error is logged.
func TestEventsEndWithTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		go func() {
			time.Sleep(3 * time.Second)
			b.journal.close()
		}()
		got := b.as(t, access.Viewer, "GET", eventPath+"?return=Wanted&after=0&timeout=PT1M", "")
		wantProblem(t, got, 503, api.CodeUnavailable)
		if logs := b.logs.String(); !strings.Contains(logs, "ended with the server") || strings.Contains(logs, "ERROR") {
			t.Errorf("the end of the server is logged as %s, want no error", logs)
		}
	})
}

func TestEventsUnavailable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.journal.fail = journal.ErrUnavailable
	for _, target := range []string{"/event?after=0", "/event?limit=-1", "/order/?return=OrderOverview", "/order/?return=OrderStatisticsChanged"} {
		wantProblem(t, b.as(t, access.Viewer, "GET", base+target, ""), 503, api.CodeUnavailable)
	}
}
