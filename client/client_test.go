package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/client"
	"github.com/millrace/millrace/shared/event"
)

// script is a server that sends one response after the other, and records the requests.
type script struct {
	mu      sync.Mutex
	answers []answer
	asked   []string // method, path and body
	keys    []string // Idempotency-Key of each request
	last    []string // Last-Event-ID of each request
	at      []time.Time
}

type answer struct {
	status int // 0: the connection breaks
	body   string
	retry  string // Retry-After
	link   string // Link
}

var errBroken = errors.New("connection reset by peer")

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	s.last = append(s.last, r.Header.Get("Last-Event-ID"))
	s.at = append(s.at, time.Now())
	if len(s.answers) == 0 {
		return nil, errBroken
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	if a.status == 0 {
		return nil, errBroken
	}
	header := http.Header{}
	if a.retry != "" {
		header.Set("Retry-After", a.retry)
	}
	if a.link != "" {
		header.Set("Link", a.link)
	}
	return &http.Response{StatusCode: a.status, Header: header, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

func dial(t *testing.T, s *script, o client.Options) *client.Client {
	t.Helper()
	o.URL, o.HTTP = "http://server", &http.Client{Transport: s}
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func shipped() []event.Event {
	return []event.Event{{ID: 99, Type: "ParcelShipped", Key: event.Key{Path: "/parcels/17"}, Fields: []byte(`"carrier":"dhl"`)}}
}

const (
	emitPath = "POST /jobscheduler/master/api/event "
	readPath = "GET /jobscheduler/master/api/event?"
	emitBody = `[{"key":"/parcels/17","TYPE":"ParcelShipped","carrier":"dhl"}]`
)

func TestEmitIsRepeatedWithOneKeyUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []answer{
			{},
			{status: 503, body: `{"status":503,"code":"unavailable","detail":"busy"}`, retry: "7"},
			{status: 409, body: `{"status":409,"code":"in_progress"}`, retry: "1"},
			{status: 201, body: `{"eventIds":[1478257656606001]}`},
		}}
		ids, err := dial(t, s, client.Options{}).Emit(t.Context(), shipped())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]event.ID{1478257656606001}, ids); diff != "" {
			t.Error(diff)
		}
		if want := emitPath + emitBody; s.asked[0] != want || s.asked[3] != want {
			t.Errorf("sent %q, want %q each time", s.asked, want)
		}
		for _, key := range s.keys {
			if key == "" || key != s.keys[0] {
				t.Errorf("keys %q, want the same one each time", s.keys)
			}
		}
		if waited := s.at[2].Sub(s.at[1]); waited < 7*time.Second {
			t.Errorf("came back after %v, want the 7 s of Retry-After", waited)
		}
	})
}

func TestEmitWithoutAKeyIsSentOnce(t *testing.T) {
	t.Parallel()
	s := &script{}
	_, err := dial(t, s, client.Options{Patience: -1}).Emit(t.Context(), shipped())
	if !client.Temporary(err) || !client.IsUnreachable(err) {
		t.Errorf("Emit = %v, want a temporary failure to reach the server", err)
	}
	if len(s.asked) != 1 || s.keys[0] != "" {
		t.Errorf("sent %d times with keys %q, want once without", len(s.asked), s.keys)
	}
}

func TestRefusalsAreNotRepeated(t *testing.T) {
	t.Parallel()
	s := &script{answers: []answer{{status: 422, body: `{"status":422,"code":"impossible","detail":"body[0].TYPE: is built in",` +
		`"errors":[{"location":"body[0].TYPE","message":"is built in"}],"request_id":"r1"}`}}}
	_, err := dial(t, s, client.Options{}).Emit(t.Context(), shipped())
	var refusal *client.Error
	if !errors.As(err, &refusal) {
		t.Fatalf("Emit = %v, want a *client.Error", err)
	}
	want := client.Error{
		Status: 422, Code: "impossible", Detail: "body[0].TYPE: is built in", RequestID: "r1",
		Fields: []client.Field{{Location: "body[0].TYPE", Message: "is built in"}},
	}
	if diff := cmp.Diff(want, *refusal); diff != "" {
		t.Error(diff)
	}
	if want := "client: emit 1 events: 422 Unprocessable Entity: body[0].TYPE: is built in"; err.Error() != want {
		t.Errorf("Error() = %q, want %q", err, want)
	}
	if len(s.asked) != 1 {
		t.Errorf("sent %d times, want once", len(s.asked))
	}
}

func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		notices := 0
		_, err := dial(t, &script{}, client.Options{
			Patience: 5 * time.Second, OnRetry: func(error, time.Duration) { notices++ },
		}).Read(t.Context(), client.Query{})
		if !client.IsUnreachable(err) {
			t.Errorf("Read = %v, want that the server was not reached", err)
		}
		if took := time.Since(began); took < 3*time.Second || took > 5*time.Second || notices < 3 {
			t.Errorf("gave up after %v and %d notices, want some in nearly 5 s", took, notices)
		}
	})
}

func TestReadAsksAsTheContractSays(t *testing.T) {
	t.Parallel()
	const empty = `{"TYPE":"Empty","eventId":9,"lastEventId":8}`
	tests := map[string]struct {
		query client.Query
		asked string
	}{
		"all":    {client.Query{}, readPath + "after=0&return=Event"},
		"types":  {client.Query{After: 5, Types: []string{"A", "B"}, Limit: 3}, readPath + "after=5&limit=3&return=A%2CB"},
		"waits":  {client.Query{Wait: 1500 * time.Millisecond}, readPath + "after=0&return=Event&timeout=1.5"},
		"newest": {client.Query{Limit: -2}, readPath + "limit=-2&return=Event"},
		"path": {
			client.Query{Path: "/a b/|/c"},
			`POST /jobscheduler/master/api/object?after=0&return=Event {"paths":["/a b/","/c"]}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{answers: []answer{{status: 200, body: empty}}}
			got, err := dial(t, s, client.Options{}).Read(t.Context(), test.query)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(client.Answer{Last: 8}, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{test.asked}, s.asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFollowGoesOnThroughFailuresAndEviction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []answer{
			{status: 200, body: `{"TYPE":"NonEmpty","eventId":50,"eventSnapshots":[{"eventId":3,"TYPE":"A","key":"/x"},{"eventId":7,"TYPE":"B"}]}`},
			{status: 503},
			{},
			{status: 200, body: `{"TYPE":"Empty","eventId":60,"lastEventId":9}`},
			{status: 200, body: `{"TYPE":"Torn","eventId":70}`},
			{status: 200, body: `{"objects":[{"TYPE":"ObjectOverview","key":"/x","eventId":19,"lastType":"A","n":1}],"eventId":20}`},
			{status: 403, body: `{"code":"forbidden"}`},
		}}
		var steps []client.Step
		var last error
		for step, err := range dial(t, s, client.Options{}).Follow(t.Context(), client.Query{After: 1}) {
			if last = err; err == nil {
				steps = append(steps, step)
			}
		}
		want := []client.Step{
			{Events: []event.Event{{ID: 3, Type: "A", Key: event.Key{Path: "/x"}}, {ID: 7, Type: "B"}}, Last: 7},
			{Last: 9},
			{Last: 20, Snapshot: &client.Snapshot{EventID: 20, Objects: []client.Object{
				{Key: event.Key{Path: "/x"}, EventID: 19, LastType: "A", Fields: []byte(`"n":1`)},
			}}},
		}
		if diff := cmp.Diff(want, steps); diff != "" {
			t.Error(diff)
		}
		if client.StatusOf(last) != 403 {
			t.Errorf("ended with %v, want the 403", last)
		}
		if want := readPath + "after=20&return=Event&timeout=60"; s.asked[6] != want {
			t.Errorf("went on with %q, want %q", s.asked[6], want)
		}
	})
}

func TestSnapshotAsksForWhatIsOrWas(t *testing.T) {
	t.Parallel()
	const none = `{"objects":[],"eventId":7}`
	s := &script{answers: []answer{{status: 200, body: none}, {status: 200, body: none}, {status: 410, body: `{"code":"torn"}`}}}
	c := dial(t, s, client.Options{})
	if got, err := c.Snapshot(t.Context(), "/a/"); err != nil || got.EventID != 7 {
		t.Errorf("Snapshot = %+v, %v", got, err)
	}
	if got, err := c.SnapshotAt(t.Context(), "/a/", 7); err != nil || got.EventID != 7 {
		t.Errorf("SnapshotAt(7) = %+v, %v", got, err)
	}
	if _, err := c.SnapshotAt(t.Context(), "", 0); client.StatusOf(err) != 410 {
		t.Errorf("SnapshotAt(0) = %v, want the 410", err)
	}
	const path = "POST /jobscheduler/master/api/object?"
	want := []string{
		path + `return=ObjectOverview {"paths":["/a/"]}`,
		path + `at=7&return=ObjectOverview {"paths":["/a/"]}`,
		path + `at=0&return=ObjectOverview {}`,
	}
	if diff := cmp.Diff(want, s.asked); diff != "" {
		t.Error(diff)
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, err := range dial(t, &script{}, client.Options{Patience: time.Hour}).Follow(ctx, client.Query{}) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ended with %v, want the context's error", err)
			}
		}
	})
}

func TestEventsOfASingleObjectGetTheirKeyBack(t *testing.T) {
	t.Parallel()
	s := &script{answers: []answer{{status: 200, body: `{"TYPE":"NonEmpty","eventId":5,"eventSnapshots":[{"eventId":4,"TYPE":"A"}]}`}}}
	got, err := dial(t, s, client.Options{}).Read(t.Context(), client.Query{Path: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	want := client.Answer{Events: []event.Event{{ID: 4, Type: "A", Key: event.Key{Path: "/x"}}}, Last: 4}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNewRefusesWhatIsNoServer(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "localhost:8080", "ftp://x", "http://", ":"} {
		if _, err := client.New(client.Options{URL: url}); err == nil {
			t.Errorf("New(%q) = nil, want an error", url)
		}
	}
}

// refusing is a server at whose address nothing listens, except that the nth request gets a response.
type refusing struct{ left int }

func (r *refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.left--; r.left == 0 {
		return &http.Response{StatusCode: 404, Body: http.NoBody, Request: request}, nil
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// Where nothing listens, a call is given up sooner, until the server's first response.
func TestARefusedConnectionIsGivenUpSooner(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refused     time.Duration
		answers     int // with the nth request, which is of the first call
		least, most time.Duration
	}{
		"soon":                 {2 * time.Second, 0, 0, 2 * time.Second},
		"default":              {0, 0, 7 * time.Second, 10 * time.Second},
		"once it was answered": {2 * time.Second, 3, 7 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, err := client.New(client.Options{
					URL: "http://server", HTTP: &http.Client{Transport: &refusing{test.answers}},
					Patience: 10 * time.Second, Refused: test.refused,
				})
				if err != nil {
					t.Fatal(err)
				}
				if test.answers > 0 {
					if _, err := c.SyncTask(t.Context(), "x"); client.StatusOf(err) != 404 {
						t.Fatalf("the first = %v, want 404", err)
					}
				}
				began := time.Now()
				_, err = c.SyncTask(t.Context(), "x")
				if took := time.Since(began); !errors.Is(err, syscall.ECONNREFUSED) || took < test.least || took > test.most {
					t.Errorf("%v after %v, want a refused connection after %v to %v", err, took, test.least, test.most)
				}
			})
		})
	}
}
