package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store/memory"
)

// real is an API over a real journal, on a store in memory.
func real(t *testing.T) *bundle {
	t.Helper()
	j := journal.Open(memory.New(memory.Options{}), journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	return &bundle{api: api.New(api.Options{Tokens: tokens(), CanStream: true}, api.Emit(j), api.Events(j), api.Objects(j))}
}

// As clients of JobScheduler's event API do: read a snapshot, then the events after it, and go on after the last event read.
func TestSnapshotThenEvents(t *testing.T) {
	t.Parallel()
	b := real(t)
	b.emit(t, three)
	var snapshot struct {
		Objects []struct{ Key string }
		EventID event.ID `json:"eventId"`
	}
	got := b.as(t, access.Viewer, "POST", base+"/object?return=ObjectOverview", `{"path":"/a/"}`)
	if err := json.Unmarshal([]byte(got.body), &snapshot); err != nil || len(snapshot.Objects) != 2 {
		t.Fatalf("snapshot = %s: %v", got.body, err)
	}
	b.emit(t, `[{"TYPE":"Changed","key":"/c","n":4},{"TYPE":"Changed","key":"/a/x","n":5}]`)
	events := seqIn(t, b.as(t, access.Viewer, "GET", fmt.Sprintf("%s/object/a/?return=Event&after=%d&timeout=60s", base, snapshot.EventID), ""))
	if n := numbers(events); len(n) != 1 || n[0] != 5 || events.EventID < snapshot.EventID {
		t.Errorf("events after the snapshot = %+v, want the change of /a/x", events)
	}
	last := event.ID(events.EventSnapshots[0]["eventId"].(float64))
	if rest := seqIn(t, b.as(t, access.Viewer, "GET", fmt.Sprintf("%s?after=%d", eventPath, last), "")); rest.TYPE != "Empty" || rest.LastEventID != last {
		t.Errorf("after the last event = %+v, want Empty", rest)
	}
}

func TestSnapshotOfNothingIsABeginning(t *testing.T) {
	t.Parallel()
	b := real(t)
	got := b.as(t, access.Viewer, "GET", base+"/order/aFolder/?return=OrderOverview", "")
	if want := `{"orders":[],"eventId":0}`; got.body != want {
		t.Errorf("orders = %s, want %s", got.body, want)
	}
	if s := seqIn(t, b.as(t, access.Viewer, "GET", eventPath+"?limit=-5", "")); s.TYPE != "Empty" {
		t.Errorf("the newest of none = %+v, want Empty", s)
	}
}

func TestEmitOnceForReal(t *testing.T) {
	t.Parallel()
	b := real(t)
	var answers []string
	for range 3 {
		got := b.as(t, access.Producer, "POST", eventPath, `[{"TYPE":"A"},{"TYPE":"B"}]`, "Idempotency-Key", "once")
		answers = append(answers, got.body)
	}
	if answers[1] != answers[0] || answers[2] != answers[0] {
		t.Errorf("answers differ: %v", answers)
	}
	wantProblem(t, b.as(t, access.Producer, "POST", eventPath, `[{"TYPE":"C"}]`, "Idempotency-Key", "once"), 422, api.CodeMismatch)
	if s := seqIn(t, b.as(t, access.Viewer, "GET", eventPath+"?after=0", "")); len(s.EventSnapshots) != 2 {
		t.Errorf("%d events, want 2", len(s.EventSnapshots))
	}
}

// Emitters at once, and followers of several kinds: each sees every event once, its ids strictly rising.
func TestFollowersMissNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := real(t)
		const emitters, each = 8, 20
		var group sync.WaitGroup
		for i := range emitters {
			group.Go(func() {
				for n := range each {
					b.emit(t, fmt.Sprintf(`[{"TYPE":"Tick","key":"/e/%d","n":%d}]`, i, n))
					time.Sleep(time.Millisecond)
				}
			})
		}
		check := func(name string, ids []event.ID) {
			if len(ids) != emitters*each {
				t.Errorf("%s saw %d events, want %d", name, len(ids), emitters*each)
			}
			for i := 1; i < len(ids); i++ {
				if ids[i] <= ids[i-1] {
					t.Errorf("%s: %d after %d", name, ids[i], ids[i-1])
				}
			}
		}
		for _, limit := range []int{1, 3, 50} {
			group.Go(func() { check(fmt.Sprint("pages of ", limit), b.pages(t, limit)) })
		}
		group.Go(func() {
			got := b.as(t, access.Viewer, "GET", fmt.Sprintf("%s?after=0&limit=%d", eventPath, emitters*each), "", "Accept", ndjson)
			var ids []event.ID
			for line := range strings.Lines(got.body) {
				if e, err := event.ParseEvent([]byte(line)); err == nil {
					ids = append(ids, e.ID)
				}
			}
			check("lines", ids)
		})
		group.Wait()
	})
}

// pages follows by long polls of that many events until nothing comes for a minute.
func (b *bundle) pages(t *testing.T, limit int) []event.ID {
	var ids []event.ID
	after := event.ID(0)
	for {
		got := b.as(t, access.Viewer, "GET", fmt.Sprintf("%s?after=%d&limit=%d&timeout=60", eventPath, after, limit), "")
		answer, err := event.ParseSeq([]byte(got.body))
		if err != nil || answer.Kind != event.NonEmpty {
			return ids
		}
		for _, e := range answer.Events {
			after = e.ID
			ids = append(ids, e.ID)
		}
	}
}
