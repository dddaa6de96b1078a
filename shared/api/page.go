package api

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/shared/event"
	"github.com/millrace/millrace/shared/queue"
	"github.com/millrace/millrace/shared/queue/view"
)

// How many elements a page of a list has.
const (
	maxPage     = 1000
	defaultPage = 100
)

// needed returns a parameter that must be there and not empty.
func (q query) needed(name string) (string, error) {
	value, _, err := q.one(name)
	if err == nil && value == "" {
		err = invalid("query."+name, "is needed")
	}
	return value, err
}

// page reads how many elements are wanted.
func (q query) page() (int, error) {
	value, given, err := q.one("limit")
	if !given || err != nil {
		return defaultPage, err
	}
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil || n < 1 || n > maxPage {
		return 0, invalid("query.limit", "want a whole number from 1 to %d", maxPage)
	}
	return int(n), nil
}

// time reads a time; zero where the parameter is not there.
func (q query) time(name string) (time.Time, error) {
	value, given, err := q.one(name)
	if !given || err != nil {
		return time.Time{}, err
	}
	return parseTime("query."+name, value)
}

// cursor reads where an earlier page ended; "" at the beginning.
func (q query) cursor() (string, error) {
	value, given, err := q.one("cursor")
	if given && value == "" && err == nil {
		err = badCursor()
	}
	return value, err
}

func badCursor() *Problem {
	return invalid("query.cursor", "is none of these lists'; take it from the header Link of an answer")
}

// ofCursor returns err as a client may know it: it may say that the cursor is malformed.
func ofCursor(err error) error {
	if errors.Is(err, queue.ErrInvalid) {
		return badCursor()
	}
	return err
}

// ofList is ofCursor for a list that may look through much and find nothing. An empty page would say that there is nothing, and a
// repetition would look at the same: so the client is told, and where to go on.
func (x *exchange) ofList(q query, page *view.Page, err error) error {
	if errors.Is(err, view.ErrNotFoundYet) {
		x.next(q, page.Cursor)
		return problem(CodeImpossible, "none of the tasks that one request looks through is one of these; "+
			"go on at the header Link, or ask for less: a topic, a type, other times")
	}
	return ofCursor(err)
}

// paging reads what every list is asked for.
func (x *exchange) paging() (q query, limit int, cursor string, err error) {
	if q, err = x.query(); err != nil {
		return q, 0, "", err
	}
	if limit, err = q.page(); err != nil {
		return q, 0, "", err
	}
	cursor, err = q.cursor()
	return q, limit, cursor, err
}

// keysAfter returns a page of a map's keys, in order, and tells the client where the list goes on.
func keysAfter[V any](x *exchange, q query, all map[string]V, cursor string, limit int) []string {
	return listAfter(x, q, slices.Sorted(maps.Keys(all)), func(key *string) string { return *key }, cursor, limit)
}

// listAfter returns a page of a list that is in order by a key, and tells the client where it goes on.
func listAfter[V any](x *exchange, q query, all []V, key func(*V) string, cursor string, limit int) []V {
	all = slices.DeleteFunc(all, func(v V) bool { return key(&v) <= cursor })
	if len(all) > limit {
		all = all[:limit]
		x.next(q, key(&all[limit-1]))
	}
	return all
}

// next tells in the header Link where the list goes on (RFC 8288). A token in the query is not repeated.
func (x *exchange) next(q query, cursor string) {
	if cursor == "" {
		return
	}
	values := url.Values{}
	for name, all := range q.values {
		if name != "token" {
			values[name] = all
		}
	}
	values.Set("cursor", cursor)
	x.Header().Set("Link", "<"+x.r.URL.EscapedPath()+"?"+values.Encode()+`>; rel="next"`)
}

// formatTime returns a time as clients see it.
func formatTime(t time.Time) string { return event.FormatTime(t) }

// stampOf returns the same for a time of the engine, in microseconds since 1970; "" for 0, which is not reached yet.
func stampOf(micro int64) string {
	if micro == 0 {
		return ""
	}
	return formatTime(time.UnixMicro(micro))
}
