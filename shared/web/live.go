package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/millrace/millrace/shared/act"
)

// How a page that is open learns of changes: no more often than that, and with a sign of life at least so often; and where it asks again and
// again, since waiting costs the host, after such a pause.
const (
	liveEach  = 2 * time.Second
	liveWait  = 25 * time.Second
	livePause = 5 * time.Second
)

// live tells a page by server-sent events that the journal has grown: not what happened, since the page asks for itself again, and not each
// event, however many there are. Where the host passes a response on only as a whole, it ends after the first; where waiting costs the host,
// it ends at once, and tells the browser when to ask again.
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
		sign, newest, last := d.sign(r, after)
		if _, err := fmt.Fprint(w, sign); err != nil || last {
			return
		}
		if newest == 0 {
			continue
		}
		after = strconv.FormatInt(newest, 10)
		if out.Flush() != nil || !pause(r, liveEach) {
			return
		}
	}
}

// sign returns what a page is told next that knows of all up to an event, with the newest event if there is one since, and whether that is the
// last for now.
func (d *Dashboard) sign(r *http.Request, after string) (sign string, newest int64, last bool) {
	began := d.now()
	newest, waited, err := d.grown(r, after)
	switch {
	case err != nil:
		return "", 0, true
	case newest != 0:
		sign = fmt.Sprintf("id: %d\ndata: changed\n\n", newest)
	case waited && d.now().Sub(began) < liveWait/2:
		return "", 0, true // the server is about to end, or the host waits for less
	case waited:
		sign = ":\n\n"
	}
	if !waited {
		sign = fmt.Sprintf("retry: %d\n\n", livePause.Milliseconds()) + sign
	}
	return sign, newest, !waited
}

// grown waits until the journal has events after an id, unless waiting costs the host, and returns the newest one's; 0: nothing has happened
// for a while.
func (d *Dashboard) grown(r *http.Request, after string) (newest int64, waited bool, err error) {
	var answer struct{ TYPE string }
	header, err := d.send(r.Context(), act.Request{
		Method: http.MethodGet, Header: "Prefer", Value: "pause",
		Target: journalAPI + "/event?return=Event&limit=1&timeout=" + liveWait.String() + "&after=" + url.QueryEscape(after),
	}, &answer)
	if err != nil {
		return 0, false, err
	}
	waited = header.Get("Preference-Applied") == ""
	if answer.TYPE == "Empty" {
		return 0, waited, nil
	}
	reads := reading{d: d, r: r, Data: make(map[string]any)}
	return idOf(reads.one("limit=-1")), waited, reads.err // after what is Torn too
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
