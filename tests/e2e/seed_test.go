package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/tests/process"
)

// scene is a server with the orders of an example of JobScheduler's event API, with a clock of its own, so that EventIds are the
// example's.
type scene struct {
	t       *testing.T
	clock   atomic.Int64 // EventId of now
	journal *journal.Journal
	url     string
}

const (
	stamp     = 1478257655827000 // of the snapshot in the example
	answered  = 1478257702567000 // of the response with events
	firstStep = 1478257656606001
)

func newScene(t *testing.T, keep journal.Retention) *scene {
	t.Helper()
	s := &scene{t: t}
	backend := memory.New(memory.Options{})
	s.journal = journal.Open(backend, journal.Options{
		Now: func() time.Time { return event.ID(s.clock.Load()).Time() }, Folds: projection.Folds(), Retention: keep,
	})
	server := httptest.NewServer(api.New(api.Options{Tokens: []access.Token{access.NewToken("seed", access.Viewer, token)}},
		api.Events(s.journal), api.Objects(s.journal)))
	s.url = server.URL + "/jobscheduler/master/api/"
	t.Cleanup(func() {
		server.Close()
		if err := s.journal.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// happens appends an event at a moment.
func (s *scene) happens(id event.ID, typeName, path, fields string) {
	s.t.Helper()
	s.clock.Store(int64(id))
	receipt, err := s.journal.Emit(s.t.Context(), []event.Event{{Type: typeName, Key: event.Key{Path: path}, Fields: []byte(fields)}}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if receipt.FirstID != id {
		s.t.Fatalf("the event got %d, want %d", receipt.FirstID, id)
	}
}

// example appends the events of the example: of orders in /aFolder, and of one elsewhere.
func (s *scene) example() {
	s.t.Helper()
	s.happens(stamp-3, "OrderAdded", "/aFolder/test-ax,114", `"nodeId":"A"`)
	s.happens(stamp-2, "OrderAdded", "/aFolder/test-ax,117", `"nodeId":"A"`)
	s.happens(stamp-1, "OrderAdded", "/other/chain,1", `"nodeId":"X"`)
	s.happens(stamp, "OrderStarted", "/aFolder/test-ax,117", "")
	s.happens(firstStep, "OrderStepEnded", "/aFolder/test-ax,117", `"nodeTransition":{"TYPE":"Success"}`)
	s.happens(firstStep+1, "OrderStarted", "/other/chain,1", "")
	s.happens(firstStep+3, "OrderNodeChanged", "/aFolder/test-ax,117", `"fromNodeId":"A","nodeId":"BB"`)
	s.happens(1478257656624001, "OrderStepStarted", "/aFolder/test-ax,117", `"nodeId":"BB","taskId":"9"`)
	s.happens(1478257657023000, "OrderStepEnded", "/aFolder/test-ax,114", `"nodeTransition":{"TYPE":"Success"}`)
	s.clock.Store(answered)
}

// ask sends a request and returns the body of the response.
func (s *scene) ask(method, path, body string) string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := process.Client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: %d %s, %v", method, path, response.StatusCode, answer, err)
	}
	return string(answer)
}

// same checks that a response is that JSON, member for member and in the same order.
func (s *scene) same(want, got string) {
	s.t.Helper()
	if diff := cmp.Diff(indented(s.t, want), indented(s.t, got)); diff != "" {
		s.t.Errorf("(-want +got)\n%s", diff)
	}
}

func indented(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return b.String()
}

// eventsAfterSnapshot is the example's response NonEmpty.
const eventsAfterSnapshot = `{
  "TYPE": "NonEmpty",
  "eventId": 1478257702567000,
  "eventSnapshots": [
    {"eventId": 1478257656606001, "key": "/aFolder/test-ax,117", "TYPE": "OrderStepEnded", "nodeTransition": {"TYPE": "Success"}},
    {"eventId": 1478257656606004, "key": "/aFolder/test-ax,117", "TYPE": "OrderNodeChanged", "fromNodeId": "A", "nodeId": "BB"},
    {"eventId": 1478257656624001, "key": "/aFolder/test-ax,117", "TYPE": "OrderStepStarted", "nodeId": "BB", "taskId": "9"},
    {"eventId": 1478257657023000, "key": "/aFolder/test-ax,114", "TYPE": "OrderStepEnded", "nodeTransition": {"TYPE": "Success"}}
  ]
}`

// TestSeedSnapshot: the example's first request, a snapshot, in both its forms.
func TestSeedSnapshot(t *testing.T) {
	t.Parallel()
	s := newScene(t, journal.Retention{})
	s.happens(stamp-2, "OrderAdded", "/aFolder/test-ax,114", `"nodeId":"A"`)
	s.happens(stamp-1, "OrderAdded", "/other/chain,1", `"nodeId":"X"`)
	s.happens(stamp, "OrderAdded", "/aFolder/test-ax,117", `"nodeId":"A"`)
	get := s.ask("GET", "order/aFolder/?return=OrderOverview", "")
	post := s.ask("POST", "order?return=OrderOverview", `{"path":"/aFolder/"}`)
	s.same(get, post)
	var snapshot struct {
		Orders  []struct{ TYPE, Path, NodeID string }
		EventID int64
	}
	if err := json.Unmarshal([]byte(get), &snapshot); err != nil {
		t.Fatal(err)
	}
	if snapshot.EventID != stamp {
		t.Errorf("the snapshot is stamped %d, want %d", snapshot.EventID, int64(stamp))
	}
	want := []struct{ TYPE, Path, NodeID string }{
		{"OrderOverview", "/aFolder/test-ax,114", "A"}, {"OrderOverview", "/aFolder/test-ax,117", "A"},
	}
	if diff := cmp.Diff(want, snapshot.Orders); diff != "" {
		t.Error(diff)
	}
}

// TestSeedEvents: the example's second request, the events after it, in both its forms, with every notation of the time to wait.
func TestSeedEvents(t *testing.T) {
	t.Parallel()
	s := newScene(t, journal.Retention{})
	s.example()
	s.same(eventsAfterSnapshot, s.ask("POST", "order?return=Event&after=1478257655827000&timeout=60s", `{"path":"/aFolder/"}`))
	for _, timeout := range []string{"60s", "60", "PT1M", "1m", "111.5", "P1D"} {
		s.same(eventsAfterSnapshot, s.ask("GET", "order/aFolder/?return=Event&after=1478257655827000&timeout="+timeout, ""))
	}
	s.same(eventsAfterSnapshot, s.ask("GET", "order/aFolder/?return=OrderEvent&after=1478257655827000", ""))
}

// TestSeedFollowsOn: after processing the events, the next request begins after the last of them, and limit cuts responses.
func TestSeedFollowsOn(t *testing.T) {
	t.Parallel()
	s := newScene(t, journal.Retention{})
	s.example()
	s.same(`{"TYPE":"NonEmpty","eventId":1478257702567000,"eventSnapshots":[
		{"eventId":1478257656606001,"key":"/aFolder/test-ax,117","TYPE":"OrderStepEnded","nodeTransition":{"TYPE":"Success"}}]}`,
		s.ask("GET", "order/aFolder/?return=Event&after=1478257655827000&limit=1", ""))
	s.same(`{"TYPE":"NonEmpty","eventId":1478257702567000,"eventSnapshots":[
		{"eventId":1478257656606004,"key":"/aFolder/test-ax,117","TYPE":"OrderNodeChanged","fromNodeId":"A","nodeId":"BB"}]}`,
		s.ask("GET", "order/aFolder/?return=Event&after=1478257656606001&limit=1", ""))
	s.same(`{"TYPE":"NonEmpty","eventId":1478257702567000,"eventSnapshots":[
		{"eventId":1478257656606004,"TYPE":"OrderNodeChanged","fromNodeId":"A","nodeId":"BB"}]}`,
		s.ask("GET", "order/aFolder/test-ax,117?return=OrderNodeChanged&after=1478257655827000", ""))
}

// TestSeedEmpty: no event came in time; the response says where to go on, after events that were not asked for.
func TestSeedEmpty(t *testing.T) {
	t.Parallel()
	s := newScene(t, journal.Retention{})
	s.example()
	s.same(`{"TYPE":"Empty","eventId":1478257702567000,"lastEventId":1478257657023000}`,
		s.ask("GET", "order/aFolder/?return=OrderFinished&after=1478257655827000&timeout=0.01", ""))
	s.same(`{"TYPE":"Empty","eventId":1478257702567000,"lastEventId":1478257657023000}`,
		s.ask("GET", "order/aFolder/?return=Event&after=1478257657023000", ""))
	s.same(`{"TYPE":"Empty","eventId":1478257702567000,"lastEventId":1478257702567001}`,
		s.ask("GET", "order/aFolder/?return=Event&after=1478257702567001", ""))
}

// TestSeedTorn: the events after the EventId were evicted; the client begins again with a new snapshot.
func TestSeedTorn(t *testing.T) {
	t.Parallel()
	s := newScene(t, journal.Retention{Age: time.Minute})
	s.example()
	const later = answered + int64(time.Hour/time.Microsecond)
	s.happens(event.ID(later), "OrderFinished", "/aFolder/test-ax,114", `"nodeId":"END"`)
	for range 2 { // one stores the state up to there, the next may evict what it holds
		if _, err := s.journal.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.same(`{"TYPE":"Torn","eventId":1478261302567000}`, s.ask("GET", "order/aFolder/?return=Event&after=1478257655827000", ""))
	snapshot := s.ask("GET", "order/aFolder/?return=OrderOverview", "")
	if !strings.HasSuffix(snapshot, `"eventId":1478261302567000}`) || !strings.Contains(snapshot, "test-ax,117") {
		t.Errorf("the snapshot is %s, want what the evicted events made, stamped 1478261302567000", snapshot)
	}
	s.same(`{"TYPE":"Empty","eventId":1478261302567000,"lastEventId":1478261302567000}`,
		s.ask("GET", "order/aFolder/?return=Event&after=1478261302567000", ""))
}

// TestSeedHierarchy: events are asked for by their super types too.
func TestSeedHierarchy(t *testing.T) {
	t.Parallel()
	s := newScene(t, journal.Retention{})
	for i, e := range []struct{ typeName, path, fields string }{
		{"SchedulerStateChanged", "", `"state":"running"`},
		{"FileBasedActivated", "Job:/aFolder/job", ""},
		{"OrderFinished", "/aFolder/test-ax,1", `"nodeId":"END"`},
		{"JobChainStateChanged", "/aFolder/test-ax", `"state":"running"`},
	} {
		s.happens(event.ID(stamp+i), e.typeName, e.path, e.fields)
	}
	for super, want := range map[string]string{
		"SchedulerEvent": `{"eventId":1478257655827000,"TYPE":"SchedulerStateChanged","state":"running"}`,
		"FileBasedEvent": `{"eventId":1478257655827001,"key":"Job:/aFolder/job","TYPE":"FileBasedActivated"}`,
		"OrderEvent":     `{"eventId":1478257655827002,"key":"/aFolder/test-ax,1","TYPE":"OrderFinished","nodeId":"END"}`,
		"JobChainEvent":  `{"eventId":1478257655827003,"key":"/aFolder/test-ax","TYPE":"JobChainStateChanged","state":"running"}`,
	} {
		s.same(`{"TYPE":"NonEmpty","eventId":1478257655827003,"eventSnapshots":[`+want+`]}`, s.ask("GET", "event?after=0&return="+super, ""))
	}
	var all struct{ EventSnapshots []json.RawMessage }
	if err := json.Unmarshal([]byte(s.ask("GET", "event?after=0&return=Event", "")), &all); err != nil || len(all.EventSnapshots) != 4 {
		t.Errorf("return=Event answers %d events, %v, want all 4", len(all.EventSnapshots), err)
	}
}

// TestSeedStatistics: OrderStatisticsChanged is computed for each request: one event without a key, which is not on the journal.
func TestSeedStatistics(t *testing.T) {
	t.Parallel()
	s := newScene(t, journal.Retention{})
	s.example()
	var seq struct {
		TYPE           string
		EventSnapshots []map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(s.ask("GET", "order/?return=OrderStatisticsChanged&after=0", "")), &seq); err != nil {
		t.Fatal(err)
	}
	if seq.TYPE != "NonEmpty" || len(seq.EventSnapshots) != 1 {
		t.Fatalf("got %s with %d events, want exactly one", seq.TYPE, len(seq.EventSnapshots))
	}
	e := seq.EventSnapshots[0]
	if string(e["TYPE"]) != `"OrderStatisticsChanged"` || e["key"] != nil || e["orderStatistics"] == nil {
		t.Errorf("got %v, want an event without a key and with orderStatistics", e)
	}
	if text := s.ask("GET", "event?return=Event&after=0", ""); strings.Contains(text, "Statistics") {
		t.Error("the event is in the stream")
	}
}
