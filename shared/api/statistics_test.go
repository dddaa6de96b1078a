package api_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/event/typed"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store/memory"
)

// orderBundle is an API over a journal with events of orders.
type orderBundle struct {
	bundle
	journal *journal.Journal
}

func withOrders(t *testing.T, events ...event.Event) *orderBundle {
	t.Helper()
	j := journal.Open(memory.New(memory.Options{}), journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	b := &orderBundle{bundle{api: api.New(api.Options{Tokens: tokens(), CanStream: true}, api.Events(j), api.Objects(j))}, j}
	if len(events) > 0 {
		b.happen(t, events...)
	}
	return b
}

// happen appends events and returns the id of the last.
func (b *orderBundle) happen(t *testing.T, events ...event.Event) event.ID {
	t.Helper()
	receipt, err := b.journal.Emit(t.Context(), events, nil)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.FirstID + event.ID(receipt.Count) - 1
}

// statistics returns the numbers other than 0, and the id of the event that has them.
func (b *orderBundle) statistics(t *testing.T, target string) (numbers map[string]float64, id event.ID) {
	t.Helper()
	got := seqIn(t, b.as(t, access.Viewer, "GET", base+"/"+target, ""))
	if got.TYPE != "NonEmpty" || len(got.EventSnapshots) != 1 {
		t.Fatalf("%s = %+v, want one event", target, got)
	}
	e := got.EventSnapshots[0]
	if _, keyed := e["key"]; keyed || e["TYPE"] != "OrderStatisticsChanged" || e["eventId"] == nil || len(e) != 3 {
		t.Errorf("%s = %v, want an OrderStatisticsChanged without a key", target, e)
	}
	numbers = map[string]float64{}
	for name, n := range e["orderStatistics"].(map[string]any) {
		numbers[name] = n.(float64)
	}
	if len(numbers) != 13 {
		t.Errorf("%d statistics, want 13: %v", len(numbers), numbers)
	}
	maps.DeleteFunc(numbers, func(_ string, n float64) bool { return n == 0 })
	return numbers, event.ID(e["eventId"].(float64))
}

func added(path string) event.Event {
	return typed.OrderEvent(event.OrderAdded, path, typed.OrderAdded{NodeID: "A", Version: 1})
}

func stepStarted(path, task string) event.Event {
	return typed.OrderEvent(event.OrderStepStarted, path, typed.OrderStepStarted{NodeID: "A", TaskID: task})
}

func started(path string) event.Event {
	return typed.OrderEvent(event.OrderStarted, path, typed.OrderStarted{})
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	later := event.Time{Time: time.Now().Add(time.Hour)}
	b := withOrders(t,
		typed.OrderEvent(event.OrderAdded, "/a/x,1", typed.OrderAdded{NodeID: "A", Version: 1, At: later, Permanent: true}),
		added("/a/x,2"), started("/a/x,2"), stepStarted("/a/x,2", "9"),
		added("/a/x,22"), typed.OrderEvent(event.OrderSuspended, "/a/x,22", typed.OrderSuspended{}),
		typed.OrderEvent(event.OrderAdded, "/b,1", typed.OrderAdded{NodeID: "A", Version: 1, File: true}), started("/b,1"),
		typed.OrderEvent(event.OrderSetBack, "/b,1", typed.OrderSetBack{NodeID: "A", Until: later, Count: 1}),
		added("/a/y,1"), typed.OrderEvent(event.OrderWaiting, "/a/y,1", typed.OrderWaiting{NodeID: "A", For: typed.ForLock}),
		added("/a/y,2"), typed.OrderEvent(event.OrderRemoved, "/a/y,2", typed.OrderRemoved{}),
	)
	all := map[string]float64{"total": 5, "planned": 1, "permanent": 1, "started": 2, "inTask": 1, "inTaskProcess": 1,
		"suspended": 1, "notPlanned": 1, "setback": 1, "fileOrder": 1, "waitingForResource": 1}
	for path, want := range map[string]map[string]float64{
		"event":        all,
		"order/":       all,
		"order/b":      {"total": 1, "setback": 1, "started": 1, "fileOrder": 1},
		"order/*":      {"total": 1, "setback": 1, "started": 1, "fileOrder": 1},
		"order/a/":     {"total": 4, "planned": 1, "permanent": 1, "started": 1, "inTask": 1, "inTaskProcess": 1, "suspended": 1, "notPlanned": 1, "waitingForResource": 1},
		"order/a/y":    {"total": 1, "waitingForResource": 1},
		"order/a/y|/b": {"total": 2, "waitingForResource": 1, "setback": 1, "started": 1, "fileOrder": 1},
		"order/a/x,2":  {"total": 1, "started": 1, "inTask": 1, "inTaskProcess": 1},
		"order/a/y,2":  {},
		"order/none/":  {},
	} {
		got, _ := b.statistics(t, path+"?return=OrderStatisticsChanged")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if got := b.as(t, access.Viewer, "GET", eventPath+"?after=0", ""); strings.Contains(got.body, "Statistics") {
		t.Error("the statistics are in the stream")
	}
}

// The statistics come at the first event that changes them, of an order that is asked for.
func TestStatisticsWait(t *testing.T) {
	t.Parallel()
	const path = "order/a/?return=OrderStatisticsChanged"
	nodeChanged := typed.OrderEvent(event.OrderNodeChanged, "/a/x,1", typed.OrderNodeChanged{NodeID: "B", FromNodeID: "A"})
	attempt := event.Key{Path: "/job", TaskID: "9"}
	for name, c := range map[string]struct {
		before []event.Event
		target string        // its after is that of before, where it says LAST
		then   []event.Event // one each second
		want   time.Duration
	}{
		"nothing at all":             {nil, path + "&after=0&timeout=30", nil, 30 * time.Second},
		"nothing new":                {[]event.Event{added("/a/x,1")}, path + "&after=LAST&timeout=30", nil, 30 * time.Second},
		"no timeout":                 {[]event.Event{added("/a/x,1")}, path + "&after=LAST", nil, 0},
		"changed before":             {[]event.Event{added("/a/x,1")}, path + "&after=1&timeout=30", nil, 0},
		"changes":                    {[]event.Event{added("/a/x,1")}, path + "&after=LAST&timeout=30", []event.Event{started("/a/x,1")}, time.Second},
		"from now on":                {[]event.Event{added("/a/x,1")}, path + "&timeout=30", []event.Event{started("/a/x,1")}, time.Second},
		"others":                     {[]event.Event{added("/a/x,1"), added("/b,1")}, path + "&after=LAST&timeout=30", []event.Event{started("/b,1"), started("/a/x,1")}, 2 * time.Second},
		"events that change nothing": {[]event.Event{added("/a/x,1")}, path + "&after=LAST&timeout=30", []event.Event{nodeChanged, nodeChanged, started("/a/x,1")}, 3 * time.Second},
		"attempts of tasks": {[]event.Event{added("/a/x,1"), started("/a/x,1"), stepStarted("/a/x,1", "9")}, path + "&after=LAST&timeout=30", []event.Event{
			typed.TaskEnded{Outcome: typed.OK}.Event(attempt),
			typed.TaskEnded{Outcome: typed.Failed, RetryAt: 1}.Event(attempt),
		}, 2 * time.Second},
		"the next attempt": {[]event.Event{added("/a/x,1"), started("/a/x,1"), stepStarted("/a/x,1", "9"), typed.TaskEnded{Outcome: typed.Again, RetryAt: 1}.Event(attempt)},
			path + "&after=LAST&timeout=30", []event.Event{typed.TaskStarted{Attempt: 1}.Event(attempt)}, time.Second},
		"an order":           {[]event.Event{added("/a/x,1")}, "order/a/x,1?return=OrderStatisticsChanged&after=LAST&timeout=30", []event.Event{added("/a/x,11"), started("/a/x,1")}, 2 * time.Second},
		"an order that went": {[]event.Event{added("/a/x,1")}, "order/a/x,1?return=OrderStatisticsChanged&after=1&timeout=30", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, last := withOrders(t), event.ID(0)
				if c.before != nil {
					last = b.happen(t, c.before...)
				}
				began := time.Now()
				go func() {
					for _, e := range c.then {
						time.Sleep(time.Second)
						b.happen(t, e)
					}
				}()
				b.statistics(t, strings.ReplaceAll(c.target, "LAST", fmt.Sprint(last)))
				if waited := time.Since(began); waited != c.want {
					t.Errorf("waited %v, want %v", waited, c.want)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// A client that always waits for the next change after the last sees each.
func TestStatisticsFollowed(t *testing.T) {
	t.Parallel()
	b := withOrders(t)
	_, after := b.statistics(t, "event?return=OrderStatisticsChanged")
	for i := range 5 {
		b.happen(t, added(fmt.Sprintf("/a/x,%d", i)))
		var got map[string]float64
		got, after = b.statistics(t, fmt.Sprintf("event?return=OrderStatisticsChanged&after=%d&timeout=60", after))
		if got["total"] != float64(i+1) {
			t.Errorf("total %v, want %d", got["total"], i+1)
		}
	}
}

// In each form in which events come, the statistics are one event, with which a stream ends. Last-Event-ID is after there too.
func TestStatisticsInEachForm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, statisticsInEachForm)
}

func statisticsInEachForm(t *testing.T) {
	b, began := withOrders(t), time.Now()
	last := b.happen(t, added("/a/x,1"))
	const numbers = `"orderStatistics":{"total":1,"notPlanned":0,"planned":0,"due":1,"started":0,"inTask":0,"inTaskProcess":0,"setback":0,"waitingForResource":0,"suspended":0,"blacklisted":0,"permanent":0,"fileOrder":0}`
	data := fmt.Sprintf(`{"eventId":%d,"TYPE":"OrderStatisticsChanged",%s}`, last, numbers)
	const batch = "application/cloudevents-batch+json"
	for form, want := range map[string]string{
		sse:                    fmt.Sprintf("id: %d\ndata: %s\n\n", last, data),
		"application/x-ndjson": data + "\n",
		batch: fmt.Sprintf(`[{"specversion":"1.0","id":"%d","source":"/jobscheduler/master/api/event","type":"OrderStatisticsChanged","time":"%s","datacontenttype":"application/json","data":%s}]`,
			last, last.Time().Format("2006-01-02T15:04:05.000000Z"), data),
	} {
		for _, target := range []string{"/event?return=OrderStatisticsChanged", "/order/a/?return=OrderStatisticsChanged&timeout=1h&after=9007199254740992"} {
			got := b.as(t, access.Viewer, "GET", base+target, "", "Accept", form, "Last-Event-ID", "1")
			if kind := got.Header.Get("Content-Type"); got.StatusCode != 200 || kind != form {
				t.Errorf("%s as %s: %d %s", target, form, got.StatusCode, kind)
			}
			if diff := cmp.Diff(want, got.body); diff != "" {
				t.Errorf("%s as %s (-want +got):\n%s", target, form, diff)
			}
		}
		wantProblem(t, b.as(t, access.Viewer, "GET", base+"/event?return=OrderStatisticsChanged", "", "Accept", form, "Last-Event-ID", "x"), 400, api.CodeInvalid, "header.Last-Event-ID")
	}
	if waited := time.Since(began); waited != 0 {
		t.Errorf("waited %v", waited)
	}
}

// looking counts the objects that snapshots look at.
type looking struct {
	*journal.Journal
	looked int
}

func (l *looking) SnapshotOf(ctx context.Context, fold string, p journal.Part, each func(string, []byte)) (event.ID, error) {
	match := p.Match
	p.Match = func(key string) bool {
		l.looked++
		return match(key)
	}
	return l.Journal.SnapshotOf(ctx, fold, p, each)
}

// With 100,000 orders in 1,000 folders, what is asked of a folder costs by the folder, and statistics cost by the chains.
func TestAFolderCostsByItsOrders(t *testing.T) {
	t.Parallel()
	const folders, each = 1000, 100 // half of a folder's orders are in each of its two chains
	b := withOrders(t)
	var some []event.Event
	for i := range folders * each {
		some = append(some, added(fmt.Sprintf("/f%03d/%d,%d", i%folders, i/folders%2, i)))
		if len(some) == 1000 {
			b.happen(t, some...)
			some = nil // the journal keeps them
		}
	}
	l := &looking{Journal: b.journal}
	b.api = api.New(api.Options{Tokens: tokens()}, api.Events(l), api.Objects(l))
	for target, want := range map[string]int{
		"order/f500/?return=OrderOverview":           each,
		"order/f500/1?return=OrderOverview":          each / 2,
		"order/f500/1,99500?return=OrderOverview":    1,
		"order/f500/|/f7/?return=OrderOverview":      each,
		"order/none/?return=OrderOverview":           0,
		"order/f500/?return=OrderStatisticsChanged":  2,
		"order/f500/1?return=OrderStatisticsChanged": 1,
		"order/?return=OrderStatisticsChanged":       2 * folders,
	} {
		l.looked = 0
		if got := b.as(t, access.Viewer, "GET", base+"/"+target, ""); got.StatusCode != 200 || l.looked != want {
			t.Errorf("%s = %d, looked at %d objects, want %d", target, got.StatusCode, l.looked, want)
		}
	}
}
