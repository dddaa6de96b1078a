package web

import (
	"context"
	"maps"
	"net/url"
	"strconv"
	"time"
)

// The newest events are looked for in windows, each so many times as long as the one before. A look takes no longer than the dashboard's
// patience: the window that is read then is given up; and once leastWindow is read, none is begun after three eighths of it, as it would not
// come to its end.
const (
	firstWindow = time.Second
	leastWindow = time.Minute
	widening    = 4
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
// has looked; its further, the address of the page with all=1, looks back without an end. A page of the past looks back from its moment. read puts what it
// finds into the reading's Data.
func (r *reading) look(query url.Values, most int, read func(url.Values) (enough, torn bool)) {
	began, deadline := r.d.now(), time.Now().Add(r.d.patience)
	r.Data["further"] = r.with("all", "1")
	from := began
	if at, err := strconv.ParseInt(r.query("at"), 10, 64); err == nil {
		from = time.UnixMicro(at)
		query.Set("until", strconv.FormatInt(max(1, at), 10))
	}
	query.Set("limit", strconv.Itoa(-most))
	first := time.UnixMicro(idOf(r.one("after=0&limit=1"))) // 1970 if the first ones are evicted
	for window := firstWindow; r.err == nil; window *= widening {
		since := from.Add(-window)
		whole := r.query("all") != "" || window > 10*365*24*time.Hour || since.Before(first)
		query.Set("after", strconv.FormatInt(max(0, since.UnixMicro()), 10))
		if whole {
			query.Del("after")
		}
		before := maps.Clone(r.Data)
		enough, torn, late := r.inTime(query, deadline, read)
		if torn { // the journal begins later: all that is left of it is younger than the window
			whole = true
			query.Del("after")
			enough, _, late = r.inTime(query, deadline, read)
		}
		switch {
		case late:
			r.Data = before
			r.Data["since"] = from.Add(-window / widening)
			return
		case whole || enough:
			return
		case window >= leastWindow && r.d.now().Sub(began) > r.d.patience*3/8:
			r.Data["since"] = since
			return
		}
	}
}

// inTime reads, but no longer than up to a time, unless the reader has asked for all.
func (r *reading) inTime(query url.Values, deadline time.Time, read func(url.Values) (enough, torn bool)) (enough, torn, late bool) {
	if r.query("all") != "" {
		enough, torn = read(query)
		return enough, torn, false
	}
	whole := r.r
	ctx, leave := context.WithCancel(whole.Context()) // and no deadline: for the API this is a client that leaves, not a failure
	defer leave()
	defer time.AfterFunc(time.Until(deadline), leave).Stop()
	r.r = whole.WithContext(ctx)
	enough, torn = read(query)
	r.r = whole
	if late = r.err != nil && ctx.Err() != nil && whole.Context().Err() == nil; late {
		r.err = nil
	}
	return enough, torn, late
}

// events returns what newest has read, nothing where it failed.
func (r *reading) events(name string) []any {
	answer, _ := r.Data[name].(map[string]any)
	events, _ := answer["eventSnapshots"].([]any)
	return events
}
