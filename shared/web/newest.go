package web

import (
	"net/url"
	"strconv"
	"time"
)

// The newest events are looked for in windows, each so many times as long as the one before, and no further once that has taken so long.
const (
	firstWindow = time.Minute
	widening    = 4
	enoughTime  = 15 * time.Millisecond
)

// newest reads the newest events of some kind for the template under that name, newest first; look says how.
func (r *reading) newest(name, target string, query url.Values, most int) {
	r.look(query, most, func(query url.Values) (enough, torn bool) {
		r.get(name, target+"?"+query.Encode())
		answer, _ := r.Data[name].(map[string]any)
		return len(r.events(name)) >= most, answer["TYPE"] == "Torn"
	})
}

// look reads events newest first, so many at once. A journal may be long and what is looked for rare, so it looks back step by step, until
// read has enough, or has read all there is, or that has taken long enough. In the last case the template's since says how far back it
// has looked; the address of the page with all=1 looks back without an end.
func (r *reading) look(query url.Values, most int, read func(url.Values) (enough, torn bool)) {
	began := r.d.now()
	query.Set("limit", strconv.Itoa(-most))
	for window := firstWindow; r.err == nil; window *= widening {
		since := began.Add(-window)
		whole := r.query("all") != "" || window > 10*365*24*time.Hour
		query.Set("after", strconv.FormatInt(since.UnixMicro(), 10))
		if whole {
			query.Del("after")
		}
		enough, torn := read(query)
		switch {
		case torn: // the journal begins later: all that is left of it is younger than the window
			query.Del("after")
			read(query)
			return
		case whole || enough:
			return
		case r.d.now().Sub(began) > enoughTime:
			r.Data["since"] = since
			return
		}
	}
}

// events returns what newest has read, nothing where it failed.
func (r *reading) events(name string) []any {
	answer, _ := r.Data[name].(map[string]any)
	events, _ := answer["eventSnapshots"].([]any)
	return events
}
