package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
	"github.com/millrace/millrace/shared/journal"
)

const eventPath = base + "/event"

func TestEmit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := b.as(t, access.Producer, "POST", eventPath, `[{"TYPE":"A","key":"/a"},{"TYPE":"B","key":"/b","n":1}]`)
	want := fmt.Sprintf(`{"eventIds":[%d,%d]}`, firstID, firstID+1)
	if got.StatusCode != http.StatusCreated || got.body != want {
		t.Errorf("emit = %d %s, want 201 %s", got.StatusCode, got.body, want)
	}
	if kind := got.Header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("Content-Type = %q", kind)
	}
}

func TestEmitRefused(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 256<<10)
	cases := map[string]struct {
		body    string
		headers []string
		status  int
		code    api.Code
		fields  []string
	}{
		"no body":              {"", nil, 400, api.CodeInvalid, []string{"body"}},
		"not JSON":             {"{", nil, 400, api.CodeInvalid, []string{"body"}},
		"cut off":              {`[{"TYPE":"A"}`, nil, 400, api.CodeInvalid, []string{"body"}},
		"two values":           {`[{"TYPE":"A"}] []`, nil, 400, api.CodeInvalid, []string{"body"}},
		"an object":            {`{"TYPE":"A"}`, nil, 400, api.CodeInvalid, []string{"body"}},
		"null":                 {`null`, nil, 400, api.CodeInvalid, []string{"body"}},
		"an empty list":        {`[]`, nil, 400, api.CodeInvalid, []string{"body"}},
		"no type":              {`[{"key":"/a"}]`, nil, 400, api.CodeInvalid, []string{"body[0].TYPE"}},
		"a null type":          {`[{"TYPE":"A"},{"TYPE":null}]`, nil, 400, api.CodeInvalid, []string{"body[1].TYPE"}},
		"a number as type":     {`[{"TYPE":1}]`, nil, 400, api.CodeInvalid, []string{"body[0].TYPE"}},
		"a number as key":      {`[{"TYPE":"A","key":1}]`, nil, 400, api.CodeInvalid, []string{"body[0].key"}},
		"a null key":           {`[{"TYPE":"A","key":null}]`, nil, 400, api.CodeInvalid, []string{"body[0].key"}},
		"an id of one's own":   {`[{"TYPE":"A","eventId":1}]`, nil, 400, api.CodeInvalid, []string{"body[0].eventId"}},
		"the same field twice": {`[{"TYPE":"A","a":1,"a":2}]`, nil, 400, api.CodeInvalid, nil},
		"invalid UTF-8":        {"[{\"TYPE\":\"A\",\"a\":\"\xff\"}]", nil, 400, api.CodeInvalid, nil},
		"a built-in type":      {`[{"TYPE":"OrderStarted","key":"/a,1"}]`, nil, 422, api.CodeImpossible, []string{"body[0].TYPE"}},
		"Event":                {`[{"TYPE":"Event"}]`, nil, 422, api.CodeImpossible, []string{"body[0].TYPE"}},
		"CustomEvent":          {`[{"TYPE":"CustomEvent"}]`, nil, 422, api.CodeImpossible, []string{"body[0].TYPE"}},
		"like a built-in type": {`[{"TYPE":"A"},{"TYPE":"TaskFoo"}]`, nil, 422, api.CodeImpossible, []string{"body[1].TYPE"}},
		"a value too large":    {`[{"TYPE":"A","a":"` + large + `"}]`, nil, 413, api.CodeTooLarge, nil},
		"a body too large":     {`[{"TYPE":"A"},` + strings.Repeat(" ", 1<<20) + `{"TYPE":"A"}]`, nil, 413, api.CodeTooLarge, []string{"body"}},
		"a form":               {`[{"TYPE":"A"}]`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, api.CodeMediaType, []string{"header.Content-Type"}},
		"text":                 {`[{"TYPE":"A"}]`, []string{"Content-Type", "text/plain"}, 415, api.CodeMediaType, []string{"header.Content-Type"}},
		"Latin-1":              {`[{"TYPE":"A"}]`, []string{"Content-Type", "application/json; charset=latin1"}, 415, api.CodeMediaType, []string{"header.Content-Type"}},
		"packed":               {`[{"TYPE":"A"}]`, []string{"Content-Encoding", "gzip"}, 415, api.CodeMediaType, []string{"header.Content-Encoding"}},
		"an empty key":         {`[{"TYPE":"A"}]`, []string{"Idempotency-Key", ""}, 400, api.CodeInvalid, []string{"header.Idempotency-Key"}},
		"a long key":           {`[{"TYPE":"A"}]`, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400, api.CodeInvalid, []string{"header.Idempotency-Key"}},
		"a key with a space":   {`[{"TYPE":"A"}]`, []string{"Idempotency-Key", "a b"}, 400, api.CodeInvalid, []string{"header.Idempotency-Key"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			wantProblem(t, b.as(t, access.Producer, "POST", eventPath, c.body, c.headers...), c.status, c.code, c.fields...)
			if len(b.journal.events) > 0 {
				t.Errorf("stored %v", b.journal.events)
			}
		})
	}
}

func TestEmitTakesJSONWithCharset(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"application/json", "application/json; charset=UTF-8", "Application/JSON;charset=utf-8"} {
		b := setup(t)
		if got := b.as(t, access.Producer, "POST", eventPath, `[{"TYPE":"A"}]`, "Content-Type", kind); got.StatusCode != 201 {
			t.Errorf("%s = %d %s, want 201", kind, got.StatusCode, got.body)
		}
	}
}

func TestEmitOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	send := func(role access.Role, body string) reply {
		return b.as(t, role, "POST", eventPath, body, "Idempotency-Key", "k1")
	}
	one := send(access.Producer, `[{"TYPE":"A"}]`)
	again := send(access.Producer, `[{"TYPE":"A"}]`)
	if again.StatusCode != 201 || again.body != one.body || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same again = %d %s, want %s replayed", again.StatusCode, again.body, one.body)
	}
	wantProblem(t, send(access.Producer, `[{"TYPE":"B"}]`), 422, api.CodeMismatch, "header.Idempotency-Key")
	if other := send(access.Operator, `[{"TYPE":"B"}]`); other.StatusCode != 201 || other.body == one.body {
		t.Errorf("another token's key = %d %s, want its own answer", other.StatusCode, other.body)
	}
	if b.journal.emits != 2 {
		t.Errorf("%d appends, want 2", b.journal.emits)
	}
}

func TestEmitRefusedKeepsNoKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	refused := b.as(t, access.Producer, "POST", eventPath, `[{"TYPE":"OrderAdded"}]`, "Idempotency-Key", "k")
	taken := b.as(t, access.Producer, "POST", eventPath, `[{"TYPE":"A"}]`, "Idempotency-Key", "k")
	if refused.StatusCode != 422 || taken.StatusCode != 201 {
		t.Errorf("refused, then another body = %d, %d, want 422, 201", refused.StatusCode, taken.StatusCode)
	}
}

func TestEmitInProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.journal.hold = make(chan struct{})
		send := func() reply {
			return b.as(t, access.Producer, "POST", eventPath, `[{"TYPE":"A"}]`, "Idempotency-Key", "k")
		}
		first := make(chan reply)
		go func() { first <- send() }()
		synctest.Wait()
		second := send()
		wantProblem(t, second, 409, api.CodeInProgress, "header.Idempotency-Key")
		if second.Header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After = %q, want 1", second.Header.Get("Retry-After"))
		}
		const line = `{"idempotencyKey":"k","events":[{"TYPE":"A"}]}`
		const detail = "body.idempotencyKey: the first request with this key is still at work"
		if r := results(t, b.emitLines(t, line).body)[0]; r.Code != api.CodeInProgress || r.RetryAfter != 1 || r.Detail != detail || r.Message != detail || r.Errors[0].Location != "body.idempotencyKey" {
			t.Errorf("by a line = %+v", r)
		}
		close(b.journal.hold)
		if one, again := <-first, send(); one.StatusCode != 201 || again.body != one.body {
			t.Errorf("afterwards = %d %s, want %s", again.StatusCode, again.body, one.body)
		}
	})
}

func TestEmitFailures(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fail   error
		status int
		code   api.Code
		retry  string
	}{
		"unavailable":     {fmt.Errorf("append: %w", journal.ErrUnavailable), 503, api.CodeUnavailable, "1"},
		"unknown outcome": {fmt.Errorf("append: %w", journal.ErrUnknownOutcome), 503, api.CodeUnavailable, "1"},
		"closed":          {journal.ErrClosed, 503, api.CodeUnavailable, "1"},
		"too large":       {journal.ErrTooLarge, 413, api.CodeTooLarge, ""},
		"anything else":   {errors.New("disk on fire at sector 7"), 500, api.CodeInternal, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.journal.fail = c.fail
			got := b.as(t, access.Producer, "POST", eventPath, `[{"TYPE":"A"}]`)
			wantProblem(t, got, c.status, c.code)
			if got.Header.Get("Retry-After") != c.retry {
				t.Errorf("Retry-After = %q, want %q", got.Header.Get("Retry-After"), c.retry)
			}
			if strings.Contains(got.body, "sector") {
				t.Errorf("the answer tells of the inside: %s", got.body)
			}
			if c.status >= 500 && !strings.Contains(b.logs.String(), c.fail.Error()) {
				t.Errorf("the log lacks the cause: %s", b.logs)
			}
		})
	}
}

func TestEmitBodyOfUnknownLength(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"small":     {`[{"TYPE":"A"}]`, 201},
		"too large": {`[` + strings.Repeat(" ", 1<<20) + `]`, 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := request(t, access.Producer, "POST", eventPath, c.body)
			r.ContentLength = -1
			if got := b.do(t, r); got.StatusCode != c.want {
				t.Errorf("status = %d, want %d: %s", got.StatusCode, c.want, got.body)
			}
		})
	}
}

func TestEmitManyIDs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := b.as(t, access.Producer, "POST", eventPath, `[`+strings.Repeat(`{"TYPE":"A"},`, 999)+`{"TYPE":"A"}]`)
	var answer struct {
		EventIDs []int64 `json:"eventIds"`
	}
	if err := json.Unmarshal([]byte(got.body), &answer); err != nil || len(answer.EventIDs) != 1000 {
		t.Fatalf("%d ids, %v", len(answer.EventIDs), err)
	}
}
