package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/shared/access"
	"github.com/millrace/millrace/shared/api"
)

// fires is a response of cron/next.
type fires struct {
	Times       []string `json:"times"`
	Description string   `json:"description"`
	FiresPerDay float64  `json:"fires_per_day"`
	Warnings    []string `json:"warnings"`
}

func cronAPI() *bundle {
	return &bundle{api: api.New(api.Options{Tokens: tokens()}, api.Cron())}
}

func cronNext(parameters ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		v.Add(parameters[i], parameters[i+1])
	}
	return "/api/v1/cron/next?" + v.Encode()
}

func TestCronNext(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		target string
		want   fires
	}{
		{cronNext("expr", "0 30 2 * * ?", "tz", "Europe/Berlin", "after", "2024-03-30T00:00:00Z", "count", "3"), fires{
			Times:       []string{"2024-03-30T01:30:00.000000Z", "2024-03-31T01:00:00.000000Z", "2024-04-01T00:30:00.000000Z"},
			Description: "At 02:30 every day", FiresPerDay: 1, Warnings: []string{}}},
		{cronNext("expr", "0 30 2 * * ?", "tz", "Europe/Berlin", "after", "2024-03-30T00:00:00Z", "count", "2", "dst", "quartz"), fires{
			Times:       []string{"2024-03-30T01:30:00.000000Z", "2024-04-01T00:30:00.000000Z"},
			Description: "At 02:30 every day", FiresPerDay: 1, Warnings: []string{}}},
		{cronNext("expr", "0/1 * 0 ? * * *", "after", "2021-02-10T00:59:58.5Z", "count", "2"), fires{
			Times:       []string{"2021-02-10T00:59:59.000000Z", "2021-02-11T00:00:00.000000Z"},
			Description: "Every second of hour 0 every day", FiresPerDay: 3600,
			Warnings: []string{"it fires every second of an hour, 3600 times a day: for once a minute, let the seconds be 0"}}},
		{cronNext("expr", "0 0 0 30 2 ?"), fires{
			Times: []string{}, Description: "At 00:00 on the 30th of February",
			Warnings: []string{"it never fires: no day from 1970 to 2099 matches"}}},
		{cronNext("expr", "0 0 12 1 1 ? 2024", "after", "2024-01-01T12:00:00Z"), fires{
			Times: []string{}, Description: "At 12:00 on the 1st of January in 2024", FiresPerDay: 1. / 366,
			Warnings: []string{"it never fires again: its last time was 2024-01-01T12:00:00Z"}}},
		{cronNext("expr", "0 0 12 1 1 ?", "after", "0001-01-01T00:00:00Z", "count", "1"), fires{ // it is a time like others
			Times: []string{"1970-01-01T12:00:00.000000Z"}, Description: "At 12:00 on the 1st of January", FiresPerDay: 1 / 365.25, Warnings: []string{}}},
	} {
		reply := cronAPI().as(t, access.Viewer, http.MethodGet, test.target, "")
		var got fires
		if err := json.Unmarshal([]byte(reply.body), &got); err != nil || reply.StatusCode != http.StatusOK {
			t.Errorf("%s = %d %s", test.target, reply.StatusCode, reply.body)
		} else if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", test.target, diff)
		}
	}
}

// Without after the times are those from now on, without count there are five.
func TestCronNextDefaults(t *testing.T) {
	t.Parallel()
	reply := cronAPI().as(t, access.Viewer, http.MethodGet, cronNext("expr", "@every 1s"), "")
	var got fires
	if err := json.Unmarshal([]byte(reply.body), &got); err != nil || len(got.Times) != 5 {
		t.Errorf("cron/next = %d %s, want five times", reply.StatusCode, reply.body)
	}
}

func TestCronNextRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		target, location, message string
	}{
		{cronNext(), "query.expr", "is needed"},
		{cronNext("expr", "0 0 25 * * ?"), "query.expr", "character 5: hours go from 0 to 23"},
		{cronNext("expr", "0 0 12 * * *"), "query.expr", `must be \"?\"`},
		{cronNext("expr", "@daily", "tz", "Mars/Olympus"), "query.tz", "IANA"},
		{cronNext("expr", "@daily", "tz", "Local"), "query.tz", "IANA"},
		{cronNext("expr", "@daily", "tz", "localtime"), "query.tz", "IANA"},
		{cronNext("expr", "@daily", "tz", "posix/UTC"), "query.tz", "IANA"},
		{cronNext("expr", "@daily", "tz", "+02:00"), "query.tz", "IANA"},
		{cronNext("expr", "@daily", "tz", ""), "query.tz", "is empty"},
		{cronNext("expr", "@daily", "after", "yesterday"), "query.after", "RFC 3339"},
		{cronNext("expr", "@daily", "count", "0"), "query.count", "from 1 to 1000"},
		{cronNext("expr", "@daily", "count", "1001"), "query.count", "from 1 to 1000"},
		{cronNext("expr", "@daily", "dst", "none"), "query.dst", "cron or quartz"},
		{cronNext("expr", "@daily", "expr", "@hourly"), "query.expr", "given 2 times"},
	} {
		reply := cronAPI().as(t, access.Viewer, http.MethodGet, test.target, "")
		if reply.StatusCode != http.StatusBadRequest || !strings.Contains(reply.body, `"location":"`+test.location+`"`) ||
			!strings.Contains(reply.body, test.message) {
			t.Errorf("%s = %d %s, want 400 at %s: %s", test.target, reply.StatusCode, reply.body, test.location, test.message)
		}
	}
	if reply := cronAPI().as(t, "", http.MethodGet, cronNext("expr", "@daily"), ""); reply.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token = %d, want 401", reply.StatusCode)
	}
	if reply := cronAPI().as(t, access.Producer, http.MethodGet, cronNext("expr", "@daily"), ""); reply.StatusCode != http.StatusForbidden {
		t.Errorf("as a producer = %d, want 403", reply.StatusCode)
	}
}
