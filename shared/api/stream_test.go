package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
)

const (
	sse    = "text/event-stream"
	ndjson = "application/x-ndjson"
	batch  = "application/cloudevents-batch+json"
)

func TestStreamEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.emit(t, `[{"TYPE":"A","key":"/a"}]`)
		go func() {
			time.Sleep(20 * time.Second)
			b.emit(t, `[{"TYPE":"B"}]`)
		}()
		began := time.Now()
		got := b.as(t, access.Viewer, "GET", eventPath+"?after=0&timeout=40s", "", "Accept", sse)
		want := fmt.Sprintf("id: %d\ndata: {\"eventId\":%[1]d,\"key\":\"/a\",\"TYPE\":\"A\"}\n\n"+ // at once
			":\n\n"+ // after 15 s of silence
			"id: %[2]d\ndata: {\"eventId\":%[2]d,\"TYPE\":\"B\"}\n\n"+ // after 20 s
			":\n\n", id(0), id(1)) // after 35 s
		if diff := cmp.Diff(want, got.body); diff != "" {
			t.Error(diff)
		}
		if waited := time.Since(began); waited != 40*time.Second {
			t.Errorf("ended after %v, want the timeout", waited)
		}
		if kind := got.Header.Get("Content-Type"); kind != sse {
			t.Errorf("Content-Type = %q", kind)
		}
	})
}

func TestStreamLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.emit(t, `[{"TYPE":"A"},{"TYPE":"B"}]`)
		got := b.as(t, access.Viewer, "GET", eventPath+"?after=0&timeout=20", "", "Accept", ndjson)
		want := fmt.Sprintf("{\"eventId\":%d,\"TYPE\":\"A\"}\n{\"eventId\":%d,\"TYPE\":\"B\"}\n\n", id(0), id(1))
		if diff := cmp.Diff(want, got.body); diff != "" {
			t.Error(diff)
		}
	})
}

func TestStreamUntilClientLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan reply)
		go func() {
			done <- b.do(t, request(t, access.Viewer, "GET", eventPath+"?after=0", "", "Accept", sse).WithContext(ctx))
		}()
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		select {
		case <-done:
			t.Error("the stream ended by itself")
		default:
		}
		leave()
		<-done
	})
}

// A process that ends lets its streams end properly, without cutting them off.
func TestStreamEndsWithTheJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		go func() {
			time.Sleep(5 * time.Second)
			b.journal.close()
		}()
		got := b.as(t, access.Viewer, "GET", eventPath+"?after=0", "", "Accept", sse)
		if got.StatusCode != 200 || got.body != "" {
			t.Errorf("stream = %d %q, want its end", got.StatusCode, got.body)
		}
		waiting := b.as(t, access.Viewer, "GET", eventPath+"?after=0&timeout=60", "")
		wantProblem(t, waiting, 503, api.CodeUnavailable)
	})
}

func TestStreamResumes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(t, three)
	for _, target := range []string{eventPath + "?limit=1", eventPath + "?after=0&limit=1"} {
		got := b.as(t, access.Viewer, "GET", target, "", "Accept", sse, "Last-Event-ID", fmt.Sprint(id(1)))
		if !strings.HasPrefix(got.body, fmt.Sprintf("id: %d\n", id(2))) {
			t.Errorf("%s = %s, want to go on after Last-Event-ID", target, got.body)
		}
	}
}

// A follower whose filter takes little is told how far was read, so that it is not torn when it comes back.
func TestStreamMovesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.emit(t, three)
		got := b.as(t, access.Viewer, "GET", eventPath+"?return=Nothing&after=0&timeout=40", "", "Accept", sse)
		if want := fmt.Sprintf(":\nid: %d\n\n:\n\n", id(2)); got.body != want {
			t.Errorf("got %q, want %q", got.body, want)
		}
	})
}

func TestStreamTorn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(t, three)
	b.journal.floor = id(2)
	torn := fmt.Sprintf(`{"TYPE":"Torn","eventId":%d}`, firstID+1_000_000)
	for accept, want := range map[string]string{sse: "event: torn\ndata: " + torn + "\n\n", ndjson: torn + "\n"} {
		if got := b.as(t, access.Viewer, "GET", eventPath+"?after=1", "", "Accept", accept); got.body != want || got.StatusCode != 200 {
			t.Errorf("%s = %d %q, want %q", accept, got.StatusCode, got.body, want)
		}
	}
	var events []map[string]any
	got := b.as(t, access.Viewer, "GET", eventPath+"?after=1", "", "Accept", batch)
	if err := json.Unmarshal([]byte(got.body), &events); err != nil || len(events) != 1 || events[0]["type"] != "Torn" {
		t.Errorf("batch = %s, want one CloudEvent of type Torn", got.body)
	}
}

func TestStreamLimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(t, three)
	if got := b.as(t, access.Viewer, "GET", eventPath+"?after=0&limit=2", "", "Accept", ndjson); strings.Count(got.body, "\n") != 2 {
		t.Errorf("limit=2 = %q, want two lines and the end", got.body)
	}
	got := b.as(t, access.Viewer, "GET", eventPath+"?limit=-2", "", "Accept", ndjson)
	if lines := strings.Split(got.body, "\n"); len(lines) != 3 || !strings.Contains(lines[0], `"n":3`) {
		t.Errorf("limit=-2 = %q, want the two newest, newest first", got.body)
	}
}

// With a timeout of 0, the stream has what is there, and ends.
func TestStreamAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := real(t)
		b.emit(t, three)
		began := time.Now()
		got := b.as(t, access.Viewer, "GET", eventPath+"?after=0&timeout=0", "", "Accept", ndjson)
		if strings.Count(got.body, "\n") != 3 || time.Since(began) > time.Second {
			t.Errorf("timeout=0 = %q after %v, want three lines at once", got.body, time.Since(began))
		}
	})
}

// The events that are there when a stream begins are sent even if the store takes longer to read them than the stream may last.
func TestStreamOfASlowStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.emit(t, `[{"TYPE":"A"},{"TYPE":"B"}]`)
		b.journal.slow = time.Second
		got := b.as(t, access.Viewer, "GET", eventPath+"?after=0&timeout=200ms", "", "Accept", ndjson)
		want := fmt.Sprintf("{\"eventId\":%d,\"TYPE\":\"A\"}\n{\"eventId\":%d,\"TYPE\":\"B\"}\n", id(0), id(1))
		if diff := cmp.Diff(want, got.body); diff != "" {
			t.Error(diff)
		}
	})
}

func TestStreamRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct{ target, lastID, field string }{
		"no after":             {"?return=Event", "", "query.after"},
		"no EventId":           {"?after=0", "yesterday", "header.Last-Event-ID"},
		"newest first":         {"?limit=-1", "", "query.limit"},
		"what a query refuses": {"?after=0&return=OrderFoo", "", "query.return"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.as(t, access.Viewer, "GET", eventPath+c.target, "", "Accept", sse, "Last-Event-ID", c.lastID)
			wantProblem(t, got, 400, api.CodeInvalid, c.field)
		})
	}
}

// Where the host cannot stream, the same requests are long polls that end.
func TestStreamWhereHostCannot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(o *api.Options) { o.CanStream, o.MaxWait = false, 25*time.Second })
		b.emit(t, `[{"TYPE":"A"}]`)
		began := time.Now()
		there := b.as(t, access.Viewer, "GET", eventPath+"?after=0", "", "Accept", sse)
		if strings.Count(there.body, "data: ") != 1 || time.Since(began) != 0 {
			t.Errorf("what is there = %q after %v", there.body, time.Since(began))
		}
		none := b.as(t, access.Viewer, "GET", fmt.Sprintf("%s?after=%d", eventPath, id(0)), "", "Accept", ndjson)
		if none.body != "\n" || time.Since(began) != 25*time.Second {
			t.Errorf("nothing = %q after %v, want a heartbeat after what the host can wait", none.body, time.Since(began))
		}
	})
}

// TestWhereWaitingCosts: a client that prefers to pause is not made to wait, and is told so; others wait.
func TestWhereWaitingCosts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, prefer string
		costs        bool
		waits        time.Duration
	}{
		{"one that pauses", "pause", true, 0},
		{"one that has other preferences too", "respond-async, Pause; x=1", true, 0},
		{"one that does not", "wait=10", true, 10 * time.Second},
		{"one that pauses where waiting costs nothing", "pause", false, 10 * time.Second},
	} {
		applied := map[time.Duration]string{0: "pause"}[test.waits]
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, func(o *api.Options) { o.CanStream, o.WaitsCost = false, test.costs })
			b.emit(t, `[{"TYPE":"A"}]`)
			for _, accept := range []string{"application/json", sse, ndjson} {
				began := time.Now()
				got := b.as(t, access.Viewer, "GET", fmt.Sprintf("%s?after=%d&timeout=10s", eventPath, id(0)), "", "Accept", accept, "Prefer", test.prefer)
				if got.StatusCode != 200 || time.Since(began) != test.waits || got.Header.Get("Preference-Applied") != applied {
					t.Errorf("%s, %s: %d after %v, applied %q, want 200 after %v", test.name, accept, got.StatusCode, time.Since(began), got.Header.Get("Preference-Applied"), test.waits)
				}
			}
		})
		synctest.Test(t, func(t *testing.T) {
			r := instances(t, func(o *api.Options) { o.WaitsCost = test.costs })
			began := time.Now()
			got := r.as(t, access.Worker, "POST", r.register(t, "/topics/**")+"/claims", `{"max":1,"wait":10}`, "Prefer", test.prefer)
			if got.StatusCode != 200 || time.Since(began) != test.waits || got.Header.Get("Preference-Applied") != applied {
				t.Errorf("%s, claims: %d after %v, want 200 after %v", test.name, got.StatusCode, time.Since(began), test.waits)
			}
		})
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(t, `[{"TYPE":"A","key":"/a","n":1},{"TYPE":"B"}]`)
	got := b.as(t, access.Viewer, "GET", eventPath+"?after=0", "", "Accept", batch)
	at := id(0).Time().Format("2006-01-02T15:04:05.000000Z")
	want := fmt.Sprintf(`{"specversion":"1.0","id":"%d","source":"/jobscheduler/master/api/event","type":"A","subject":"/a",`+
		`"time":%q,"datacontenttype":"application/json","data":{"eventId":%[1]d,"key":"/a","TYPE":"A","n":1}}`, id(0), at)
	var events []json.RawMessage
	if err := json.Unmarshal([]byte(got.body), &events); err != nil || len(events) != 2 {
		t.Fatalf("batch = %s: %v", got.body, err)
	}
	if diff := cmp.Diff(want, string(events[0])); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(string(events[1]), "subject") {
		t.Errorf("%s has a subject without a key", events[1])
	}
	if kind := got.Header.Get("Content-Type"); kind != batch {
		t.Errorf("Content-Type = %q", kind)
	}
	none := b.as(t, access.Viewer, "GET", eventPath+"?after=0&return=Nothing", "", "Accept", batch)
	if none.body != "[]" || none.Header.Get("Last-Event-ID") != fmt.Sprint(id(1)) {
		t.Errorf("none = %s with Last-Event-ID %q, want [] and the last id looked at", none.body, none.Header.Get("Last-Event-ID"))
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.emit(t, `[{"TYPE":"A"}]`)
	const json = "application/json"
	for accept, want := range map[string]string{
		"":                                     json,
		"*/*":                                  json,
		"application/json":                     json,
		"application/*":                        json,
		"text/html":                            json,
		sse:                                    sse,
		"text/*":                               sse,
		"TEXT/Event-Stream":                    sse,
		ndjson:                                 ndjson,
		batch:                                  batch,
		sse + ", */*":                          json,
		sse + ", */*;q=0.1":                    sse,
		"application/json;q=0.5, " + ndjson:    ndjson,
		"application/json, " + ndjson:          json,
		"application/json;q=0, */*":            sse,
		ndjson + ";q=0.2, " + batch + ";q=0.3": batch,
		ndjson + ";q=0":                        json,
		";;;":                                  json,
	} {
		got := b.as(t, access.Viewer, "GET", eventPath+"?after=0&limit=1", "", "Accept", accept)
		if kind := got.Header.Get("Content-Type"); kind != want {
			t.Errorf("Accept: %s gives %s, want %s", accept, kind, want)
		}
	}
	got := b.as(t, access.Viewer, "GET", base+"/object/?return=ObjectOverview", "", "Accept", sse)
	if kind := got.Header.Get("Content-Type"); kind != json {
		t.Errorf("a snapshot as %s, want JSON whatever is accepted", kind)
	}
}
