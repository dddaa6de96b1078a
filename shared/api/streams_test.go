package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/journal"
	"github.com/millrace/millrace/shared/projection"
	"github.com/millrace/millrace/shared/store/memory"
	"github.com/millrace/millrace/shared/stream"
)

// streaming is an API over streams of its own.
func streaming(t *testing.T) *bundle {
	t.Helper()
	s := memory.New(memory.Options{})
	j := journal.Open(s, journal.Options{Folds: projection.Folds()})
	t.Cleanup(func() { _ = j.Close() })
	streams := stream.Open(stream.Options{Store: s, Journal: j})
	b := &bundle{}
	b.api = api.New(api.Options{Tokens: tokens(), CanStream: true},
		api.Append(streams), api.Streams(streams), api.Acknowledge(streams))
	return b
}

const (
	streams   = "/api/v1/streams/"
	producer1 = "2480b859-e08a-4414-9c7d-003bc1a4c238"
	producer2 = "8c1d9f39-5b54-4a2a-a9c1-0d3c51a6b1f5"
	consumer1 = "f3a7f4f1-6a58-4c43-9d1a-7b63ad1a2b10"
)

// happened returns an event with that name.
func happened(name string) string {
	quoted, err := json.Marshal(name)
	if err != nil {
		panic(err)
	}
	return `{"event":{"name":` + string(quoted) + `,"version":2},"system":{"id":"` + producer1 + `","name":"codello alvine",
		"time":"2021-03-10T22:13:32+01:00","timezone":"Europe/Berlin"},"trigger":{"type":"manual","name":"max"},"payload":{"a":[1, "<&>"]}}`
}

type appended struct {
	ID       string
	Stream   string
	Name     string
	Sequence int64
	EventID  int64
}

func (b *bundle) append(t *testing.T, to, name string, headers ...string) appended {
	t.Helper()
	return into[appended](t, b.as(t, access.Producer, "POST", streams+url.PathEscape(to)+"/events", happened(name),
		append(headers, "X-Producer-ID", producer1)...), 201)
}

type consumed struct {
	Event struct {
		ID, Name string
		Version  int64
	}
	System, Trigger, Payload map[string]any
	Sequence, EventID        int64
}

func (b *bundle) consume(t *testing.T, from, query string) (all []consumed, labels string) {
	t.Helper()
	all = into[[]consumed](t, b.as(t, access.Consumer, "GET", streams+url.PathEscape(from)+"/events?"+query, "", "X-Consumer-ID", consumer1), 200)
	for _, e := range all {
		labels += fmt.Sprintf("%s %d,", e.Event.Name, e.Sequence)
	}
	return all, labels
}

func (b *bundle) ack(t *testing.T, from, id, body string, headers ...string) reply {
	t.Helper()
	return b.as(t, access.Consumer, "POST", streams+url.PathEscape(from)+"/events/"+id, body, append([]string{"X-Consumer-ID", consumer1}, headers...)...)
}

const doAck = `{"action":"ACK"}`

// A walk of eleven steps through a stream: appending, reading, acknowledging and going back, over HTTP.
func TestStreamWalk(t *testing.T) {
	t.Parallel()
	b := streaming(t)
	const news, initiated = "Codello Newsletter Subscriptions", "Subscription initiated"
	for _, name := range []string{"initiated", "initiated", "confirmed", "aborted", "initiated", "confirmed", "canceled", "reactivated"} {
		b.append(t, news, "Subscription "+name)
	}
	query := "limit=2&eventName=" + url.QueryEscape(initiated)
	for _, want := range []string{initiated + " 1," + initiated + " 2,", initiated + " 3,", ""} {
		all, labels := b.consume(t, news, query)
		if labels != want {
			t.Fatalf("got %q, want %q", labels, want)
		}
		for _, e := range all {
			if got := b.ack(t, news, e.Event.ID, doAck); got.body != fmt.Sprintf(`{"offset":%d}`, e.Sequence) {
				t.Fatalf("ack = %s", got.body)
			}
		}
	}
	_, rest := b.consume(t, news, "")
	if want := "Subscription confirmed 1,Subscription aborted 1,Subscription confirmed 2,Subscription canceled 1,Subscription reactivated 1,"; rest != want {
		t.Errorf("of all names: %q, want %q", rest, want)
	}
}

func TestStreamEventRoundTrip(t *testing.T) {
	t.Parallel()
	b := streaming(t)
	a := b.append(t, `a/b "ü"`, " x ")
	got := b.as(t, access.Viewer, "GET", "/api/v1/events/"+strings.ToUpper(a.ID), "")
	want := fmt.Sprintf(`{"event":{"id":"%s","name":" x ","version":2},"system":{"id":"%s","name":"codello alvine","time":"2021-03-10T22:13:32+01:00",`+
		`"timezone":"Europe/Berlin"},"trigger":{"type":"manual","name":"max"},"payload":{"a":[1,"<&>"]},"sequence":1,"eventId":%d,"stream":"a/b \"ü\""}`,
		a.ID, producer1, a.EventID)
	if diff := cmp.Diff(want, got.body); diff != "" {
		t.Error(diff)
	}
	all, _ := b.consume(t, `a/b "ü"`, "")
	if len(all) != 1 || all[0].Event.ID != a.ID || all[0].EventID != a.EventID {
		t.Errorf("consumed %+v", all)
	}
	for _, id := range []string{producer1, "x"} {
		wantProblem(t, b.as(t, access.Viewer, "GET", "/api/v1/events/"+id, ""), 404, api.CodeNotFound)
	}
}

// Whatever a path can hold names a stream.
func TestStreamNames(t *testing.T) {
	t.Parallel()
	b := streaming(t)
	names := []string{"a", "a/b", "a//b", "/", "//", ".", "..", "../x", "%2F", "a b", "a+b", "?", "#", "ü", "events", "events:batch", strings.Repeat("ü", 255)}
	for _, name := range names {
		path := streams + escapeAll(name)
		a := into[appended](t, b.as(t, access.Producer, "POST", path+"/events", happened(name), "X-Producer-ID", producer1), 201)
		if a.Sequence != 1 || a.Stream != name || a.Name != name {
			t.Errorf("%q: %+v", name, a)
		}
		if got := b.as(t, access.Viewer, "GET", path, ""); !strings.Contains(got.body, `"events":1,`) {
			t.Errorf("%q: %s", name, got.body)
		}
	}
	wantProblem(t, b.as(t, access.Producer, "POST", streams+strings.Repeat("x", 256)+"/events", happened("n"), "X-Producer-ID", producer1),
		400, api.CodeInvalid, "path.stream")
	wantProblem(t, b.as(t, access.Producer, "POST", streams+"%FF/events", happened("n"), "X-Producer-ID", producer1), 400, api.CodeInvalid, "path.stream")
}

// A gateway may have unescaped the slashes of a name.
func TestStreamNamesUnescaped(t *testing.T) {
	t.Parallel()
	b := streaming(t)
	for _, name := range []string{"a/b", "a/b/c", "a / b"} {
		path := streams + strings.ReplaceAll(escapeAll(name), "%2F", "/")
		sent := into[appended](t, b.as(t, access.Producer, "POST", path+"/events", happened("n"), "X-Producer-ID", producer1), 201)
		if sent.Stream != name {
			t.Errorf("%q: appended to %q", name, sent.Stream)
		}
		batch := into[[]appended](t, b.as(t, access.Producer, "POST", path+"/events:batch", "["+happened("n")+"]", "X-Producer-ID", producer1), 201)
		if len(batch) != 1 || batch[0].Stream != name {
			t.Errorf("%q: appended %+v", name, batch)
		}
		if got := b.as(t, access.Viewer, "GET", path, ""); !strings.Contains(got.body, `"events":2,`) {
			t.Errorf("%q: %s", name, got.body)
		}
		if got := b.as(t, access.Consumer, "GET", path+"/events", "", "X-Consumer-ID", consumer1); !strings.Contains(got.body, sent.ID) {
			t.Errorf("%q: read %s", name, got.body)
		}
		got := b.as(t, access.Consumer, "POST", path+"/events/"+sent.ID, `{"action":"ACK"}`, "X-Consumer-ID", consumer1)
		if want := `{"offset":1}`; got.body != want {
			t.Errorf("%q: acknowledged %s, want %s", name, got.body, want)
		}
		wantProblem(t, b.as(t, access.Viewer, "POST", path+"/offsets", ""), 403, api.CodeForbidden)
	}
	for target, want := range map[string]int{
		"POST a/b": 404, "PATCH a/b/events": 404, "GET a/b/": 404, "GET a/events/b": 405, "GET a/events:batch": 405,
	} {
		method, path, _ := strings.Cut(target, " ")
		if got := b.as(t, access.Viewer, method, streams+path, ""); got.StatusCode != want {
			t.Errorf("%s is answered %d %s, want %d", target, got.StatusCode, got.body, want)
		}
	}
}

// escapeAll escapes every byte, dots too.
func escapeAll(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func TestForeignProducerIsLocked(t *testing.T) {
	t.Parallel()
	b := streaming(t)
	b.append(t, "s", "n")
	got := b.as(t, access.Producer, "POST", streams+"s/events", happened("n"), "X-Producer-ID", producer2)
	wantProblem(t, got, 423, api.CodeLocked)
	if a := b.append(t, "s", "n"); a.Sequence != 2 {
		t.Errorf("the next sequence is %d, want 2", a.Sequence)
	}
}

func TestStreamEventRules(t *testing.T) {
	t.Parallel()
	b := streaming(t)
	rules := []struct {
		from, to string // the change that makes a valid event invalid
		location string
	}{
		{`"name":"n"`, `"name":""`, "body.event.name"},
		{`"name":"n"`, `"name":"` + strings.Repeat("ü", 256) + `"`, "body.event.name"},
		{`"name":"n"`, `"name":7`, "body.event.name"},
		{`"name":"n",`, ``, "body.event.name"},
		{`"version":2`, `"version":0`, "body.event.version"},
		{`"version":2`, `"version":-1`, "body.event.version"},
		{`"version":2`, `"version":1.5`, "body.event.version"},
		{`"version":2`, `"version":"1"`, "body.event.version"},
		{`"version":2`, `"version":null`, "body.event.version"},
		{`"version":2`, `"version":2,"id":"` + producer1 + `"`, "body.event.id"},
		{`"version":2`, `"version":2,"x":1`, "body.event.x"},
		{`"system":{"id":"` + producer1, `"system":{"id":"alv1`, "body.system.id"},
		{`"codello alvine"`, `""`, "body.system.name"},
		{`"2021-03-10T22:13:32+01:00"`, `"yesterday"`, "body.system.time"},
		{`"2021-03-10T22:13:32+01:00"`, `"2021-02-30T22:13:32Z"`, "body.system.time"},
		{`"Europe/Berlin"`, `"Europe/Bielefeld"`, "body.system.timezone"},
		{`"Europe/Berlin"`, `""`, "body.system.timezone"},
		{`"Europe/Berlin"`, `"Local"`, "body.system.timezone"},
		{`"Europe/Berlin"`, `"localtime"`, "body.system.timezone"},
		{`"Europe/Berlin"`, `"right/Europe/Berlin"`, "body.system.timezone"},
		{`"manual"`, `"system"`, "body.trigger.type"},
		{`"max"`, `""`, "body.trigger.name"},
		{`"payload":{"a":[1, "<&>"]}`, `"payload":[1]`, "body.payload"},
		{`"payload":{"a":[1, "<&>"]}`, `"payload":null`, "body.payload"},
		{`,"payload":{"a":[1, "<&>"]}`, ``, "body.payload"},
		{`"trigger":{"type":"manual","name":"max"},`, ``, "body.trigger"},
		{`"payload":{"a"`, `"more":1,"payload":{"a"`, "body.more"},
		{`"payload":{"a"`, `"payload":{"a":1,"a"`, "body.payload.a"},
	}
	for _, rule := range rules {
		body := strings.Replace(happened("n"), rule.from, rule.to, 1)
		if body == happened("n") {
			t.Fatalf("%s is not in the event", rule.from)
		}
		wantProblem(t, b.as(t, access.Producer, "POST", streams+"s/events", body, "X-Producer-ID", producer1), 400, api.CodeInvalid, rule.location)
	}
	wantProblem(t, b.as(t, access.Viewer, "GET", streams+"s", ""), 404, api.CodeNotFound)
	minimal := strings.Replace(happened("n"), `,"version":2`, "", 1)
	into[appended](t, b.as(t, access.Producer, "POST", streams+"s/events", minimal, "X-Producer-ID", producer1), 201)
	if all, _ := b.consume(t, "s", ""); all[0].Event.Version != 1 {
		t.Errorf("the default version is %d, want 1", all[0].Event.Version)
	}
	for _, at := range []string{"2021-03-10T22:13:32Z", "2021-03-10T22:13:32.123456+0100", "2021-03-10T22:13", "20210310T221332Z"} {
		body := strings.Replace(happened("n"), "2021-03-10T22:13:32+01:00", at, 1)
		into[appended](t, b.as(t, access.Producer, "POST", streams+"s/events", body, "X-Producer-ID", producer1), 201)
	}
}

func TestStreamLimits(t *testing.T) {
	t.Parallel()
	b := streaming(t)
	large := func(n int) string { // with a payload of n bytes
		return strings.Replace(happened("n"), `"a":[1, "<&>"]`, `"a":"`+strings.Repeat("x", n-len(`{"a":""}`))+`"`, 1)
	}
	long := func(of string, n int, body string) string {
		return strings.Replace(body, of, strings.Repeat("ü", n/2), 1)
	}
	post := func(path, body string) reply {
		return b.as(t, access.Producer, "POST", streams+path, body, "X-Producer-ID", producer1)
	}
	wantProblem(t, post("s/events", large(256<<10+1)), 413, api.CodeTooLarge, "body.payload")
	wantProblem(t, post("s/events", long("max", 256<<10, happened("n"))), 413, api.CodeTooLarge, "body.trigger.name")
	wantProblem(t, post("s/events", long("codello alvine", 200<<10, large(256<<10))), 413, api.CodeTooLarge, "body")
	wantProblem(t, post("s/events", large(1<<20)), 413, api.CodeTooLarge, "body")
	wantProblem(t, post("s/events:batch", "["+happened("n")+","+large(256<<10+1)+"]"), 413, api.CodeTooLarge, "body[1].payload")
	wantProblem(t, post("s/events:batch", "[]"), 400, api.CodeInvalid, "body")
	wantProblem(t, post("s/events:batch", "["+happened("n")+","+happened("")+"]"), 400, api.CodeInvalid, "body[1].event.name")
	wantProblem(t, post("s/events:batch", "["+strings.Repeat(strings.Join(strings.Fields(happened("n")), "")+",", 1000)+happened("n")+"]"), 400, api.CodeInvalid, "body")
	names := make([]string, stream.MaxNames+1)
	for i := range names {
		names[i] = happened(fmt.Sprint("n", i))
	}
	tooMany := post("s/events:batch", "["+strings.Join(names, ",")+"]")
	wantProblem(t, tooMany, 413, api.CodeTooLarge, "body")
	if !strings.Contains(tooMany.body, fmt.Sprint(stream.MaxNames)) {
		t.Errorf("what is said of too many names does not say how many there may be: %s", tooMany.body)
	}
	wantProblem(t, b.as(t, access.Viewer, "GET", streams+"s", ""), 404, api.CodeNotFound)
	into[appended](t, post("s/events", large(256<<10)), 201)
	into[appended](t, post("s/events", long("codello alvine", 60<<10, long("max", 55<<10, large(256<<10)))), 201)
	into[[]appended](t, post("s/events:batch", "["+large(256<<10)+","+large(256<<10)+","+large(256<<10)+"]"), 201)
	if all, _ := b.consume(t, "s", ""); len(all) != 5 {
		t.Errorf("%d large events are read, want 5", len(all))
	}
	got := into[[]appended](t, post("s/events:batch", "["+happened("n")+","+happened("m")+"]"), 201)
	if len(got) != 2 || got[0].Sequence != 6 || got[1].Sequence != 1 || got[1].EventID != got[0].EventID+1 {
		t.Errorf("batch = %+v", got)
	}
}

func TestAppendOnce(t *testing.T) {
	t.Parallel()
	b := streaming(t)
	first := b.append(t, "s", "n", "Idempotency-Key", "k")
	if again := b.append(t, "s", "n", "Idempotency-Key", "k"); again != first {
		t.Errorf("again = %+v, want %+v", again, first)
	}
	wantProblem(t, b.as(t, access.Producer, "POST", streams+"s/events", happened("m"), "X-Producer-ID", producer1, "Idempotency-Key", "k"),
		422, api.CodeMismatch, "header.Idempotency-Key")
	if other := b.append(t, "t", "n", "Idempotency-Key", "k"); other.Stream != "t" {
		t.Errorf("the same key for another stream = %+v", other)
	}
}

func TestAcknowledge(t *testing.T) {
	t.Parallel()
	b := streaming(t)
	first, second := b.append(t, "s", "n"), b.append(t, "s", "n")
	got := b.ack(t, "s", second.ID, doAck)
	wantProblem(t, got, 409, api.CodeConflict)
	if !strings.Contains(got.body, `sequence 2 of \"n\" is not the next to acknowledge, sequence 1 is`) {
		t.Errorf("detail: %s", got.body)
	}
	form := []string{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}
	for _, ok := range []reply{
		b.ack(t, "s", first.ID, "action=ACK", form...), b.ack(t, "s", first.ID, doAck),
	} {
		if ok.StatusCode != 200 || ok.body != `{"offset":1}` {
			t.Errorf("ack = %d %s", ok.StatusCode, ok.body)
		}
	}
	wantProblem(t, b.ack(t, "s", producer1, doAck), 404, api.CodeNotFound)
	wantProblem(t, b.ack(t, "s", "none", doAck), 404, api.CodeNotFound)
	wantProblem(t, b.ack(t, "none", first.ID, doAck), 404, api.CodeNotFound)
	for body, location := range map[string]string{`{"action":"NACK"}`: "body.action", `{}`: "body.action", `{"x":1}`: "body.x", ``: "body"} {
		wantProblem(t, b.ack(t, "s", first.ID, body), 400, api.CodeInvalid, location)
	}
	for body, location := range map[string]string{"action=NACK": "body.action", "": "body.action", "action=ACK&x=1": "body.x", "%": "body"} {
		wantProblem(t, b.ack(t, "s", first.ID, body, form...), 400, api.CodeInvalid, location)
	}
	wantProblem(t, b.ack(t, "s", first.ID, doAck, "Content-Type", "text/plain"), 415, api.CodeMediaType)
	wantProblem(t, b.ack(t, "s", first.ID, doAck, "X-Consumer-ID", "me"), 400, api.CodeInvalid, "header.X-Consumer-ID")
}

func TestMoveOffset(t *testing.T) {
	t.Parallel()
	b := streaming(t)
	b.append(t, "s", "n")
	b.append(t, "s", "n")
	move := func(body string) reply {
		return b.as(t, access.Consumer, "POST", streams+"s/offsets", body, "X-Consumer-ID", consumer1)
	}
	for _, n := range []int{2, 0, 1} {
		if got := move(fmt.Sprintf(`{"eventName":"n","offset":%d}`, n)); got.body != fmt.Sprintf(`{"offset":%d}`, n) {
			t.Errorf("to %d: %s", n, got.body)
		}
	}
	if _, labels := b.consume(t, "s", "eventName=n"); labels != "n 2," {
		t.Errorf("what is left: %s", labels)
	}
	wantProblem(t, move(`{"eventName":"n","offset":3}`), 422, api.CodeImpossible, "body.offset")
	wantProblem(t, move(`{"eventName":"n","offset":-1}`), 400, api.CodeInvalid, "body.offset")
	wantProblem(t, move(`{"eventName":"","offset":1}`), 400, api.CodeInvalid, "body.eventName")
	wantProblem(t, move(`{"offset":1}`), 400, api.CodeInvalid, "body.eventName")
	got := b.as(t, access.Viewer, "GET", "/api/v1/consumers?stream=s", "")
	all := into[map[string][]map[string]any](t, got, 200)["consumers"]
	if len(all) != 1 || all[0]["movedAt"] == "" {
		t.Fatalf("consumers: %s", got.body)
	}
	delete(all[0], "movedAt")
	want := map[string]any{"consumer": consumer1, "stream": "s", "eventName": "n", "offset": 1.0, "behind": 1.0, "consumedPercentage": 50.0}
	if diff := cmp.Diff(want, all[0]); diff != "" {
		t.Error(diff)
	}
}

func TestStreamLists(t *testing.T) {
	t.Parallel()
	b := streaming(t)
	for _, s := range []string{"a", "b/c", "d"} {
		b.append(t, s, "n")
		b.append(t, s, "m")
	}
	var all []string
	for next := "/api/v1/streams?limit=2"; next != ""; {
		got := b.as(t, access.Viewer, "GET", next, "")
		for _, s := range into[map[string][]map[string]any](t, got, 200)["streams"] {
			all = append(all, fmt.Sprint(s["stream"], s["producer"], s["events"], s["names"]))
		}
		next = linked(got)
	}
	tail := producer1 + " 2[map[name:m sequence:1] map[name:n sequence:1]]"
	tail = strings.Replace(tail, " 2", "2 ", 1)
	if diff := cmp.Diff([]string{"a" + tail, "b/c" + tail, "d" + tail}, all); diff != "" {
		t.Error(diff)
	}
	got := b.as(t, access.Viewer, "GET", streams+"b%2Fc?limit=1", "")
	if next := linked(got); next == "" || !strings.Contains(b.as(t, access.Viewer, "GET", next, "").body, `"names":[{"name":"n","sequence":1}]`) {
		t.Errorf("the names' second page of %s: %s", got.body, next)
	}
	wantProblem(t, b.as(t, access.Viewer, "GET", "/api/v1/streams?cursor=*", ""), 400, api.CodeInvalid, "query.cursor")
	wantProblem(t, b.as(t, access.Viewer, "GET", "/api/v1/consumers", ""), 400, api.CodeInvalid, "query.stream")
	wantProblem(t, b.as(t, access.Viewer, "GET", "/api/v1/consumers?stream=none", ""), 404, api.CodeNotFound)
	wantProblem(t, b.as(t, access.Consumer, "GET", streams+"none/events", "", "X-Consumer-ID", consumer1), 404, api.CodeNotFound)
	wantProblem(t, b.as(t, access.Consumer, "GET", streams+"a/events", ""), 400, api.CodeInvalid, "header.X-Consumer-ID")
	wantProblem(t, b.as(t, access.Consumer, "GET", streams+"a/events?limit=0", "", "X-Consumer-ID", consumer1), 400, api.CodeInvalid, "query.limit")
	wantProblem(t, b.as(t, access.Consumer, "GET", streams+"a/events?eventName=", "", "X-Consumer-ID", consumer1), 400, api.CodeInvalid, "query.eventName")
	wantProblem(t, b.as(t, access.Producer, "POST", streams+"a/events", happened("n")), 400, api.CodeInvalid, "header.X-Producer-ID")
}

func TestStreamRoles(t *testing.T) {
	t.Parallel()
	b := streaming(t)
	id := b.append(t, "s", "n").ID
	for _, call := range []struct{ method, path, body, may string }{
		{"POST", "streams/s/events", happened("n"), "producer operator admin"},
		{"POST", "streams/s/events:batch", "[" + happened("n") + "]", "producer operator admin"},
		{"GET", "streams/s/events", "", "viewer consumer operator admin"},
		{"GET", "streams", "", "viewer consumer operator admin"},
		{"GET", "streams/s", "", "viewer consumer operator admin"},
		{"GET", "consumers?stream=s", "", "viewer consumer operator admin"},
		{"GET", "events/" + id, "", "viewer consumer operator admin"},
		{"POST", "streams/s/events/" + id, doAck, "consumer operator admin"},
		{"POST", "streams/s/offsets", `{"eventName":"n","offset":0}`, "consumer operator admin"},
	} {
		for _, role := range []access.Role{access.Viewer, access.Producer, access.Consumer, access.Worker, access.Operator, access.Admin} {
			got := b.as(t, role, call.method, "/api/v1/"+call.path, call.body, "X-Producer-ID", producer1, "X-Consumer-ID", consumer1)
			if may := strings.Contains(call.may, string(role)); may == (got.StatusCode == 403) {
				t.Errorf("%s %s as %s: %d", call.method, call.path, role, got.StatusCode)
			}
		}
	}
}
