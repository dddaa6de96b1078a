package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// How a page that is open learns of changes: no more often than that, and with a sign of life at least so often.
const (
	liveEach = 2 * time.Second
	liveWait = 25 * time.Second
)

// live tells a page by server-sent events that the journal has grown: not what happened, since the page asks for itself again, and not each
// event, however many there are. Where the host passes a response on only as a whole, it ends after the first; the browser asks again.
func (d *Dashboard) live(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies after nginx would hold it back
	after := r.Header.Get("Last-Event-ID")
	if after == "" {
		after = r.URL.Query().Get("after")
	}
	w.WriteHeader(http.StatusOK)
	for first := true; ; first = false {
		if flushed := out.Flush(); flushed != nil && !first {
			return
		}
		if token, err := d.sessions.of(r); err != nil || token == nil {
			return // who signs out sees no more
		}
		began := d.now()
		newest, err := d.grown(r, after)
		if err != nil || newest == 0 && d.now().Sub(began) < liveWait/2 {
			return // the server is about to end, or the host waits for less
		}
		sign := ":\n\n"
		if newest != 0 {
			after = strconv.FormatInt(newest, 10)
			sign = fmt.Sprintf("id: %d\ndata: changed\n\n", newest)
		}
		if _, err := fmt.Fprint(w, sign); err != nil {
			return
		}
		if newest != 0 && (out.Flush() != nil || !pause(r, liveEach)) {
			return
		}
	}
}

// grown waits until the journal has events after an id, and returns the newest one's; 0: nothing has happened for a while.
func (d *Dashboard) grown(r *http.Request, after string) (newest int64, err error) {
	reads := reading{d: d, r: r, Data: make(map[string]any)}
	if reads.one("limit=1&timeout=" + liveWait.String() + "&after=" + url.QueryEscape(after)); reads.err != nil {
		return 0, reads.err
	}
	answer, _ := reads.Data["one"].(map[string]any)
	if answer["TYPE"] == "Empty" {
		return 0, nil
	}
	return idOf(reads.one("limit=-1")), reads.err // after what is Torn too
}

// pause waits, and reports whether the client is still there.
func pause(r *http.Request, each time.Duration) bool {
	timer := time.NewTimer(each)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
