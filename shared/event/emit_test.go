package event_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/event"
)

func TestParseEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		want       []event.Event
	}{
		{"type only", `[{"TYPE":"Paid"}]`, []event.Event{{Type: "Paid"}}},
		{
			"key and fields", `[{"TYPE":"Paid","key":"/shop/1","amount":12.50,"by":"card"}]`,
			[]event.Event{{Type: "Paid", Key: event.Key{Path: "/shop/1"}, Fields: []byte(`"amount":12.50,"by":"card"`)}},
		},
		{
			"TYPE and key anywhere", `[{"z":1,"key":"k","a":[],"TYPE":"Paid","m":{}}]`,
			[]event.Event{{Type: "Paid", Key: event.Key{Path: "k"}, Fields: []byte(`"z":1,"a":[],"m":{}`)}},
		},
		{
			"spaces go, what is inside strings stays", " [ {\n\t\"TYPE\" : \"Paid\" ,\r\n \"a b\" : [ 1 , { \"c \\\" d\" : \" e { \" } ] , \"n\" : null } ] ",
			[]event.Event{{Type: "Paid", Fields: []byte(`"a b":[1,{"c \" d":" e { "}],"n":null`)}},
		},
		{
			"numbers and strings as written", `[{"TYPE":"Paid","n":1.0e+2,"i":123456789012345678901234567890,"s":"\u0041\/\n"}]`,
			[]event.Event{{Type: "Paid", Fields: []byte(`"n":1.0e+2,"i":123456789012345678901234567890,"s":"\u0041\/\n"`)}},
		},
		{
			"escapes in names and values", `[{"\u0054YPE":"P\u0061id","k\u0065y":"\ud83d\ude00\"\\","typ\u0065":"x"}]`,
			[]event.Event{{Type: "Paid", Key: event.Key{Path: `😀"\`}, Fields: []byte(`"type":"x"`)}},
		},
		{
			"a name has one spelling", `[{"TYPE":"Paid","caf\u00E9":1,"\u0022\/\u0000\u000a":"\/"}]`,
			[]event.Event{{Type: "Paid", Fields: []byte(`"café":1,"\"/\u0000\n":"\/"`)}},
		},
		{
			"several, of one type and of others", `[{"TYPE":"Paid","n":1},{"TYPE":"Paid","n":2},{"TYPE":"Sent"}]`,
			[]event.Event{{Type: "Paid", Fields: []byte(`"n":1`)}, {Type: "Paid", Fields: []byte(`"n":2`)}, {Type: "Sent"}},
		},
		{
			"nested TYPE, key and eventId are free", `[{"TYPE":"Paid","by":{"TYPE":null,"key":1,"eventId":2},"Key":1}]`,
			[]event.Event{{Type: "Paid", Fields: []byte(`"by":{"TYPE":null,"key":1,"eventId":2},"Key":1`)}},
		},
		{
			"the built-in type for it", `[{"TYPE":"VariablesCustomEvent","variables":{"a":"b"}}]`,
			[]event.Event{{Type: "VariablesCustomEvent", Fields: []byte(`"variables":{"a":"b"}`)}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := event.ParseEvents([]byte(c.body))
			if err != nil {
				t.Fatalf("ParseEvents(%s) = %v", c.body, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("ParseEvents(%s) (-want +got):\n%s", c.body, diff)
			}
		})
	}
}

func TestParseEventsRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body   string
		reason event.Reason
		want   string
	}{
		{"", event.Invalid, `body: is empty: JSON is needed`},
		{" \n", event.Invalid, `body: is empty: JSON is needed`},
		{`{"TYPE":"Paid"}`, event.Invalid, `body: must be an array of events, not an object`},
		{`null`, event.Invalid, `body: must be an array of events, not null`},
		{`[]`, event.Invalid, `body: is an empty array: give at least one event`},
		{`[1,null,[],"x",true]`, event.Invalid, `body[0]: must be an object, not a number; body[1]: must be an object, not null; ` +
			`body[2]: must be an object, not an array; body[3]: must be an object, not a string; body[4]: must be an object, not a boolean`},
		{`[{}]`, event.Invalid, `body[0].TYPE: is missing: give the event's type`},
		{`[{"TYPE":null,"key":null}]`, event.Invalid, `body[0].TYPE: must be a string, not null; body[0].key: must be a string, not null`},
		{`[{"TYPE":1}]`, event.Invalid, `body[0].TYPE: must be a string, not a number`},
		{`[{"TYPE":""}]`, event.Invalid, `body[0].TYPE: is empty: give the name of an event type`},
		{`[{"TYPE":"a b"}]`, event.Invalid, `body[0].TYPE: holds ' ': the name of an event type has letters, digits and _ . - : only`},
		{`[{"TYPE":"9x"}]`, event.Invalid, `body[0].TYPE: begins with '9': the name of an event type begins with a letter from A to Z or a to z`},
		{`[{"TYPE":"Paid","key":""}]`, event.Invalid, `body[0].key: is empty: leave it out if the event is about no object`},
		{`[{"TYPE":"Paid","key":{"jobPath":"/j","taskId":"1"}}]`, event.Invalid, `body[0].key: must be a string, not an object`},
		{`[{"TYPE":"Paid"},{"eventId":1,"TYPE":"Paid"}]`, event.Invalid, `body[1].eventId: is given by the journal: leave it out`},
		{`[{"TYPE":"OrderStarted"}]`, event.Unprocessable, `body[0].TYPE: "OrderStarted" is built in and comes from the scheduler only: emit a type with a name of its own`},
		{`[{"TYPE":"Event"}]`, event.Unprocessable, `body[0].TYPE: "Event" is built in and comes from the scheduler only: emit a type with a name of its own`},
		{`[{"TYPE":"OrderPaid"}]`, event.Unprocessable, `body[0].TYPE: "OrderPaid" begins with Order, as built-in types do: emit a type whose name begins otherwise`},
		{`[{"TYPE":"OrderPaid"},{"TYPE":"OrderPaid"},{"TYPE":""}]`, event.Invalid,
			`body[0].TYPE: "OrderPaid" begins with Order, as built-in types do: emit a type whose name begins otherwise; ` +
				`body[1].TYPE: "OrderPaid" begins with Order, as built-in types do: emit a type whose name begins otherwise; ` +
				`body[2].TYPE: is empty: give the name of an event type`},
		{`[{"TYPE":"Paid","TYPE":"Paid"}]`, event.Invalid, `body[0].TYPE: is not valid JSON, at offset 16 (line 1, column 17): duplicate object member name`},
		{`[{"TYPE":"Paid","a":{"b":1,"\u0062":2}}]`, event.Invalid, `body[0].a.b: is not valid JSON, at offset 27 (line 1, column 28): duplicate object member name`},
		{"[{\"TYPE\":\"Paid\",\n \"a\":01}]", event.Invalid, `body[0]: is not valid JSON, at offset 23 (line 2, column 7): invalid character '1' after object value (expecting ',' or '}')`},
		{`[{"TYPE":"Paid"},]`, event.Invalid, `body: is not valid JSON, at offset 16 (line 1, column 17): invalid character ',' at start of value`},
		{`[{"TYPE":"Paid"}`, event.Invalid, `body: is not valid JSON, at offset 16 (line 1, column 17): it ends too early`},
		{`[{"TYPE":"Paid"}] x`, event.Invalid, `body: is not valid JSON, at offset 18 (line 1, column 19): invalid character 'x' at start of value`},
		{`[{"TYPE":"Paid"}][]`, event.Invalid, `body: has more after the end of its JSON value, at offset 17 (line 1, column 18)`},
		{"[{\"TYPE\":\"Paid\",\"a\":\"\xff\"}]", event.Invalid, `body[0].a: is not valid JSON, at offset 21 (line 1, column 22): invalid UTF-8`},
		{`[{"TYPE":"Paid","a":"\ud800"}]`, event.Invalid, "body[0].a: is not valid JSON, at offset 21 (line 1, column 22): invalid surrogate pair `\\ud800\"}]` in string"},
	} {
		_, err := event.ParseEvents([]byte(c.body))
		if event.ReasonOf(err) != c.reason {
			t.Errorf("ParseEvents(%s) = %v, want %v", c.body, err, c.reason)
			continue
		}
		if diff := cmp.Diff(c.want, err.Error()); diff != "" {
			t.Errorf("ParseEvents(%s) (-want +got):\n%s", c.body, diff)
		}
	}
}

func TestParseEventsLimits(t *testing.T) {
	t.Parallel()
	one := func(field string) string { return `[{"TYPE":"Paid",` + field + `}]` }
	fields := event.Event{Type: "Paid", Fields: []byte(`"a":""`)}
	room := event.MaxSize - fields.Size()
	nested := func(depth int) string { return `"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for _, c := range []struct {
		name, body string
		want       event.Reason
	}{
		{"longest key", one(`"key":"` + strings.Repeat("k", event.MaxKey) + `"`), 0},
		{"longer key", one(`"key":"` + strings.Repeat("k", event.MaxKey+1) + `"`), event.Invalid},
		{"key of few runes, many bytes", one(`"key":"` + strings.Repeat("ü", event.MaxKey/2+1) + `"`), event.Invalid},
		{"key of many escapes, few bytes", one(`"key":"` + strings.Repeat(`\u0061`, event.MaxKey) + `"`), 0},
		{"largest event", one(`"a":"` + strings.Repeat("x", room) + `"`), 0},
		{"larger event", one(`"a":"` + strings.Repeat("x", room+1) + `"`), event.TooLarge},
		{"spaces do not count", one(strings.Repeat(" ", event.MaxSize) + `"a":1`), 0},
		{"most events", "[" + strings.Repeat(`{"TYPE":"Paid"},`, event.MaxEvents-1) + `{"TYPE":"Paid"}]`, 0},
		{"more events", "[" + strings.Repeat(`{"TYPE":"Paid"},`, event.MaxEvents) + `{"TYPE":"Paid"}]`, event.TooLarge},
		{"deepest field", one(nested(event.MaxDepth)), 0},
		{"deeper field", one(nested(event.MaxDepth + 1)), event.Invalid},
		{"far too deep", one(nested(100_000)), event.Invalid},
		{"too large and wrong", `[{"a":"` + strings.Repeat("x", event.MaxSize) + `"}]`, event.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := event.ParseEvents([]byte(c.body)); event.ReasonOf(err) != c.want || (err == nil) != (c.want == 0) {
				t.Errorf("ParseEvents = %v, want %v", err, c.want)
			}
		})
	}
}

func TestParseEventsBoundsItsProblems(t *testing.T) {
	t.Parallel()
	_, err := event.ParseEvents([]byte("[" + strings.Repeat("1,", 5000) + "1]"))
	if n := strings.Count(err.Error(), ";") + 1; n != 20 {
		t.Errorf("%d problems, want 20", n)
	}
}

// The events must not change when the body's memory is used again.
func TestParseEventsSharesNothingWithTheBody(t *testing.T) {
	t.Parallel()
	body := []byte(`[{"TYPE":"Paid","key":"k","a":1},{"TYPE":"Sent","key":"l","b":2}]`)
	events, err := event.ParseEvents(body)
	if err != nil {
		t.Fatal(err)
	}
	before := string(event.AppendEvents(nil, events, true))
	clear(body)
	_ = append(events[0].Fields, `,"c":3`...)
	if diff := cmp.Diff(before, string(event.AppendEvents(nil, events, true))); diff != "" {
		t.Errorf("events changed (-before +after):\n%s", diff)
	}
}

func TestParseEventsAllocatesLittle(t *testing.T) {
	if raceDetector {
		t.Skip("counts allocations, which the race detector adds to")
	}
	body := body256()
	if n := testing.AllocsPerRun(100, func() { _, _ = event.ParseEvents(body) }); n > 5 {
		t.Errorf("ParseEvents of one event allocates %v times, want at most 5", n)
	}
}
