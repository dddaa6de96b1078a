package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCheckFindsWhatIsWrong runs check on servers whose responses are wrong.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	const good = `{"eventId":4,"TYPE":"A","key":"/x","n":1},{"eventId":7,"TYPE":"A","key":"/x","n":2}`
	const object = `{"TYPE":"ObjectOverview","key":"/x","eventId":7,"lastType":"A","n":2}`
	tests := map[string]struct {
		events, objects, date string
		status                int
		finds                 string
	}{
		"all is well":    {good, object, "", statusOK, "snapshot  ok"},
		"ids fall":       {`{"eventId":7,"TYPE":"A"},{"eventId":4,"TYPE":"A"}`, object, "", statusFailed, "event 4 comes after 7"},
		"id twice":       {`{"eventId":7,"TYPE":"A"},{"eventId":7,"TYPE":"A"}`, object, "", statusFailed, "event 7 comes after 7"},
		"stale snapshot": {good, strings.Replace(object, `"n":2`, `"n":1`, 1), "", statusFailed, "snapshot  FAILED"},
		"object lost":    {good, "", "", statusFailed, "lacks /x"},
		"object made up": {good, object + "," + strings.Replace(object, "/x", "/y", 1), "", statusFailed, "has /y"},
		"wrong clock":    {good, object, "Mon, 02 Jan 2006 15:04:05 GMT", statusFailed, "the server's clock differs"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if test.date != "" {
					w.Header().Set("Date", test.date)
				}
				switch {
				case strings.HasSuffix(r.URL.Path, "/object"):
					io.WriteString(w, `{"objects":[`+test.objects+`],"eventId":7}`)
				case r.URL.Query().Get("after") == "0":
					io.WriteString(w, `{"TYPE":"NonEmpty","eventId":9,"eventSnapshots":[`+test.events+`]}`)
				default:
					io.WriteString(w, `{"TYPE":"Empty","eventId":9,"lastEventId":7}`)
				}
			}))
			t.Cleanup(liar.Close)
			var out, stderr bytes.Buffer
			status := run(t.Context(), []string{"check", "--url", liar.URL, "--token", "x"}, console{strings.NewReader(""), &out, &stderr})
			if status != test.status || !strings.Contains(out.String(), test.finds) {
				t.Errorf("status %d, want %d; want %q in\n%s%s", status, test.status, test.finds, &out, &stderr)
			}
		})
	}
}
